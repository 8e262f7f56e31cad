"""Attention heads: where their matrices lie in a model, and what their circuits are."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from difflens.core.dtypes import FLOATS, OPAQUE
from difflens.core.records import TensorInfo
from difflens.measure.heads import Products

if TYPE_CHECKING:
    from numpy.typing import NDArray


# What projections are called, without `.weight`; the site is what stands before.
_PARTS = tuple(
    (part, re.compile(rf"^(?:(?P<site>.*?)\.)?(?P<word>{words})$"))
    for part, words in (
        ("qkv", r"c_attn|query_key_value|qkv_proj|wqkv|attn_qkv|qkv|in_proj"),
        (
            "o",
            r"o_proj|attn_output|out_lin|out_proj|wo|to_out\.0|output\.dense|c_proj|proj|dense|o",
        ),
        ("q", r"q_proj|query|wq|attn_q|q_lin|to_q|q"),
        ("k", r"k_proj|key|wk|attn_k|k_lin|to_k|k"),
        ("v", r"v_proj|value|wv|attn_v|v_lin|to_v|v"),
    )
)
_LAST = re.compile(r"^(?P<stem>.*)[._](?P<kind>weight|bias)(?:\[(?P<piece>[qkv])\])?$")
# The norm whose output q, k and v read; what only follows the attention cannot be folded into it.
_NORMS = frozenset({"input_layernorm", "ln_1", "layernorm_before", "attention_norm", "attn_norm"})
_NUMBER = re.compile(r"[0-9]+")


class Site(NamedTuple):
    """One attention: its place in the model and its tensors by part, as one side has them.

    Parts are q, k, v, o and qkv, with `.bias` for what is added; `gain` and `shift` are the norm's.
    """

    name: str
    tensors: dict[str, TensorInfo]

    @property
    def is_whole(self) -> bool:
        """Are all four projections there?"""
        return "o" in self.tensors and ("qkv" in self.tensors or {"q", "k", "v"} <= {*self.tensors})


def sites(infos: Iterable[TensorInfo]) -> list[Site]:
    """Find every attention among the tensors of one side, in order of depth.

    >>> names = [f"h.0.attn.{part}.weight" for part in ("c_attn", "c_proj")]
    >>> [
    ...     (site.name, sorted(site.tensors))
    ...     for site in sites(TensorInfo(n, "F32", (8, 8)) for n in names)
    ... ]
    [('h.0.attn', ['o', 'qkv'])]
    """
    found: dict[str, dict[str, TensorInfo]] = {}
    norms: dict[str, dict[str, TensorInfo]] = {}
    for info in infos:
        if info.dtype not in FLOATS or info.dtype in OPAQUE or info.dtype == "C64":
            continue
        place = placed(info.name)
        if place and len(info.shape) == (1 if place[1].endswith(".bias") else 2):
            found.setdefault(place[0], {}).setdefault(place[1], info)
        norm = _norm(info.name)
        if norm and len(info.shape) == 1:
            norms.setdefault(norm[0], {})[norm[1]] = info
    whole = (Site(name, {**parts, **norms.get(_block(name), {})}) for name, parts in found.items())
    return sorted((site for site in whole if site.is_whole), key=lambda site: _depth(site.name))


def placed(name: str) -> tuple[str, str] | None:
    """Say which part of which attention a tensor is; None if it is of none.

    >>> placed("encoder.layer.2.attention.self.query.bias"), placed("h.0.mlp.c_proj.weight")
    (('encoder.layer.2.attention', 'q.bias'), None)
    """
    last = _LAST.match(name)
    if not last:
        return None
    for part, pattern in _PARTS:
        found = pattern.match(last["stem"].lower())
        if not found:
            continue
        site = last["stem"][: len(found["site"] or "")]
        if "att" not in site.rpartition(".")[2].lower() and "attn" not in found["word"]:
            site = site.removesuffix(".self")
            if "att" not in site.rpartition(".")[2].lower():
                return None
        site = re.sub(r"attention\.attention$", "attention", site.removesuffix(".self"))
        return site, (last["piece"] or part) + (".bias" if last["kind"] == "bias" else "")
    return None


def _norm(name: str) -> tuple[str, str] | None:
    last = _LAST.match(name)
    block, _, word = last["stem"].rpartition(".") if last else ("", "", "")
    timm = word == "norm1" and ".blocks." in f".{block}."
    if not last or not (word in _NORMS or timm):
        return None
    return block, "gain" if last["kind"] == "weight" else "shift"


def _block(site: str) -> str:
    """Return the block around an attention: where the norm before it lies."""
    block, _, last = site.rpartition(".")
    return block if "att" in last.lower() else site


def _depth(name: str) -> tuple[list[int], str]:
    return [int(number) for number in _NUMBER.findall(name)], name


class Circuit(NamedTuple):
    """One kind of circuit (QK or OV) of every head of a site; an array by head, or None.

    `cosine` is ⟨L, R⟩ / (‖L‖ ‖R‖) of the circuits; ranks are those of the product.
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
    """Return ‖R - L‖ / ‖L‖ of a head's own slices: not gauge-invariant, so never shown alone."""
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
    """Return every head of a group its key's (or value's) product."""
    import numpy as np

    return product if product is None or group == 1 else np.repeat(product, group, axis=0)


def _inner(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    """Return ⟨AᵀB, CᵀD⟩ = Σ(ACᵀ ∘ BDᵀ) of every head."""
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
    """Divide; NaN if there is nothing to divide by."""
    import numpy as np

    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        return np.where(below > 0, above / below, np.nan)


def _ranks(
    first: NDArray[Any] | None, second: NDArray[Any] | None
) -> tuple[NDArray[Any] | None, NDArray[Any] | None]:
    """Return stable and effective rank of AᵀB from AAᵀ and BBᵀ.

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
