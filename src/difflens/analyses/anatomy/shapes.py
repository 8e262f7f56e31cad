"""What the shapes of one model's tensors show of its network."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from ...records import Record, TensorInfo
from .roles import block, role

EXPERT = re.compile(r"(?:^|[._])experts?(?:[._]|$)|_exps(?:[._]|$)")
_SHARED = re.compile(r"shared_expert|_shexp")
_NUMBERED = re.compile(r"experts?\.([0-9]{1,6})\.")
_UP = re.compile(r"(?:up_proj|c_fc|fc1|fc_in|lin1|linear1|intermediate\.dense|ffn_up|w1)\.weight$")
_WORDS = re.compile(
    r"(?:embed_tokens|wte|word_embeddings?|tok_embeddings|token_embd|shared|embed_in)\."
)
_NO_LOOKUP = re.compile(r"(?:proj|projection|linear(?:_[0-9]+)?|dense|fc[0-9]?|mlp)\.[^.]*$")


class Shapes(Record, frozen=True):
    """Numbers read off the shapes; None where no tensor shows them."""

    layers: int | None = None
    hidden: int | None = None
    ffn: int | None = None
    vocab: int | None = None
    experts: int | None = None
    query_width: int | None = None
    key_width: int | None = None
    has_head: bool = False
    has_embedding: bool = False

    def numbers(self) -> dict[str, int | None]:
        """Give those that settings say as well."""
        return {
            name: getattr(self, name) for name in ("layers", "hidden", "ffn", "vocab", "experts")
        }


def is_lookup(info: TensorInfo) -> bool:
    """Is it a table of which a forward pass reads single rows?

    >>> is_lookup(TensorInfo("model.embed_tokens.weight", "F32", (32000, 4096)))
    True
    """
    table = role(info.name) == "embedding" and len(info.shape) == 2
    return table and not _NO_LOOKUP.search(info.name)


def is_head(info: TensorInfo) -> bool:
    """Is it the matrix of the output head?"""
    return role(info.name) == "head" and len(info.shape) == 2


def is_expert(name: str) -> bool:
    """Does it belong to an expert that only some tokens reach?"""
    return bool(EXPERT.search(name)) and not _SHARED.search(name)


def shapes(infos: Iterable[TensorInfo]) -> Shapes:
    """Look over the shapes of one model."""
    every = list(infos)
    words = [info for info in every if is_lookup(info) and _WORDS.search(info.name)]
    vocab, hidden = max((info.shape for info in words), default=(None, None))
    wide = (info.shape for info in every if len(info.shape) == 2 and _UP.search(info.name))
    ups = {max(shape) if hidden in shape else shape[0] for shape in wide}
    return Shapes(
        layers=_layers(every),
        hidden=hidden,
        ffn=ups.pop() if len(ups) == 1 else None,
        vocab=vocab,
        experts=_experts(every),
        query_width=_width(every, "attention_q"),
        key_width=_width(every, "attention_k"),
        has_head=any(map(is_head, every)),
        has_embedding=bool(words),
    )


def _layers(every: list[TensorInfo]) -> int | None:
    """Count the blocks of the one stack that holds attention, or of the only stack."""
    stacks: dict[str, set[int]] = defaultdict(set)
    attending: set[str] = set()
    for info in every:
        place = block(info.name)
        if place:
            stacks[place[0]].add(place[1])
            if role(info.name).startswith("attention"):
                attending.add(place[0])
    chosen = attending or set(stacks)
    return len(stacks[chosen.pop()]) if len(chosen) == 1 else None


def _experts(every: list[TensorInfo]) -> int | None:
    experts = [info for info in every if is_expert(info.name)]
    numbered = {int(found[1]) for info in experts if (found := _NUMBERED.search(info.name))}
    if numbered:
        return len(numbered)
    stacked = {info.shape[0] for info in experts if len(info.shape) == 3}
    return stacked.pop() if len(stacked) == 1 else None


def _width(every: list[TensorInfo], wanted: str) -> int | None:
    """Give the rows that the matrices of a role all have."""
    found = {info.shape[0] for info in every if len(info.shape) == 2 and role(info.name) == wanted}
    return found.pop() if len(found) == 1 else None
