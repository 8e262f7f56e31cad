"""Tensors as another format lays them out: rows picked in another order, a transpose, a shift.

A converter splits, fuses, transposes and re-orders; comparing needs both sides
in one layout. The recipe says how a derived tensor comes out of a stored one,
and its bytes are made when they are read, never more than a strip at a time.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Any

from ..dtypes import bits
from ..protocols import ModelFile, TensorSource
from ..records import Recipe, TensorInfo

_STRIP = 32 * 1024**2  # bytes of a transposed tensor that are made at a time
_MOST_STRIPS = 2
_NUMPY = {"F32": "<f4", "F64": "<f8", "F16": "<f2"}


def derived(
    source: TensorSource, wanted: Iterable[tuple[TensorInfo | None, Recipe | None]]
) -> TensorSource:
    """Give a source that makes what is wanted by recipe; the same one where nothing is."""
    recipes = {info.name: (info, recipe) for info, recipe in wanted if info and recipe}
    return Derived(source, recipes) if recipes else source


class Derived:
    """A source with some of its tensors replaced by what recipes make of them."""

    def __init__(
        self, source: TensorSource, recipes: Mapping[str, tuple[TensorInfo, Recipe]]
    ) -> None:
        """Take over a source; `recipes` gives each derived tensor's look and making."""
        self._source = source
        self._recipes = {name: recipe for name, (_, recipe) in recipes.items()}
        strips = _Strips()
        self._rows = {name: _Rows(source, recipe, strips) for name, recipe in self._recipes.items()}
        self.format = source.format
        self.metadata = source.metadata
        self.warnings = source.warnings
        made = {name: info for name, (info, _) in recipes.items()}
        self.tensors: Mapping[str, TensorInfo] = {**source.tensors, **made}

    def read_into(self, name: str, start: int, stop: int, buffer: memoryview) -> int:
        """Fill the buffer with bytes [start, stop) of the tensor, derived or stored."""
        recipe = self._recipes.get(name)
        if recipe is None:
            return self._source.read_into(name, start, stop, buffer)
        if recipe.add:
            return self._read_shifted(name, recipe, start, stop, buffer)
        return self._rows[name].read_into(start, stop, buffer)

    def _read_shifted(
        self, name: str, recipe: Recipe, start: int, stop: int, buffer: memoryview
    ) -> int:
        """Add a constant, in the derived tensor's own type; these are gains of norms, and small."""
        import ml_dtypes
        import numpy as np

        kinds = {"BF16": ml_dtypes.bfloat16, **_NUMPY}
        base, made = self._source.tensors[recipe.base].dtype, self.tensors[name].dtype
        width, old = bits(made) // 8, bits(base) // 8
        first, last = start // width, -(-stop // width)
        stored = bytearray((last - first) * old)
        self._rows[name].read_into(first * old, last * old, memoryview(stored))
        values: Any = np.frombuffer(stored, kinds[base]).astype(kinds[made])
        shifted = (values + np.asarray(recipe.add, kinds[made])).tobytes()
        buffer[: stop - start] = shifted[start - first * width : stop - first * width]
        return stop - start

    def place(self, name: str) -> tuple[ModelFile, int] | None:
        """Say where a tensor lies that is as it was stored."""
        if name in self._recipes or not hasattr(self._source, "place"):
            return None
        found: tuple[ModelFile, int] | None = self._source.place(name)
        return found

    def confirm(self) -> None:
        """Raise `ChangedWhileReading` if the files are not the ones that were opened."""
        self._source.confirm()

    def close(self) -> None:
        """Give the descriptors back."""
        self._source.close()


class _Strips:
    """The few strips that were turned last: threads work on neighbouring ones."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._kept: dict[tuple[str, int], bytes] = {}

    def get(self, key: tuple[str, int]) -> bytes | None:
        return self._kept.get(key)

    def keep(self, key: tuple[str, int], strip: bytes) -> None:
        while len(self._kept) >= _MOST_STRIPS:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = strip


class _Rows:
    """The bytes of a stored tensor, its rows in the order a recipe wants, or turned on its side."""

    def __init__(self, source: TensorSource, recipe: Recipe, strips: _Strips) -> None:
        base = source.tensors[recipe.base]
        self._source, self._base = source, recipe.base
        self._length = base.shape[0] if base.shape else 1
        self._size = base.size_bytes // self._length if self._length else 0
        self._width = bits(base.dtype) // 8
        self._transposed = recipe.transposed
        self._spans = recipe.rows or ((0, self._across if recipe.transposed else self._length),)
        self._ends = list(accumulate(count * self._row_bytes for _, count in self._spans))
        self._strips = strips

    @property
    def _across(self) -> int:
        return self._size // self._width

    @property
    def _row_bytes(self) -> int:
        return self._length * self._width if self._transposed else self._size

    def read_into(self, start: int, stop: int, buffer: memoryview) -> int:
        done = 0
        while start + done < stop:
            place = start + done
            at = bisect_right(self._ends, place)
            first, count = self._spans[at]
            begin = self._ends[at] - count * self._row_bytes
            some = min(stop, self._ends[at]) - place
            self._read(first * self._row_bytes + place - begin, some, buffer[done : done + some])
            done += some
        return done

    def _read(self, start: int, size: int, buffer: memoryview) -> None:
        if not self._transposed:
            self._source.read_into(self._base, start, start + size, buffer)
            return
        done = 0
        while done < size:
            begin, strip = self._turned((start + done) // self._row_bytes)
            inside = start + done - begin
            part = strip[inside : inside + size - done]
            buffer[done : done + len(part)] = part
            done += len(part)

    def _turned(self, row: int) -> tuple[int, bytes]:
        """Give the strip of the transposed tensor that holds a row, and where it begins."""
        import numpy as np

        rows = max(1, _STRIP // max(1, self._row_bytes))
        first = row - row % rows
        with self._strips.lock:
            strip = self._strips.get((self._base, first))
            if strip is None:
                last = min(first + rows, self._across)
                pieces = np.empty((self._length, (last - first) * self._width), np.uint8)
                for line in range(self._length):
                    begin = line * self._size + first * self._width
                    view = memoryview(pieces[line])
                    self._source.read_into(self._base, begin, begin + len(view), view)
                turned = pieces.reshape(self._length, last - first, self._width).transpose(1, 0, 2)
                strip = turned.tobytes()
                self._strips.keep((self._base, first), strip)
        return first * self._row_bytes, strip
