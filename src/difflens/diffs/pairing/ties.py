"""Tensors that may be stored once and used twice: an output head and its embedding.

safetensors cannot store aliases, so savers drop the duplicate: a head that one
side lacks may be tied there, not removed. Names only propose; the bytes of the side
that has both decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from difflens.core.protocols import Engine, TensorSource
from difflens.core.record import Record
from difflens.core.records import Delta, Pair, TensorInfo
from difflens.measure.pairs import deltas

Side = Literal["left", "right"]

# Known by the whole core of the name: `output.weight` also ends many an attention block.
_HEADS = frozenset(
    """
    output.weight output_layer.weight output_projection.weight head.weight decoder.weight
    embed_out.weight proj_out.weight vocab_projector.weight lm_head.decoder.weight
    cls.predictions.decoder.weight predictions.decoder.weight pred_layer.proj.weight
""".split()
)
# Known by the last two components, wherever they stand.
_ENDINGS = frozenset(
    """
    lm_head.weight embed_tokens.weight wte.weight word_embeddings.weight
    tok_embeddings.weight token_embd.weight shared.weight embed_in.weight
    word_embedding.weight token_embedding.weight embeddings.weight
""".split()
)
# The bias of a masked-language head, which its decoder shares.
_BIASES = frozenset(
    {
        "cls.predictions.bias",
        "cls.predictions.decoder.bias",
        "lm_head.bias",
        "lm_head.decoder.bias",
        "predictions.bias",
        "predictions.decoder.bias",
    }
)


class Tie(Record, frozen=True, gc=False):
    """A tensor only one side has, and another of that side whose bytes it may repeat."""

    side: Side
    head: TensorInfo
    embedding: TensorInfo
    index: int


def tie_candidates(
    pairs: Sequence[Pair], left: Mapping[str, TensorInfo], right: Mapping[str, TensorInfo]
) -> list[Tie]:
    """Propose, for each lone head or embedding, what it may be a duplicate of.

    `index` is the place of the lone tensor in `pairs`. A partner has the same shape
    and dtype and is on both sides: what the other side lost as well ties nothing.
    """
    lone = list(lone_aliases(pairs))
    if not lone:
        return []
    paired = [each for each in pairs if each.left and each.right]
    sides: dict[Side, list[TensorInfo]] = {
        "left": _partners(lone, "left", left, {each.left.name for each in paired if each.left}),
        "right": _partners(lone, "right", right, {each.name for each in paired}),
    }
    return [
        Tie(side, info, partner, index)
        for side, info, index in lone
        for partner in sides[side]
        if _look(info) == _look(partner)
    ]


def compare_ties(
    pairs: Sequence[Pair], left: TensorSource, right: TensorSource, engine: Engine
) -> dict[Pair, Delta]:
    """Compare each candidate with the tensor it may repeat: names propose, bytes decide."""
    ties: dict[Pair, Delta] = {}
    for tie in tie_candidates(pairs, left.tensors, right.tensors):
        lone, twin = pairs[tie.index], tie.embedding
        source = left if tie.side == "left" else right
        if lone in ties:
            continue
        if next(deltas([Pair(twin, tie.head)], source, source, engine)).kind == "identical":
            ties[lone] = Delta(Pair(lone.left, lone.right, f"tied to {twin.name}"), "tied")
    return ties


def lone_aliases(pairs: Iterable[Pair]) -> Iterator[tuple[Side, TensorInfo, int]]:
    """Yield every lone tensor whose name is one that models share, with its side and place."""
    for index, each in enumerate(pairs):
        if each.right is None and each.left and family(each.left.name):
            yield "left", each.left, index
        elif each.left is None and each.right and family(each.right.name):
            yield "right", each.right, index


def _partners(
    lone: list[tuple[Side, TensorInfo, int]],
    side: Side,
    here: Mapping[str, TensorInfo],
    paired: set[str],
) -> list[TensorInfo]:
    shapes = {info.shape for where, info, _ in lone if where == side}
    return [
        info
        for name, info in here.items()
        if info.shape in shapes and name in paired and family(name)
    ]


def _look(info: TensorInfo) -> tuple[str, tuple[int, ...], str]:
    return info.dtype, info.shape, family(info.name)


def family(name: str) -> str:
    """Say which tensors it may share its bytes with: `matrix`, `bias`, or none.

    >>> family("transformer.wte.weight"), family("model.layers.0.mlp.up_proj.weight")
    ('matrix', '')
    """
    from .names import core_of  # its tables are for the few names that one side lacks

    core = core_of(name)
    if core in _BIASES:
        return "bias"
    ending = ".".join(core.rsplit(".", 2)[-2:])
    return "matrix" if core in _HEADS or ending in _ENDINGS else ""
