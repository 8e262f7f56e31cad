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
from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from typing import Any, NamedTuple

from difflens.core.dtypes import bits
from difflens.core.protocols import (
    HasAliases,
    HasChecksums,
    HasNodes,
    HasRefused,
    ModelFile,
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

    def place(self, name: str) -> tuple[ModelFile, int] | None:
        """Return the file and the offset of a tensor; None unless its bytes are plain there."""
        return self._source.place(name) if hasattr(self._source, "place") else None

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


class ComputedTensor(NamedTuple):
    """A tensor of F32 and the function that computes its elements [first, last).

    `first` is a multiple of `unit`; so is `last`, unless it is the end of the tensor.
    """

    info: TensorInfo
    unit: int
    make: Callable[[int, int], Any]


class ComputedSource(WrappedSource):
    """A source that computes some of its tensors, and reads some from another source."""

    def __init__(
        self,
        source: TensorSource,
        tensors: Mapping[str, TensorInfo],
        computed: Mapping[str, ComputedTensor],
        elsewhere: Mapping[str, tuple[TensorSource, str]] | None = None,
    ) -> None:
        """Wrap a source; a tensor that is in neither mapping is read from it unchanged."""
        super().__init__(source)
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

    def place(self, name: str) -> tuple[ModelFile, int] | None:
        """Return the file and the offset of a stored tensor; None for a computed one."""
        if name in self._computed:
            return None
        source, name = self._elsewhere.get(name, (self._source, name))
        return source.place(name) if hasattr(source, "place") else None

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
        self._few = threading.Semaphore(at_once)
        self._pieces: OrderedDict[tuple[Any, ...], _Piece] = OrderedDict()

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
        self._recipes = {name: recipe for name, (_, recipe) in recipes.items()}
        strips = PieceCache(_MOST_TURNED, at_once=1)
        self._rows = {name: _Rows(source, recipe, strips) for name, recipe in self._recipes.items()}
        made = {name: info for name, (info, _) in recipes.items()}
        self.tensors = {**source.tensors, **made}

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
        """Add a constant, in the type of the derived tensor; gains of norms need it."""
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
        """Return the file and offset of a stored tensor; None for a derived one."""
        return None if name in self._recipes else super().place(name)


class _Rows:
    """The bytes of a stored tensor with its rows in the order of a recipe, or transposed."""

    def __init__(self, source: TensorSource, recipe: Recipe, strips: PieceCache) -> None:
        base = source.tensors[recipe.base]
        self._source, self._base = source, recipe.base
        self._length = recipe.length or (base.shape[0] if base.shape else 1)
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
        """Return the strip of the transposed tensor that holds a row, and its first byte."""
        import numpy as np

        rows = max(1, _TURNED_STRIP // max(1, self._row_bytes))
        first = row - row % rows
        last = min(first + rows, self._across)

        def make() -> bytes:
            pieces = np.empty((self._length, (last - first) * self._width), np.uint8)
            for line in range(self._length):
                begin = line * self._size + first * self._width
                view = memoryview(pieces[line])
                self._source.read_into(self._base, begin, begin + len(view), view)
            turned = pieces.reshape(self._length, last - first, self._width).transpose(1, 0, 2)
            return turned.tobytes()

        return first * self._row_bytes, self._strips.get((self._base, first), make)
