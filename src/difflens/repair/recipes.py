"""Recipes: what happened to a tensor in a few numbers, from which its bits can be predicted.

    scaled   the base times a factor, rounded, so many times; with the factor 1 it is a cast
    summed   the base plus the product of two thin matrices: a merged adapter
    rows     rows of the base in another order, or more or fewer of them

A chunk is then coded against what the recipe predicts. Recipes are exact: every machine predicts
the same bits. Those that can be undone, but for a few bits, run backwards too.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from math import isfinite, prod
from typing import Any, NamedTuple, Protocol

from difflens.core.records import TensorInfo
from difflens.measure.codec import NEVER, add_product, decode, encode, scale

from .chunks import Buffer, Kind, Readable, kind_of, read_range
from .fields import Fields, number, text

_SCALED, _SUMMED, _ROWS = 1, 2, 3
MOST_TIMES, MOST_RANK, MOST_FACTORS = 1024, 256, 1 << 22
FACTORS = ("F16", "BF16", "F32")
Memory = Callable[[int], memoryview]
_NO_FLOATS = frozenset({"C64", "F64"})  # of two words, or cut into other chunks than their casts


class Recipe(Protocol):
    """How a tensor is predicted from another one."""

    @property
    def is_reversible(self) -> bool:
        """Can it be undone?"""

    def to_bytes(self) -> bytes:
        """Write the recipe."""

    def read(
        self, source: Readable, origin: TensorInfo, start: int, stop: int, out: Memory
    ) -> memoryview:
        """Read what bytes [start, stop) are made of; `out(size)` is memory for it."""

    def predict(self, base: Buffer, out: memoryview, start: int) -> None:
        """Fill bytes from `start` on of the tensor, made of what `read` returned."""

    def undo(self, made: Buffer, out: memoryview, start: int) -> None:
        """Fill bytes of the base; `start` is where the made ones begin."""


class Scaled(NamedTuple):
    """The base times a factor, rounded to the type of the tensor, so many times."""

    kinds: tuple[Kind, Kind]
    factor: float
    times: int

    @property
    def is_reversible(self) -> bool:
        """It can be undone, but for a few bits."""
        return True

    def to_bytes(self) -> bytes:
        """Write the recipe."""
        return number(_SCALED) + number(self.times) + struct.pack("<d", self.factor)

    def read(
        self, source: Readable, origin: TensorInfo, start: int, stop: int, out: Memory
    ) -> memoryview:
        """Read the same elements of the base."""
        before, after = self.kinds[0][0], self.kinds[1][0]
        first, last = start // after * before, stop // after * before
        return read_range(source, origin.name, first, last, out(last - first))

    def predict(self, base: Buffer, out: memoryview, start: int) -> None:
        """Multiply."""
        del start
        scale(base, out, self.kinds, (self.factor, self.times), False)

    def undo(self, made: Buffer, out: memoryview, start: int) -> None:
        """Divide."""
        del start
        scale(made, out, self.kinds, (self.factor, self.times), True)


class Summed(NamedTuple):
    """The base plus the product of two matrices, which `packed` holds as they are stored.

    Where `rounded` is set the product is rounded before it is added, as PEFT does.
    """

    kind: Kind
    columns: int
    left: bytes
    right: bytes
    rounded: bool
    packed: bytes

    @property
    def is_reversible(self) -> bool:
        """It can be undone, but for a few bits."""
        return True

    def to_bytes(self) -> bytes:
        """Write the recipe."""
        return number(_SUMMED) + bytes([self.rounded]) + self.packed

    def read(
        self, source: Readable, origin: TensorInfo, start: int, stop: int, out: Memory
    ) -> memoryview:
        """Read the same bytes of the base."""
        return read_range(source, origin.name, start, stop, out(stop - start))

    def predict(self, base: Buffer, out: memoryview, start: int) -> None:
        """Add the product."""
        self._add(base, out, start, self.left)

    def undo(self, made: Buffer, out: memoryview, start: int) -> None:
        """Subtract the product."""
        import numpy as np

        self._add(made, out, start, (-np.frombuffer(self.left)).tobytes())

    def _add(self, words: Buffer, out: memoryview, start: int, left: bytes) -> None:
        place = start // self.kind[0], self.columns, self.rounded
        add_product(words, out, self.kind, place, (left, self.right))


class Rows(NamedTuple):
    """Rows of the base: runs of (first row + 1, how many), a first of 0 for rows that are new."""

    width: int
    runs: tuple[tuple[int, int], ...]

    @property
    def is_reversible(self) -> bool:
        """It cannot be undone chunk by chunk."""
        return False

    def to_bytes(self) -> bytes:
        """Write the recipe: the first rows as distances from the end of the run before."""
        parts, end = [number(_ROWS), number(len(self.runs))], 1
        for first, count in self.runs:
            step = first - end if first else 0
            parts += [number(0 if not first else 1 + 2 * abs(step) - (step < 0)), number(count)]
            end = first + count if first else end
        return b"".join(parts)

    def read(
        self, source: Readable, origin: TensorInfo, start: int, stop: int, out: Memory
    ) -> memoryview:
        """Gather the rows; new ones are zeros."""
        view, at = out(stop - start), 0
        for first, last in self._pieces(start, stop):
            part = view[at : at + abs(last - first)]
            if last > first:
                read_range(source, origin.name, first, last, part)
            else:
                part[:] = bytes(len(part))
            at += len(part)
        return view

    def _pieces(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Yield ranges of bytes of the base; where it has none, the length as (length, 0)."""
        begin = 0
        for first, count in self.runs:
            end = begin + count * self.width
            low, high = max(start, begin), min(stop, end)
            if low < high:
                shift = (first - 1) * self.width - begin
                yield (low + shift, high + shift) if first else (high - low, 0)
            begin = end

    def predict(self, base: Buffer, out: memoryview, start: int) -> None:
        """Copy."""
        del start
        out[:] = base

    def undo(self, made: Buffer, out: memoryview, start: int) -> None:
        """Refuse."""
        del made, out, start
        raise ValueError("the chunk cannot be applied backwards")


