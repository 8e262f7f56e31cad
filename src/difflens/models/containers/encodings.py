"""The source class of every format: its tensors, and the encoding each of them is stored in.

    Straight    plain bytes, one after another: one read, straight into the caller's buffer
    Inline      a few values that are part of the header
    Varints     integers of one to ten bytes each
    Codes       two, four or six bits an element, lowest bits first
    Swapped     big-endian
    Repeated    the last value stands for all that follow
    Stacked     pieces along one axis

An encoding reads any range of the plain bytes of its tensor. Several threads may read at once, and
none holds a complete tensor in memory. A format may add encodings of its own.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from difflens.core.encodings import extents_of
from difflens.core.errors import CorruptFile, UnknownName
from difflens.core.escape import for_terminal, visible
from difflens.core.once import Call, as_call
from difflens.core.protocols import Encoding as Encoding  # noqa: PLC0414  formats import it from here
from difflens.core.protocols import Extent, ModelFile, TensorSource
from difflens.core.records import TensorInfo

from .inner_files import InnerFile, Part

if TYPE_CHECKING:
    from array import array

    import numpy as np
    from numpy.typing import NDArray

_STEP = 1 << 16  # elements between two known places of a stream of varints
_PIECE = 1 << 20  # bytes looked at in one go
_SHOWN = 3  # names in one warning


class EncodedSource:
    """An open model whose tensors are encodings; a format adds its tensors to it."""

    def __init__(self, file: ModelFile, form: str) -> None:
        """Store the file and the name of the format; there are no tensors yet."""
        self.format = form
        self.file = file
        self.warnings: list[str] = []
        self.metadata: Mapping[str, str] = {}
        self.refused: list[str] = []
        self.aliases: dict[str, str] = {}
        self.tensors: dict[str, TensorInfo] = {}
        self.encodings: dict[str, Encoding] = {}
        self.opened: list[ModelFile | TensorSource] = []  # inside the file or beside it

    def add(self, info: TensorInfo, encoding: Encoding) -> None:
        """Add a tensor and its encoding."""
        self.tensors[info.name] = info
        self.encodings[info.name] = encoding

    def warn(self, what: str, names: Sequence[str]) -> None:
        """Warn of several tensors in one line, if there are any."""
        if names:
            shown = ", ".join(f"'{for_terminal(name)}'" for name in names[:_SHOWN])
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            self.warnings.append(f"{what}: {shown}{more}")

    def read_into(self, name: str, start: int, stop: int, buffer: memoryview) -> int:
        """Fill the buffer with bytes [start, stop) of the tensor and return how many."""
        try:
            encoding, size = self.encodings[name], self.tensors[name].size_bytes
        except KeyError:
            raise UnknownName("tensor", name, self.tensors) from None
        if not 0 <= start <= stop <= size or stop - start > len(buffer):
            wanted = f"[{start}, {stop}) of {size} bytes into a buffer of {len(buffer)}"
            raise ValueError(f"tensor {name!r}: cannot read {wanted}")
        return encoding.read_into(start, buffer[: stop - start])

    def encoding(self, name: str) -> Encoding:
        """Return how a tensor is stored."""
        return self.encodings[name]

    def __reduce__(self) -> Call:
        """Open it again in another process, and check that all its files are the same."""
        beside = [each for each in self.opened if not isinstance(each, InnerFile | TensorSource)]
        return as_call(_open_again, self.format, self.file, *beside)

    def confirm(self) -> None:
        """Raise `ChangedWhileReading` if a file is not the one that was opened."""
        self.file.confirm()
        for each in self.opened:
            each.confirm()

    def close(self) -> None:
        """Close the files."""
        for each in self.opened:
            each.close()
        self.file.close()


def _open_again(form: str, file: ModelFile, *_beside: ModelFile) -> TensorSource:
    from ..formats import source

    return source[form].plugin(file)


class Straight(NamedTuple):
    """Bytes as they are, from an offset of a file on."""

    file: ModelFile
    offset: int

    def read_into(self, start: int, buffer: memoryview) -> int:
        """Read once, into the caller's own buffer."""
        return self.file.read_into(self.offset + start, buffer)

    def place(self) -> tuple[ModelFile, int]:
        """Return the file that holds the bytes, and where they begin in it."""
        file, offset = self
        while isinstance(file, Part):
            offset += file.start
            file = file.outer
        return file, offset

    def extents(self, start: int, stop: int) -> Iterable[Extent]:
        """Return the one range, of a remote file."""
        file, offset = self.place()
        return (Extent(file, offset + start, offset + stop),) if hasattr(file, "segments") else ()


