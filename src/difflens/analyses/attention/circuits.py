"""Each head's circuits on both sides: norms, cosine, ranks, how far its slices moved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ...measure.heads import Products

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Circuit(NamedTuple):
    """One kind of circuit (QK or OV) of every head of a site; an array by head, or None.

    `cosine` is ⟨L, R⟩ / (‖L‖ ‖R‖) of the circuits; ranks are those of the product (methods 5.1).
    """

    left_norm: NDArray[Any] | None
    right_norm: NDArray[Any] | None
    cosine: NDArray[Any] | None
    left_stable_rank: NDArray[Any] | None
    right_stable_rank: NDArray[Any] | None
    left_effective_rank: NDArray[Any] | None
    right_effective_rank: NDArray[Any] | None


def circuit(first: Products, second: Products, group: int) -> Circuit:
    """Put two parts together: q with k, or o with v; `group` heads share a row of the second."""
    left, right = (
        _norms(_of(first, side), _shared(_of(second, side), group)) for side in ("left", "right")
    )
    cosine = None
    across = _shared(second.across, group)
    if first.across is not None and across is not None and left is not None and right is not None:
        cosine = _ratio(_inner(first.across, across), left * right)
    ranks = [
        _ranks(_of(first, side), _shared(_of(second, side), group)) for side in ("left", "right")
    ]
    if first.right is first.left and second.right is second.left:  # the same bytes: exactly one
        ranks[1] = ranks[0]
        cosine = None if left is None else _ratio(left, left)
    return Circuit(left, right, cosine, ranks[0][0], ranks[1][0], ranks[0][1], ranks[1][1])


def raw_relative_l2(parts: dict[str, Products], group: int) -> NDArray[Any] | None:
    """Give ‖R - L‖ / ‖L‖ of a head's own slices: not gauge-invariant, so never the only figure."""
    import numpy as np

    moved: list[NDArray[Any]] = []
    size: list[NDArray[Any]] = []
    for part, each in parts.items():
        if each.moved is None or each.left is None:
            return None
        times = group if part in {"k", "v"} else 1
        moved.append(np.repeat(each.moved, times))
        size.append(np.repeat(np.trace(each.left, axis1=1, axis2=2), times))
    return _ratio(np.sqrt(np.sum(moved, axis=0)), np.sqrt(np.sum(size, axis=0)))


def _of(part: Products, side: str) -> NDArray[Any] | None:
    return part.left if side == "left" else part.right


def _shared(product: NDArray[Any] | None, group: int) -> NDArray[Any] | None:
    """Give every head of a group its key's (or value's) product."""
    import numpy as np

    return product if product is None or group == 1 else np.repeat(product, group, axis=0)


def _inner(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    """Give ⟨AᵀB, CᵀD⟩ = Σ(ACᵀ ∘ BDᵀ) of every head."""
    import numpy as np

    with np.errstate(invalid="ignore", over="ignore"):
        inner: NDArray[Any] = np.einsum("hij,hij->h", first, second)
    return inner


def _norms(first: NDArray[Any] | None, second: NDArray[Any] | None) -> NDArray[Any] | None:
    import numpy as np

    if first is None or second is None:
        return None
    norms: NDArray[Any] = np.sqrt(np.maximum(_inner(first, second), 0))
    return norms


def _ratio(above: Any, below: Any) -> NDArray[Any]:
    """Divide; NaN where there is nothing to divide by."""
    import numpy as np

    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        return np.where(below > 0, above / below, np.nan)


def _ranks(
    first: NDArray[Any] | None, second: NDArray[Any] | None
) -> tuple[NDArray[Any] | None, NDArray[Any] | None]:
    """Give stable and effective rank of AᵀB from AAᵀ and BBᵀ.

    With AAᵀ = UΛUᵀ and BBᵀ = VMVᵀ the singular values of AᵀB are those of √Λ UᵀV √M: what a QR of
    both factors gives, from products that are there already. Stable rank ‖·‖²/s₁²; effective rank
    exp(-Σ p ln p), p = s/Σs (Roy and Vetterli 2007).
    """
    import numpy as np

    if first is None or second is None:
        return None, None
    stable, effective = np.full(len(first), np.nan), np.full(len(first), np.nan)
    finite = np.isfinite(first).all((1, 2)) & np.isfinite(second).all((1, 2))
    for head in np.flatnonzero(finite):
        values = np.linalg.svd(_root(first[head]) @ _root(second[head]).T, compute_uv=False)
        if values[0] > 0:
            share = values / values.sum()
            share = share[share > 0]
            stable[head] = np.sum(np.square(values / values[0]))
            effective[head] = np.exp(-np.sum(share * np.log(share)))
    return stable, effective


def _root(product: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    values, vectors = np.linalg.eigh(product)
    root: NDArray[Any] = np.sqrt(np.maximum(values, 0))[:, None] * vectors.T
    return root
