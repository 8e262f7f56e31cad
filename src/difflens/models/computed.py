"""Sources around other sources: some of their tensors are computed as they are read.

    computed tensor   | strip 0       | strip 1       | strip 2 ..     some megabytes each
                      | row row row.. | row row row.. |                complete units

Threads ask for a mebibyte at a time, each in its own place: a strip serves several of them. The
strips that were computed last stay in memory.
"""

from __future__ import annotations

import os
import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Any, NamedTuple

from difflens.core.dtypes import bits
from difflens.core.encodings import encoding_of, extents_of
from difflens.core.once import Call, as_call
from difflens.core.protocols import (
    Encoding,
    Extent,
    HasAliases,
    HasChecksums,
    HasNodes,
    HasRefused,
    TensorSource,
)
from difflens.core.records import GraphNode, Recipe, TensorInfo

_THREADS = os.cpu_count() or 1
_CACHED = _THREADS + 2
_STRIP = min(1 << 20, max(1 << 18, (1 << 24) // _CACHED))  # elements: 64 MiB of F32 in all
_AT_ONCE = min(_THREADS, 8)  # strips computed at once; each needs several times its size
_WIDTH = 4
_TURNED_STRIP = 32 * 1024**2  # bytes of a transposed tensor that are computed at a time
_MOST_TURNED = 2
_MOST_ANNOUNCED = 64 * 1024**2  # bytes of a tensor that are fetched ahead all at once
_NUMPY = {"F32": "<f4", "F64": "<f8", "F16": "<f2"}


class WrappedSource:
    """A source that reads from another one and has its optional parts; a subclass changes some."""

    def __init__(self, source: TensorSource) -> None:
        """Show the same tensors, and what else the source says."""
        self._source = source
        self.format = source.format
        self.tensors = source.tensors
        self.metadata = source.metadata
        self.warnings = source.warnings
        self.refused = source.refused if isinstance(source, HasRefused) else ()
        self.aliases = source.aliases if isinstance(source, HasAliases) else {}
        if isinstance(source, HasNodes):
            self.nodes = source.nodes
        if isinstance(source, HasChecksums):
            self.verify = source.verify

    def read_into(self, name: str, start: int, stop: int, buffer: memoryview) -> int:
        """Fill the buffer with bytes [start, stop) of the tensor and return how many."""
        return self._source.read_into(name, start, stop, buffer)

    def encoding(self, name: str) -> Encoding:
        """Return how a tensor is stored."""
        return encoding_of(self._source, name)

    def confirm(self) -> None:
        """Raise `ChangedWhileReading` if the files are not the ones that were opened."""
        self._source.confirm()

    def close(self) -> None:
        """Close the files."""
        self._source.close()


def nodes_of(source: TensorSource) -> Callable[[], tuple[GraphNode, ...] | None] | None:
    """Return what reads the graph of a model; None if its format has no graph."""
    return source.nodes if isinstance(source, HasNodes) else None


class BorrowedSource(WrappedSource):
    """A model that the caller opened, and closes: closing it here has no effect."""

    def __init__(self, source: TensorSource) -> None:
        """Copy the warnings: those that are added stay here."""
        super().__init__(source)
        self.warnings = list(source.warnings)

    def close(self) -> None:
        """Leave it open."""

    def __reduce__(self) -> Call:
        """Borrow the same model in another process."""
        return as_call(BorrowedSource, self._source)


class ComputedTensor(NamedTuple):
    """A tensor of F32 and the function that computes its elements [first, last).

    `first` is a multiple of `unit`; so is `last`, unless it is the end of the tensor. `parts` are
    the encodings of the tensors that it is computed from, with their sizes.
    """

    info: TensorInfo
    unit: int
    make: Callable[[int, int], Any]
    parts: tuple[tuple[Encoding, int], ...] = ()


def sized_encodings(
    tensors: Iterable[tuple[TensorSource, str]],
) -> tuple[tuple[Encoding, int], ...]:
    """Return the encodings of some tensors of several sources, with their sizes."""
    return tuple(
        (encoding_of(source, name), source.tensors[name].size_bytes) for source, name in tensors
    )


class Computed(NamedTuple):
    """The encoding of a tensor that its source computes."""

    source: ComputedSource
    name: str

    def read_into(self, start: int, buffer: memoryview) -> int:
        """Compute the strips that the range touches."""
        return self.source.read_into(self.name, start, start + len(buffer), buffer)

    def extents(self, start: int, stop: int) -> Iterator[Extent]:
        """Announce the parts with the beginning, if they are small: they are read in any order."""
        del stop
        parts = self.source.parts(self.name) if start == 0 else ()
        if sum(size for _, size in parts) <= _MOST_ANNOUNCED:
            for part, size in parts:
                yield from extents_of(part, 0, size)


class ComputedSource(WrappedSource):
    """A source that computes some of its tensors, and reads some from another source."""

    def __init__(
        self,
        source: TensorSource,
        tensors: Mapping[str, TensorInfo],
        computed: Mapping[str, ComputedTensor],
        elsewhere: Mapping[str, tuple[TensorSource, str]] | None = None,
        *,
        made_by: Call,
    ) -> None:
        """Wrap a source; a tensor that is in neither mapping is read from it unchanged.

        `made_by` is the call that makes it again in another process.
        """
        super().__init__(source)
        self._made_by = made_by
        self.tensors = tensors
        self._computed = computed
        self._elsewhere = elsewhere or {}
        self._strips = PieceCache(_CACHED)

    def read_into(self, name: str, start: int, stop: int, buffer: memoryview) -> int:
        """Fill the buffer with bytes [start, stop) of the tensor, computed or stored."""
        tensor = self._computed.get(name)
        if tensor is None:
            source, name = self._elsewhere.get(name, (self._source, name))
            return source.read_into(name, start, stop, buffer)
        done = 0
        while start + done < stop:
            begin, strip = self._strip(tensor, (start + done) // _WIDTH)
            inside = start + done - begin * _WIDTH
            part = strip[inside : inside + stop - start - done]
            buffer[done : done + len(part)] = part
            done += len(part)
        return done

    def encoding(self, name: str) -> Encoding:
        """Return how a tensor is stored, or that it is computed."""
        if name in self._computed:
            return Computed(self, name)
        return encoding_of(*self._elsewhere.get(name, (self._source, name)))

    def parts(self, name: str) -> tuple[tuple[Encoding, int], ...]:
        """Return the encodings of what a tensor is computed from, with their sizes."""
        return self._computed[name].parts

    def __reduce__(self) -> Call:
        """Make it again in another process."""
        return self._made_by

    def _strip(self, tensor: ComputedTensor, element: int) -> tuple[int, memoryview]:
        """Return the first element of the strip that holds an element, and the strip."""
        size = max(1, _STRIP // tensor.unit) * tensor.unit
        first = element - element % size

        def make() -> memoryview:
            import numpy as np

            with np.errstate(all="ignore"):  # a file may hold an infinite scale
                numbers = tensor.make(first, min(first + size, tensor.info.count))
            flat: Any = np.ascontiguousarray(numbers, "<f4").reshape(-1)
            return memoryview(flat).cast("B")

        strip: memoryview = self._strips.get((tensor.info.name, first), make)
        return first, strip


class _Piece:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.content: Any = None


class PieceCache:
    """The pieces computed last; two threads that need the same one compute it once."""

    def __init__(self, most: int, at_once: int = _AT_ONCE) -> None:
        """Set how many pieces stay in memory, and how many are computed at the same time."""
        self._most = most
        self._lock = threading.Lock()
        self._at_once = at_once
        self._few = threading.Semaphore(at_once)
        self._pieces: OrderedDict[tuple[Any, ...], _Piece] = OrderedDict()

    def __reduce__(self) -> Call:
        """Share one per size in another process."""
        return as_call(PieceCache, self._most, self._at_once)

    def get(self, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """Return the piece with that key; compute it if it is not in the cache."""
        with self._lock:
            piece = self._pieces.setdefault(key, _Piece())
            self._pieces.move_to_end(key)
            if len(self._pieces) > self._most:
                self._pieces.popitem(last=False)
        with piece.lock:
            if piece.content is None:
                with self._few:
                    piece.content = make()
            return piece.content


def derived(
    source: TensorSource, wanted: Iterable[tuple[TensorInfo | None, Recipe | None]]
) -> TensorSource:
    """Return a source with the tensors derived by recipes; the same source without recipes."""
    recipes = {info.name: (info, recipe) for info, recipe in wanted if info and recipe}
    return Derived(source, recipes) if recipes else source


class Derived(WrappedSource):
    """A source that replaces some of its tensors by derived ones."""

    def __init__(
        self, source: TensorSource, recipes: Mapping[str, tuple[TensorInfo, Recipe]]
    ) -> None:
        """Wrap a source; `recipes` has the header and the recipe of each derived tensor."""
        super().__init__(source)
        strips = PieceCache(_MOST_TURNED, at_once=1)
        self._derived: dict[str, Encoding] = {}
        for name, (info, recipe) in recipes.items():
            base = source.tensors[recipe.base]
            rows = Rearranged(encoding_of(source, recipe.base), base, recipe, strips)
            shifted = Shifted(rows, base.dtype, info.dtype, recipe.add)
            self._derived[name] = shifted if recipe.add else rows
        made = {name: info for name, (info, _) in recipes.items()}
        self.tensors = {**source.tensors, **made}

    def read_into(self, name: str, start: int, stop: int, buffer: memoryview) -> int:
        """Fill the buffer with bytes [start, stop) of the tensor, derived or stored."""
        if name in self._derived:
            return self._derived[name].read_into(start, buffer[: stop - start])
        return self._source.read_into(name, start, stop, buffer)

    def encoding(self, name: str) -> Encoding:
        """Return how a tensor is stored or derived."""
        return self._derived.get(name) or super().encoding(name)


class Shifted(NamedTuple):
    """A constant added in the type of the derived tensor; gains of norms need it."""

    rows: Rearranged
    base: str
    made: str
    add: float

    def read_into(self, start: int, buffer: memoryview) -> int:
        """Add it to the numbers that the range touches."""
        import ml_dtypes
        import numpy as np

        kinds = {"BF16": ml_dtypes.bfloat16, **_NUMPY}
        width, old = bits(self.made) // 8, bits(self.base) // 8
        first, last = start // width, -(-(start + len(buffer)) // width)
        stored = bytearray((last - first) * old)
        self.rows.read_into(first * old, memoryview(stored))
        values: Any = np.frombuffer(stored, kinds[self.base]).astype(kinds[self.made])
        shifted = (values + np.asarray(self.add, kinds[self.made])).tobytes()
        buffer[:] = shifted[start - first * width :][: len(buffer)]
        return len(buffer)

    def extents(self, start: int, stop: int) -> Iterable[Extent]:
        """Return the ranges of the stored numbers."""
        width, old = bits(self.made) // 8, bits(self.base) // 8
        return extents_of(self.rows, start // width * old, -(-stop // width) * old)


class Rearranged:
    """The bytes of a stored tensor with its rows in the order of a recipe, or transposed."""

    def __init__(
        self, stored: Encoding, base: TensorInfo, recipe: Recipe, strips: PieceCache
    ) -> None:
        """Plan the rows; nothing is read."""
        self._stored = stored
        self._made_of = stored, base, recipe, strips
        self._length = recipe.length or (base.shape[0] if base.shape else 1)
        self._size = base.size_bytes // self._length if self._length else 0
        self._width = bits(base.dtype) // 8
        self._transposed = recipe.transposed
        self._spans = recipe.rows or ((0, self._across if recipe.transposed else self._length),)
        self._ends = list(accumulate(count * self._row_bytes for _, count in self._spans))
        self._strips = strips

    def __reduce__(self) -> Call:
        """Make it once in another process."""
        return as_call(Rearranged, *self._made_of)

    @property
    def _across(self) -> int:
        return self._size // self._width

    @property
    def _row_bytes(self) -> int:
        return self._length * self._width if self._transposed else self._size

    def read_into(self, start: int, buffer: memoryview) -> int:
        """Read the rows that the range touches, run by run."""
        done = 0
        for place, size in self._runs(start, start + len(buffer)):
            self._read(place, size, buffer[done : done + size])
            done += size
        return done

    def extents(self, start: int, stop: int) -> Iterator[Extent]:
        """Yield the ranges of the rows; a transposed tensor is announced with its beginning."""
        if not self._transposed:
            for place, size in self._runs(start, stop):
                yield from extents_of(self._stored, place, place + size)
        elif start == 0 and self._length * self._size <= _MOST_ANNOUNCED:
            yield from extents_of(self._stored, 0, self._length * self._size)

    def _runs(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Yield the place and the size of each run of rows, in the layout before any reordering."""
        while start < stop:
            at = bisect_right(self._ends, start)
            first, count = self._spans[at]
            begin = self._ends[at] - count * self._row_bytes
            size = min(stop, self._ends[at]) - start
            yield first * self._row_bytes + start - begin, size
            start += size

    def _read(self, start: int, size: int, buffer: memoryview) -> None:
        if not self._transposed:
            self._stored.read_into(start, buffer)
            return
        done = 0
        while done < size:
            begin, strip = self._turned((start + done) // self._row_bytes)
            inside = start + done - begin
            part = strip[inside : inside + size - done]
            buffer[done : done + len(part)] = part
            done += len(part)

    def _turned(self, row: int) -> tuple[int, bytes]:
        """Return the strip of the transposed tensor that holds a row, and its first byte."""
        import numpy as np

        rows = max(1, _TURNED_STRIP // max(1, self._row_bytes))
        first = row - row % rows
        last = min(first + rows, self._across)

        def make() -> bytes:
            pieces = np.empty((self._length, (last - first) * self._width), np.uint8)
            for line in range(self._length):
                begin = line * self._size + first * self._width
                self._stored.read_into(begin, memoryview(pieces[line]))
            turned = pieces.reshape(self._length, last - first, self._width).transpose(1, 0, 2)
            return turned.tobytes()

        return first * self._row_bytes, self._strips.get((self._stored, first), make)