class Inline(NamedTuple):
    """Bytes a header held; few, and their total was checked."""

    data: bytes

    def read_into(self, start: int, buffer: memoryview) -> int:
        """Copy them."""
        buffer[:] = self.data[start : start + len(buffer)]
        return len(buffer)


class Varints:
    """`count` integers as varints; of each value the low `width` bytes are read.

    Where the n-th one begins nobody knows: one pass on the first read notes every 65,536th.
    """

    def __init__(self, file: ModelFile, place: range, count: int, width: int, what: str) -> None:
        """Store a range that was checked to lie in the file; nothing is read."""
        self._file = file
        self._place = place
        self._count = count
        self._width = width
        self._what = what
        self._lock = threading.Lock()
        self._starts: array[int] | None = None

    def __reduce__(self) -> Call:
        """Make it once in another process, which notes the places anew."""
        return as_call(Varints, self._file, self._place, self._count, self._width, self._what)

    def extents(self, start: int, stop: int) -> Iterable[Extent]:
        """Announce all of it with its beginning: the first read passes over everything."""
        del stop
        if start:
            return ()
        return Straight(self._file, self._place.start).extents(0, len(self._place))

    def check(self) -> None:
        """Raise unless there are as many integers as the shape asks for."""
        with self._lock:
            if self._starts is None:
                self._starts = self._index()

    def read_into(self, start: int, buffer: memoryview) -> int:
        """Decode the integers the range touches, a stretch at a time."""
        self.check()
        width, done = self._width, 0
        while done < len(buffer):
            step, skip = divmod(start + done, _STEP * width)
            data = self._decode(step)[skip : skip + len(buffer) - done]
            buffer[done : done + len(data)] = data
            done += len(data)
        return done

    def _index(self) -> array[int]:
        from array import array

        import numpy as np

        starts, seen, at = array("q", [self._place.start]), 0, self._place.start
        while at < self._place.stop:
            data = self._file.read(at, min(at + _PIECE, self._place.stop))
            ends = np.flatnonzero(np.frombuffer(data, np.uint8) < 0x80)
            marks = ends[_STEP - 1 - seen % _STEP :: _STEP]
            starts.extend((marks + (at + 1)).tolist())
            seen += len(ends)
            at += len(data)
        if self._place and self._file.read(self._place.stop - 1, self._place.stop) >= b"\x80":
            raise self._corrupt("its last number does not end")
        if seen != self._count:
            raise self._corrupt(f"its shape takes {self._count} values, there are {seen}")
        starts.append(self._place.stop)
        return starts

    def _decode(self, step: int) -> bytes:
        """Decode the stretch between two known places."""
        import numpy as np

        starts = self._starts
        if starts is None:  # pragma: no cover  check() came first
            raise self._corrupt("it was not checked")
        if starts[step + 1] - starts[step] > 10 * _STEP:
            raise self._corrupt("a number of over ten bytes")
        found = np.frombuffer(self._file.read(starts[step], starts[step + 1]), np.uint8)
        ends = np.flatnonzero(found < 0x80)
        begins = np.concatenate(([0], ends[:-1] + 1))
        lengths = ends - begins + 1
        if len(lengths) and int(lengths.max()) > 10:
            raise self._corrupt("a number of over ten bytes")
        values = np.zeros(len(ends), np.uint64)
        for byte in range(int(lengths.max()) if len(lengths) else 0):
            has = lengths > byte
            part = found[begins[has] + byte].astype(np.uint64) & np.uint64(0x7F)
            values[has] |= part << np.uint64(7 * byte)
        return values.astype(f"<u{self._width}").tobytes()

    def _corrupt(self, reason: str) -> CorruptFile:
        where = visible(str(self._file.path))
        return CorruptFile(where, f"tensor '{for_terminal(self._what)}': {reason}")


def count_varints(file: ModelFile, place: range) -> int:
    """Count the varints in a range that was checked to lie in the file."""
    import numpy as np

    count = 0
    for at in range(place.start, place.stop, _PIECE):
        data = file.read(at, min(at + _PIECE, place.stop))
        count += int(np.count_nonzero(np.frombuffer(data, np.uint8) < 0x80))
    return count


