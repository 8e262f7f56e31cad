"""Files inside a file: a range of it, bytes read from it, or packed data.

Packed data are unpacked forward in bounded memory, as far as anybody asks:

    packed:    [......................................]
    unpacked:  blocks of 1 MiB    |s       s     [####]>    s: states kept, to go back to
                                                  the last blocks, kept for the threads behind

Threads read one tensor at several places at once. So blocks stay for a while, and `Turns` keeps
the threads together: a stream that is begun anew for every read would take for ever.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NoReturn, Protocol

from difflens.core.errors import CorruptFile
from difflens.core.escape import visible
from difflens.core.once import Call, as_call
from difflens.core.protocols import ModelFile
from difflens.storage.places import gather

from .blocks import BLOCKS, Turns


class InnerFile:
    """A file inside another one; whoever opened the outer file closes it."""

    def __init__(self, outer: ModelFile, size: int) -> None:
        """Store the outer file, and the size of the inner one."""
        self.path = outer.path
        self.size = size
        self.outer = outer

    def limit(self, name: str) -> int:
        """Return a limit by name."""
        return self.outer.limit(name)

    def confirm(self) -> None:
        """Raise `ChangedWhileReading` if the outer file is not the one that was opened."""
        self.outer.confirm()

    def close(self) -> None:
        """Leave the outer file open: others may read other parts of it."""


class Part(InnerFile):
    """Bytes [start, start + size) of another file."""

    def __init__(self, outer: ModelFile, start: int, size: int) -> None:
        """Store a range that was checked to lie within the file."""
        super().__init__(outer, size)
        self.start = start

    def __reduce__(self) -> Call:
        """Make it once in another process."""
        return as_call(Part, self.outer, self.start, self.size)

    def read(self, start: int, stop: int) -> bytes:
        """Return bytes [start, stop) of the part."""
        return self.outer.read(self.start + start, self.start + min(stop, self.size))

    def read_into(self, start: int, buffer: memoryview) -> int:
        """Fill the buffer from byte `start` of the part on."""
        return self.outer.read_into(self.start + start, buffer[: max(0, self.size - start)])

    def gather(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Fetch small ranges of the part at the same time, if the outer file is remote."""
        gather(self.outer, ((self.start + start, self.start + stop) for start, stop in ranges))


class BytesPart(InnerFile):
    """Bytes in memory that were read from a file, such as a value inside a pickle."""

    def __init__(self, outer: ModelFile, data: bytes) -> None:
        """Store the bytes, and the file they come from for its path and its limits."""
        super().__init__(outer, len(data))
        self._data = data

    def __reduce__(self) -> Call:
        """Make it once in another process."""
        return as_call(BytesPart, self.outer, self._data)

    def read(self, start: int, stop: int) -> bytes:
        """Return bytes [start, stop)."""
        return self._data[start:stop]

    def read_into(self, start: int, buffer: memoryview) -> int:
        """Fill the buffer from byte `start` on."""
        part = self._data[start : start + len(buffer)]
        buffer[: len(part)] = part
        return len(part)


BLOCK = 1 << 20
_WINDOW = 40  # blocks a reader may be ahead of another, at most
_STEP = 1 << 16  # packed bytes taken at a time
_EVERY, _MOST_STATES = 32, 64


class Cursor(Protocol):
    """A place in a stream that is being unpacked."""

    def more(self, wanted: int) -> bytes:
        """Return the next bytes, `wanted` of them unless the stream ends before; checks its end."""

    def copy(self) -> Cursor | None:
        """Return a second cursor at this place, or None if the library cannot."""


