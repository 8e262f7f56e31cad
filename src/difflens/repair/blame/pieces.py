"""What is put back in a hybrid: tensors of the good model, or some rows or columns of them."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from typing import NamedTuple

Spans = tuple[tuple[int, int], ...]


class Piece(NamedTuple):
    """A tensor that comes from the good model, or the slices of it along one axis."""

    name: str
    axis: int | None = None
    spans: Spans = ()


Selection = frozenset[Piece]
NOTHING: Selection = frozenset()


def select_tensors(names: Iterable[str]) -> Selection:
    """Select complete tensors."""
    return frozenset(map(Piece, names))


def select_others(names: Collection[str], pieces: Selection, lengths: dict[str, int]) -> Selection:
    """Select everything but these pieces; `lengths` has the length of the axis of each slice."""
    chosen = set()
    sliced = {piece.name: piece for piece in pieces}
    for name in names:
        piece = sliced.get(name)
        if piece is None:
            chosen.add(Piece(name))
        elif piece.axis is not None:
            rest = complement(piece.spans, lengths[name])
            chosen.add(Piece(name, piece.axis, rest))
    return frozenset(chosen)


def complement(spans: Spans, length: int) -> Spans:
    """Return the spans between these.

    >>> complement(((2, 4),), 6)
    ((0, 2), (4, 6))
    """
    edges = [0, *(edge for span in spans for edge in span), length]
    pairs = zip(edges[::2], edges[1::2], strict=True)
    return tuple((start, stop) for start, stop in pairs if start < stop)


def key_of(content: str, selection: Selection) -> str:
    """Name a hybrid by what it holds; `content` names the two models."""
    digest = hashlib.blake2b(content.encode(), digest_size=16)
    for piece in sorted(selection, key=repr):
        digest.update(repr(tuple(piece)).encode("utf-8", "backslashreplace") + b"\0")
    return digest.hexdigest()
