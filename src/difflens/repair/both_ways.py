"""Chunks that run backwards: by themselves, or as two codes, one for each direction.

two ways   5, a length, the code for the way there, the code for the way back
recipe     6, the code against what the recipe predicts; or 70, a length, that code, and the
code for the base against what undoing the recipe gives
"""

from __future__ import annotations

from typing import NamedTuple

from difflens.core.buffers import ThreadBuffers
from difflens.measure.codec import ALWAYS, CHEAP, NEVER, decode, encode

from .chunks import Buffer, Kind
from .fields import number
from .recipes import Recipe

TWO_WAYS, RECIPE = 5, 6
METHOD = 7
_BACK, _RUN_BACK = 64, (1, 2, RECIPE)  # sparse and dense chunks may run backwards

_buffers = ThreadBuffers()


class Prediction(NamedTuple):
    """A recipe, applied to the chunk that begins at a byte of the tensor."""

    recipe: Recipe
    start: int
    base_kind: Kind

    def made_of(self, base: Buffer, size: int) -> memoryview:
        """Return what the recipe makes of the base, good until this thread asks again."""
        made = _buffers.get("made", size)
        self.recipe.predict(base, made, self.start)
        return made

    def undone(self, made: Buffer, size: int) -> memoryview:
        """Return about what the base was, good until this thread asks again."""
        base = _buffers.get("undone", size)
        self.recipe.undo(made, base, self.start)
        return base


def runs_back(data: bytes) -> bool:
    """Does a chunk lead from the target to the base as well?"""
    if not data or data[0] == TWO_WAYS:
        return True
    return data[0] & METHOD in _RUN_BACK and bool(data[0] & _BACK)


def code(
    base: Buffer | None,
    target: Buffer,
    kind: Kind,
    way_back: int,
    prediction: Prediction | None = None,
) -> tuple[bytes, bytes]:
    """Code a chunk; where that does not run backwards and shall, code it in both ways as well."""
    if prediction and base is not None:
        return _code_predicted(base, target, kind, way_back, prediction)
    data = encode(base, target, kind, min(way_back, CHEAP))
    if base is None or way_back == NEVER or runs_back(data):
        return data, b""
    second = encode(target, base, kind, NEVER)
    both = bytes([TWO_WAYS]) + number(len(data)) + data + second
    return data, min(encode(base, target, kind, ALWAYS), both, key=len)


def _code_predicted(
    base: Buffer, target: Buffer, kind: Kind, way_back: int, prediction: Prediction
) -> tuple[bytes, bytes]:
    made = prediction.made_of(base, len(target))
    there = encode(made, target, kind, min(way_back, CHEAP))
    data = bytes([RECIPE]) + there
    if way_back == NEVER or not prediction.recipe.is_reversible:
        return data, b""
    if not runs_back(there):
        there = encode(made, target, kind, ALWAYS)
    undone = prediction.undone(made, len(base))
    back = encode(undone, base, prediction.base_kind, NEVER)
    return data, bytes([RECIPE | _BACK]) + number(len(there)) + there + back


def decode_chunk(
    data: memoryview,
    base: Buffer | None,
    out: memoryview,
    kind: Kind,
    *,
    backwards: bool,
    prediction: Prediction | None = None,
) -> None:
    """Fill `out`; ValueError where the data are damaged."""
    if prediction:
        if base is None or not len(data) or data[0] & ~_BACK != RECIPE:
            raise ValueError("the chunk is damaged")
        _decode_predicted(data, base, out, kind, prediction, backwards=backwards)
        return
    if len(data) and data[0] == TWO_WAYS:
        first, second = _parts(data)
        if not len(first) or base is None:
            raise ValueError("the chunk is damaged")
        data = second if backwards else first
        backwards = False
    decode(data, base, out, kind, backwards)


def _decode_predicted(
    data: memoryview,
    base: Buffer,
    out: memoryview,
    kind: Kind,
    prediction: Prediction,
    *,
    backwards: bool,
) -> None:
    there, back = _parts(data) if data[0] & _BACK else (data[1:], None)
    if not backwards:
        decode(there, prediction.made_of(base, len(out)), out, kind, False)
        return
    if back is None:
        raise ValueError("the chunk cannot be applied backwards")
    made = _buffers.get("made", len(base))
    decode(there, base, made, kind, True)
    decode(back, prediction.undone(made, len(out)), out, prediction.base_kind, False)


def _parts(data: memoryview) -> tuple[memoryview, memoryview]:
    """Split what follows the first byte: a length, so many bytes, the others."""
    length, at = 0, 1
    for shift in range(0, 35, 7):
        byte = data[at] if at < len(data) else 0x80
        length |= (byte & 0x7F) << shift
        at += 1
        if not byte & 0x80:
            break
    if length > len(data) - at:
        raise ValueError("the chunk is damaged")
    return data[at : at + length], data[at + length :]
