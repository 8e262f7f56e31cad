"""How two schemes lay out the same part of a network, and the recipe that makes them alike.

A correct conversion re-orders, transposes, splits and shifts; compared as stored it
looks like damage. Only what a scheme is known to do is undone: a guess that
happened to fit the shapes would hide a real fault.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from ..records import Recipe, TensorInfo
from .facts import Facts
from .schemes import INTERLEAVED, ROTATES_HALVES, ROTATES_NEIGHBOURS

Spans = tuple[tuple[int, int], ...]

_MATRICES = ("attn.qkv.weight", "attn.o.weight", "ffn.up.weight", "ffn.down.weight")
_ROTARY = ("llama", "mistral", "mixtral")  # architectures whose GGUF rows were re-ordered
_PARTS = ("q", "k", "v")


class Tensor(NamedTuple):
    """A stored tensor with what its scheme says about it."""

    info: TensorInfo
    scheme: str
    input_first: bool


class Look(NamedTuple):
    """A tensor as it is to be compared: its look, how it is made, and how to say so."""

    info: TensorInfo
    recipe: Recipe | None = None
    said: tuple[str, ...] = ()


def aligned(role: str, left: Tensor, right: Tensor, known: Facts) -> tuple[Look, Look] | None:
    """Bring two tensors of one role into one layout; None where it is not known how."""
    looks = [_upright(role, left, right), _upright(role, right, left)]
    looks[0] = _rotated(role, looks[0], left.scheme, right.scheme, known)
    looks[1] = _rotated(role, looks[1], right.scheme, left.scheme, known)
    looks[0] = _shifted(role, looks[0], left.scheme, right.scheme, known)
    looks[1] = _shifted(role, looks[1], right.scheme, left.scheme, known)
    if len(looks[0].info.shape) != len(looks[1].info.shape):
        return None
    return looks[0], looks[1]


def split_qkv(fused: Tensor, parts: dict[str, Tensor], known: Facts) -> dict[str, Look] | None:
    """Take q, k and v out of a fused tensor; None where its layout is not known."""
    base = fused.info
    turned = fused.input_first and len(base.shape) == 2
    shape = base.shape[::-1] if turned else base.shape
    counts = {part: each.info.shape[0] for part, each in parts.items()}
    if sum(counts.values()) != shape[0]:
        return None
    spans = _qkv_spans(fused.scheme, counts, known)
    if spans is None:
        return None
    return {
        part: Look(
            TensorInfo(f"{base.name}[{part}]", base.dtype, (counts[part], *shape[1:]), base.stored),
            Recipe(base.name, spans[part], transposed=turned),
            (f"{part} taken out of the fused tensor", *(("transposed",) if turned else ())),
        )
        for part in _PARTS
    }


def split_rows(fused: Tensor, names: list[str], shape: tuple[int, ...]) -> dict[str, Look] | None:
    """Take tensors of one shape out of one that holds them in a row, along its first dimension."""
    base = fused.info
    stacked = base.shape[1:] == shape  # experts, one to a row
    rows = 1 if stacked else shape[0]
    if base.shape[0] != rows * len(names) or base.shape[1:] != (shape if stacked else shape[1:]):
        return None
    return {
        name: Look(
            TensorInfo(f"{base.name}[{name}]", base.dtype, shape, base.stored),
            Recipe(base.name, ((place * rows, rows),)),
            (f"{name} taken out of the fused tensor",),
        )
        for place, name in enumerate(names)
    }


def _qkv_spans(scheme: str, counts: dict[str, int], known: Facts) -> dict[str, Spans] | None:
    if scheme not in INTERLEAVED:
        starts = {"q": 0, "k": counts["q"], "v": counts["q"] + counts["k"]}
        return {part: ((starts[part], counts[part]),) for part in _PARTS}
    if not known.heads or len(set(counts.values())) > 1 or counts["q"] % known.heads:
        return None
    size = counts["q"] // known.heads
    return {
        part: tuple(((3 * head + place) * size, size) for head in range(known.heads))
        for place, part in enumerate(_PARTS)
    }


def _upright(role: str, tensor: Tensor, other: Tensor) -> Look:
    """Turn a matrix that is stored input first, where the other side's is not."""
    info = tensor.info
    matrix = role.endswith(_MATRICES) and len(info.shape) == 2
    if not (matrix and tensor.input_first and not other.input_first):
        return Look(info)
    turned = TensorInfo(info.name, info.dtype, info.shape[::-1], info.stored)
    return Look(turned, Recipe(info.name, transposed=True), ("transposed",))


def _rotated(role: str, look: Look, scheme: str, other: str, known: Facts) -> Look:
    """Put query and key rows into the order of schemes that rotate neighbours, not halves."""
    kind = role.rpartition(".")[0][-2:]
    if scheme not in ROTATES_HALVES or other not in ROTATES_NEIGHBOURS or kind not in {".q", ".k"}:
        return look
    heads = known.heads if kind == ".q" else known.key_heads
    rows = look.info.shape[0] if look.info.shape else 0
    is_rotary = other != "gguf" or known.architecture in _ROTARY
    if not (is_rotary and heads and rows % (2 * heads) == 0):
        return look
    recipe = Recipe(look.info.name, _neighbours(rows, heads))
    return Look(look.info, recipe, (*look.said, "rotary rows re-ordered"))


@lru_cache(maxsize=8)
def _neighbours(rows: int, heads: int) -> Spans:
    size = rows // heads
    half = size // 2
    return tuple(
        (head * size + part * half + place, 1)
        for head in range(heads)
        for place in range(half)
        for part in range(2)
    )


def _shifted(role: str, look: Look, scheme: str, other: str, known: Facts) -> Look:
    """Add the one that Gemma's converters add to the gains of its norms."""
    gemma = (known.architecture or "").startswith("gemma")
    if not (gemma and other == "gguf" and scheme != "gguf" and "norm" in role):
        return look
    dtype = "F32" if look.info.dtype == "BF16" else look.info.dtype  # widened before it is added
    info = TensorInfo(look.info.name, dtype, look.info.shape, look.info.stored)
    return Look(info, Recipe(look.info.name, add=1.0), (*look.said, "1 added"))