class Unpacked(InnerFile):
    """The content of a packed file, as a file; whoever opened the packed file closes it."""

    def __init__(
        self, file: ModelFile, begin: Callable[[], Cursor], size: int, about: str = "the stream"
    ) -> None:
        """Store the expected size; nothing is unpacked yet."""
        super().__init__(file, size)
        self._begin = begin
        self._about = about
        self._serial = BLOCKS.serial()
        self._turns = Turns(_window)
        self._cursor: Cursor | None = None
        self._next = 0  # the block the cursor is at
        self._states: dict[int, Cursor] = {}
        self._every = _EVERY
        self._ended = False

    def __reduce__(self) -> Call:
        """Unpack it once in another process; `begin` has to be a record there."""
        return as_call(Unpacked, self.outer, self._begin, self.size, self._about)

    def read(self, start: int, stop: int) -> bytes:
        """Return bytes [start, stop)."""
        buffer = bytearray(max(0, min(stop, self.size) - start))
        self.read_into(start, memoryview(buffer))
        return bytes(buffer)

    def read_into(self, start: int, buffer: memoryview) -> int:
        """Fill the buffer from byte `start` on, as far as the stream goes."""
        wanted = max(0, min(len(buffer), self.size - start))
        done = 0
        while done < wanted:
            index, skipped = divmod(start + done, BLOCK)
            part = self._block(index)[skipped : skipped + wanted - done]
            buffer[done : done + len(part)] = part
            done += len(part)
        return done

    def measure(self) -> int:
        """Unpack all of it to learn its size, where nobody could promise one."""
        with self._turns.lock:
            cursor, at = self._begin(), 0
            while len(block := cursor.more(BLOCK)) == BLOCK:
                at += 1
                if at % self._every == 0 and at not in self._states:
                    self._remember(at, cursor)
            self.size = at * BLOCK + len(block)
            self._cursor, self._ended = None, True
        BLOCKS.drop(self._serial)  # the last one may have been cut by a wrong promise
        return self.size

    def finish(self) -> None:
        """Unpack to the end, once, so that what the stream says of itself is checked."""
        with self._turns.lock:
            if not self._ended:
                self._unpack(self._last)

    def close(self) -> None:
        """Forget what was unpacked; whoever opened the packed file closes it."""
        with self._turns.lock:
            self._cursor, self._next = None, 0
            self._states.clear()
        BLOCKS.drop(self._serial)

    @property
    def _last(self) -> int:
        return max(0, self.size - 1) // BLOCK

    def _block(self, index: int) -> bytes:
        self._turns.at(index)
        block = BLOCKS.get(self._serial, index)
        if block is not None:
            return block
        with self._turns.lock:
            self._turns.wait(index)
            block = BLOCKS.get(self._serial, index)
            return self._unpack(index) if block is None else block

    def _unpack(self, index: int) -> bytes:
        """Unpack up to a block from the nearest place before it, and return the block."""
        cursor, at = self._nearest(index)
        self._cursor = None  # after an error there is no cursor to go on with
        while True:
            if at % self._every == 0 and at not in self._states:
                self._remember(at, cursor)
            wanted = min(BLOCK, self.size - at * BLOCK)
            block = cursor.more(wanted)
            if len(block) != wanted:
                self._fail(f"ends at byte {at * BLOCK + len(block)}, {self.size} were promised")
            if at == self._last:
                if cursor.more(1):
                    self._fail(f"goes on after the {self.size} bytes that were promised")
                self._ended = True
            if index - at < _window():
                BLOCKS.put(self._serial, at, block)
            if at == index:
                break
            at += 1
        if index < self._last:  # at the end nobody reads on: the memory is given back
            self._cursor, self._next = cursor, index + 1
        return block

    def _nearest(self, index: int) -> tuple[Cursor, int]:
        at = max((place for place in self._states if place <= index), default=-1)
        if self._cursor is not None and at <= self._next <= index:
            return self._cursor, self._next
        copied = self._states[at].copy() if at >= 0 else None
        return (copied, at) if copied else (self._begin(), 0)

    def _remember(self, at: int, cursor: Cursor) -> None:
        """Keep a state every so many blocks; where they become many, every second one."""
        copied = cursor.copy() if at else None
        if copied is None:
            return
        self._states[at] = copied
        if len(self._states) > _MOST_STATES:
            self._every *= 2
            self._states = {at: each for at, each in self._states.items() if at % self._every == 0}

    def _fail(self, what: str) -> NoReturn:
        raise CorruptFile(visible(str(self.path)), f"{self._about} {what}")


def _window() -> int:
    """Say how far apart threads may read, so that the blocks between them are still there."""
    return max(2, min(_WINDOW, BLOCKS.share() // BLOCK - 2))


def damage(error: Exception) -> str:
    """Describe the damage in the words of the decompressor, if they say more than that."""
    said = str(error).rpartition(": ")[2].strip()
    return f"is damaged: {said}" if said.startswith(("incorrect", "unknown")) else "is damaged"


class Inflated(Unpacked):
    """A deflated range of a file, as the file it was."""

    def __init__(self, packed: ModelFile, size: int, crc: int | None, about: str) -> None:
        """Store the size and the checksum that its container states."""
        super().__init__(packed, Deflating(packed, -zlib.MAX_WBITS, about, crc), size, about)


@dataclass(frozen=True)
class Deflating:
    """How to begin a deflated stream."""

    packed: ModelFile
    bits: int
    about: str
    crc: int | None = None

    def __call__(self) -> Cursor:
        """Begin at the first byte."""
        return Deflate(self.packed, self.bits, self.about, self.crc)


class Deflate:
    """A cursor in a deflated stream: raw with its checksum, or with zlib's own header and end."""

    def __init__(self, packed: ModelFile, bits: int, about: str, crc: int | None = None) -> None:
        """Begin at the first byte."""
        self._packed = packed
        self._about = about
        self._coder = zlib.decompressobj(bits)
        self._wanted_crc = crc
        self._crc = 0
        self._at = 0
        self._rest = b""

    def more(self, wanted: int) -> bytes:
        """Return the next bytes, and at the end check that nothing is missing or left."""
        parts = []
        while wanted and not self._coder.eof:
            part = self._step(wanted)
            wanted -= len(part)
            parts.append(part)
        if wanted:
            self._check_end()
        block = b"".join(parts) if len(parts) != 1 else parts[0]
        if self._wanted_crc is not None:
            self._crc = zlib.crc32(block, self._crc)
            if wanted and self._crc != self._wanted_crc:
                said = f"has checksum {self._crc:08x}, {self._wanted_crc:08x} was promised"
                self._fail(said)
        return block

    def copy(self) -> Deflate:
        """Return a second cursor at this place."""
        other = object.__new__(Deflate)
        other.__dict__.update(self.__dict__)
        other._coder = self._coder.copy()
        return other

    def _step(self, wanted: int) -> bytes:
        taken = self._rest
        if not taken:
            stop = min(self._at + _STEP, self._packed.size)
            taken = self._packed.read(self._at, stop)
            self._at = stop
        try:
            part = self._coder.decompress(taken, wanted)
        except zlib.error as error:
            self._fail(damage(error))
        self._rest = self._coder.unconsumed_tail
        if not taken and not part and not self._coder.eof:
            self._fail("ends before its data does")
        return part

    def _check_end(self) -> None:
        left = len(self._coder.unused_data) + self._packed.size - self._at
        if left:
            self._fail(f"is followed by {left} bytes that belong to nothing")

    def _fail(self, what: str) -> NoReturn:
        raise CorruptFile(visible(str(self._packed.path)), f"{self._about} {what}")