class Codes(NamedTuple):
    """Elements of `bits` bits, lowest first; `table` has the plain bytes of each code."""

    packed: Encoding
    bits: int
    elements: int
    table: tuple[bytes, ...]

    def read_into(self, start: int, buffer: memoryview) -> int:
        """Unpack whole groups of eight elements, which take whole bytes."""
        import numpy as np

        width = len(self.table[0])
        table = np.frombuffer(b"".join(self.table), np.uint8).reshape(-1, width)
        done, piece = 0, _PIECE // width
        while done < len(buffer):
            first = (start + done) // width // 8 * 8
            last = min(-(-(start + len(buffer)) // width), first + piece, self.elements)
            plain = table[self._codes(first, last)].tobytes()
            skip = start + done - first * width
            data = plain[skip : skip + len(buffer) - done]
            buffer[done : done + len(data)] = data
            done += len(data)
        return done

    def extents(self, start: int, stop: int) -> Iterable[Extent]:
        """Return the ranges of the packed bytes."""
        width = len(self.table[0])
        first, last = start // width // 8 * 8, -(-stop // width)
        return extents_of(self.packed, first * self.bits // 8, -(-last * self.bits // 8))

    def _codes(self, first: int, last: int) -> NDArray[np.uint8]:
        import numpy as np

        packed = bytearray(-(-(last - first) * self.bits // 8))
        self.packed.read_into(first * self.bits // 8, memoryview(packed))
        found = np.frombuffer(packed, np.uint8)
        if self.bits == 8:
            return found
        bits = np.unpackbits(found, bitorder="little")[: (last - first) * self.bits]
        return np.packbits(bits.reshape(-1, self.bits), axis=1, bitorder="little")[:, 0]


class Swapped(NamedTuple):
    """Big-endian numbers of `width` bytes."""

    stored: Encoding
    width: int

    def read_into(self, start: int, buffer: memoryview) -> int:
        """Read whole numbers and turn each around."""
        import numpy as np

        done, piece = 0, _PIECE // self.width * self.width
        while done < len(buffer):
            first = (start + done) // self.width * self.width
            last = min(-(-(start + len(buffer)) // self.width) * self.width, first + piece)
            numbers = bytearray(last - first)
            self.stored.read_into(first, memoryview(numbers))
            plain = np.frombuffer(numbers, np.uint8).reshape(-1, self.width)[:, ::-1].tobytes()
            skip = start + done - first
            data = plain[skip : skip + len(buffer) - done]
            buffer[done : done + len(data)] = data
            done += len(data)
        return done

    def extents(self, start: int, stop: int) -> Iterable[Extent]:
        """Return the ranges of the stored numbers."""
        first = start // self.width * self.width
        return extents_of(self.stored, first, -(-stop // self.width) * self.width)


class Repeated(NamedTuple):
    """`given` stored bytes, and from there on one value again and again."""

    stored: Encoding
    given: int
    last: bytes

    def read_into(self, start: int, buffer: memoryview) -> int:
        """Read the stored bytes, then repeat the last value."""
        here = max(0, min(self.given - start, len(buffer)))
        if here:
            self.stored.read_into(start, buffer[:here])
        phase = (start + here - self.given) % len(self.last)
        turned = self.last[phase:] + self.last[:phase]
        rest = len(buffer) - here
        buffer[here:] = (turned * (rest // len(turned) + 1))[:rest]
        return len(buffer)

    def extents(self, start: int, stop: int) -> Iterable[Extent]:
        """Return the ranges of the bytes that are stored."""
        return extents_of(self.stored, start, min(stop, self.given))


class Stacked(NamedTuple):
    """Pieces one after another along an axis: each row of the whole holds a run of every piece.

    `ends` are where the pieces' runs end within a row, in bytes; `row` is the last of them.
    """

    pieces: tuple[Encoding, ...]
    ends: tuple[int, ...]

    def read_into(self, start: int, buffer: memoryview) -> int:
        """Gather the runs the range touches."""
        done, row = 0, self.ends[-1]
        while done < len(buffer):
            number, place = divmod(start + done, row)
            which = bisect_right(self.ends, place)
            begin = self.ends[which - 1] if which else 0
            run = self.ends[which] - begin
            size = min(self.ends[which] - place, len(buffer) - done)
            at = number * run + place - begin
            self.pieces[which].read_into(at, buffer[done : done + size])
            done += size
        return done

    def extents(self, start: int, stop: int) -> Iterator[Extent]:
        """Yield the range of each piece that the rows touch."""
        row = self.ends[-1]
        first, last = start // row, -(-stop // row)
        for piece, begin, end in zip(self.pieces, (0, *self.ends), self.ends, strict=False):
            yield from extents_of(piece, first * (end - begin), last * (end - begin))