def can_be_scaled(base: TensorInfo, target: TensorInfo) -> bool:
    """Have both as many floats, which are cut into chunks of as many?"""
    dtypes = (base.dtype, target.dtype)
    floats = all(kind_of(each)[2] for each in dtypes)
    same = base.dtype == target.dtype or not _NO_FLOATS & set(dtypes)
    return floats and "C64" not in dtypes and same and base.count == target.count


def can_be_summed(base: TensorInfo, target: TensorInfo) -> bool:
    """Are both matrices of the same shape and type?"""
    same = (base.dtype, base.shape) == (target.dtype, target.shape)
    return same and can_be_scaled(base, target) and len(target.shape) > 1 and target.count > 0


def can_be_rows(base: TensorInfo, target: TensorInfo) -> bool:
    """Have both the same type and rows of the same shape, in whole bytes?"""
    fits = base.dtype == target.dtype and base.shape[1:] == target.shape[1:]
    return fits and len(base.shape) > 0 < len(target.shape) and row_bytes(target) > 0


def row_bytes(info: TensorInfo) -> int:
    """Return the bytes of a row; 0 where there are none or rows do not end with a byte."""
    rows = info.shape[0] if info.shape else 0
    return info.size_bytes // rows if rows and info.size_bytes % rows == 0 else 0


def summed(
    info: TensorInfo, factors: tuple[Any, Any], dtype: str, *, factor: float, rounded: bool
) -> Summed:
    """Make a recipe of two matrices of words of a dtype."""
    words = [each.tobytes() for each in factors]
    parts = [number(FACTORS.index(dtype)), struct.pack("<d", factor)]
    parts += [number(factors[1].shape[0])]
    parts += [text(encode(None, each, kind_of(dtype), NEVER)) for each in words]
    left, right = _widened(words, dtype, factor)
    columns = prod(info.shape[1:])
    return Summed(kind_of(info.dtype), columns, left, right, rounded, b"".join(parts))


def read_recipe(fields: Fields, base: TensorInfo, target: TensorInfo) -> Recipe:
    """Read a recipe that nobody vouches for."""
    which = fields.number()
    recipe: Recipe | None = None
    if which == _SCALED and can_be_scaled(base, target):
        recipe = _read_scaled(fields, base, target)
    elif which == _SUMMED and can_be_summed(base, target):
        recipe = _read_summed(fields, target)
    elif which == _ROWS and can_be_rows(base, target):
        recipe = _read_rows(fields, base, target)
    if recipe is None or fields.left():
        raise fields.damaged("a recipe does not fit its tensor")
    return recipe


def _read_scaled(fields: Fields, base: TensorInfo, target: TensorInfo) -> Scaled | None:
    kinds = kind_of(base.dtype), kind_of(target.dtype)
    times = fields.number(MOST_TIMES)
    (factor,) = struct.unpack("<d", fields.data(8))
    repeats = kinds[0] == kinds[1] and target.dtype == "F32"
    if not isfinite(factor) or not factor or not times or (times > 1 and not repeats):
        return None
    return Scaled(kinds, factor, times)


def _read_summed(fields: Fields, target: TensorInfo) -> Summed | None:
    rounded = fields.number(1) > 0
    packed = fields.peek()
    dtype = FACTORS[fields.number(len(FACTORS) - 1)]
    (factor,) = struct.unpack("<d", fields.data(8))
    rank, rows, columns = fields.number(MOST_RANK), target.shape[0], prod(target.shape[1:])
    if not rank or rank * max(rows, columns) > MOST_FACTORS or not abs(factor) < 1e30:
        return None
    words = []
    for size in (rows * rank, rank * columns):
        out = bytearray(size * kind_of(dtype)[0])
        try:
            decode(fields.text(), None, out, kind_of(dtype), False)
        except ValueError:
            return None
        words.append(bytes(out))
    left, right = _widened(words, dtype, factor)
    if not _are_finite(left, right):
        return None
    return Summed(kind_of(target.dtype), columns, left, right, rounded, packed)


def _read_rows(fields: Fields, base: TensorInfo, target: TensorInfo) -> Rows | None:
    runs, end, total = [], 1, 0
    for _ in range(fields.number(target.shape[0])):
        code, count = fields.number(), fields.number(target.shape[0])
        first = end + (code // 2 if code % 2 else -(code // 2)) if code else 0
        if not count or first < 0 or (code and (first < 1 or first + count - 1 > base.shape[0])):
            return None
        runs.append((first, count))
        end = first + count if first else end
        total += count
    return Rows(row_bytes(target), tuple(runs)) if total == target.shape[0] else None


def _widened(words: list[bytes], dtype: str, factor: float) -> tuple[bytes, bytes]:
    """Make F64 of both matrices, and multiply the left one."""
    import numpy as np

    made = []
    for data in words:
        out = bytearray(len(data) // kind_of(dtype)[0] * 8)
        scale(data, out, (kind_of(dtype), kind_of("F64")), (1.0, 1), False)
        made.append(np.frombuffer(out))
    return (made[0] * factor).tobytes(), made[1].tobytes()


def _are_finite(*parts: bytes) -> bool:
    import numpy as np

    return all(bool(np.isfinite(np.frombuffer(each)).all()) for each in parts)
