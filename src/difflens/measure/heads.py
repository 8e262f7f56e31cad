"""The rows of each attention head in a projection, and the small products circuits are made of.

A head's circuit is a product of two thin matrices, QK = QᵀK and OV = O V (Elhage et al. 2021, A
Mathematical Framework for Transformer Circuits). Its norm and its inner product with another one
need only d x d products: ‖QᵀK‖² = Σ(QQᵀ ∘ KKᵀ), ⟨Q₁ᵀK₁, Q₂ᵀK₂⟩ = Σ(Q₁Q₂ᵀ ∘ K₁K₂ᵀ), so the
product itself, as wide as the model, is never made. Memory: one projection of each side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from difflens.core.protocols import Values

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Products(NamedTuple):
    """By head: LLᵀ, RRᵀ and LRᵀ of one part (q, k, v, or o transposed), and ‖R - L‖²."""

    left: NDArray[Any] | None
    right: NDArray[Any] | None
    across: NDArray[Any] | None
    moved: NDArray[Any] | None


def head_rows(
    values: Values, starts: Sequence[int], size: int, *, turned: bool = False
) -> NDArray[Any]:
    """Return each head's rows, heads x size x width; `turned` cuts columns, returned as rows."""
    import numpy as np

    rows = values.info.shape[0]
    columns = values.info.count // rows
    if turned:
        matrix = values.array().reshape(rows, columns)
        return np.stack([np.ascontiguousarray(matrix[:, at : at + size].T) for at in starts])
    spans = (values.span(at * columns, (at + size) * columns) for at in starts)
    return np.stack([span.reshape(size, columns) for span in spans])


def with_bias(
    heads: NDArray[Any],
    bias: NDArray[Any] | None,
    gain: NDArray[Any] | None = None,
    shift: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """Fold the norm before the projection in, and append what is added as one more column.

    W(g ∘ x + s) + b = (W diag g) x + (W s + b).
    """
    import numpy as np

    if bias is None and gain is None and shift is None:
        return heads
    with np.errstate(invalid="ignore", over="ignore"):
        folded = heads if gain is None else heads * gain
        if bias is None and shift is None:
            return folded
        column = np.zeros(heads.shape[:2], heads.dtype) if bias is None else bias
        column = column if shift is None else column + heads @ shift
    return np.concatenate([folded, column[:, :, None].astype(folded.dtype)], axis=2)


def products(left: NDArray[Any] | None, right: NDArray[Any] | None) -> Products:
    """Multiply each head's rows with themselves, and with the other side's where widths agree.

    Handed one array for both sides (the same bytes), every figure is exact: nothing moved.
    """
    own = None if left is None else _outer(left, left)
    if right is left:
        return Products(own, own, own, None if own is None else own[:, 0, 0] * 0)
    other = None if right is None else _outer(right, right)
    across = moved = None
    if left is not None and right is not None and _comparable(left, right):
        across = _outer(left, right)
        if left.shape == right.shape:
            moved = _distance(left, right)
    return Products(own, other, across, moved)


def _comparable(left: NDArray[Any], right: NDArray[Any]) -> bool:
    return len(left) == len(right) and left.shape[2] == right.shape[2]


def _outer(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """Multiply head by head in float64: one head is widened at a time."""
    import numpy as np

    with np.errstate(invalid="ignore", over="ignore"):
        return np.stack(
            [
                first.astype(np.float64) @ second.astype(np.float64).T
                for first, second in zip(left, right, strict=True)
            ]
        )


def _distance(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    with np.errstate(invalid="ignore", over="ignore"):
        return np.array(
            [
                np.sum(np.square(second.astype(np.float64) - first))
                for first, second in zip(left, right, strict=True)
            ]
        )
