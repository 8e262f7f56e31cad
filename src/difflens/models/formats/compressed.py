"""Compressed models: any of the formats in gzip, zstd, xz or bzip2, unpacked as it is read.

    gzip    1f 8b 08      its last 4 bytes give the size, as far as 32 bits hold it
    zstd    28 b5 2f fd   the frame may give the size
    xz      fd '7zXZ' 00  the index at its end gives the size
    bzip2   'BZh'         nothing does: it is unpacked once to learn it

Where the size that was given turns out wrong (several members in a row), it is counted instead.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn, Protocol

from difflens.core.addresses import Location
from difflens.core.errors import (
    INCOMPLETE,
    CorruptFile,
    LimitExceeded,
    MissingExtra,
    ModelError,
    UnknownFormat,
)
from difflens.core.escape import visible
from difflens.core.once import Call, as_call
from difflens.core.protocols import Encoding, ModelFile, TensorSource

from ..computed import WrappedSource
from ..containers.inner_files import Cursor, Unpacked, damage
from . import HEAD_BYTES, readers, source

_MAGIC = {
    b"\x1f\x8b\x08": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xfd7zXZ\x00": "xz",
    b"BZh": "bzip2",
}
_SMALL = 1 << 20  # so small a file is unpacked when it is opened, and its damage told at once
_MOST_MEMORY = 128 * 1024**2  # of a decompressor: xz -9 takes 65 MiB


class _Packing(NamedTuple):
    """How one kind of compression is undone."""

    make: Callable[[], Coder]
    errors: tuple[type[Exception], ...]
    size: int | None


def _kind(head: bytes) -> str:
    return next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), "")


def recognise(head: bytes, path: Location) -> bool:
    """Are these the first bytes of compressed data?"""
    del path
    return bool(_kind(head)) and (
        not head.startswith(b"BZh") or head[4:10] in (b"1AY&SY", b"\x17rE8P\x90")
    )


@source(recognise=recognise, suffixes=(".gz", ".zst", ".xz", ".bz2"))
def compressed(file: ModelFile) -> Compressed:
    """Any of the formats in gzip, zstd, xz or bzip2."""
    where = visible(str(file.path))
    kind = _kind(file.read(0, min(8, file.size)))
    if not kind:
        raise UnknownFormat(where, "it begins as nothing compressed does")
    packing = _PACKINGS[kind](file)
    about = f"the {kind} stream"
    begin = Chaining(file, packing.make, about, packing.errors)
    unpacked = Unpacked(file, begin, packing.size or 0, about)
    counted = packing.size is None or file.size <= _SMALL
    if counted:
        unpacked.measure()
    try:
        return Compressed(file, unpacked, kind)
    except ModelError:
        if counted or unpacked.size == unpacked.measure():
            raise
        return Compressed(file, unpacked, kind)


class Compressed(WrappedSource):
    """A model within a compressed file; the reader of its own format reads it."""

    def __init__(self, file: ModelFile, unpacked: Unpacked, kind: str) -> None:
        """Find the reader by the first unpacked bytes."""
        super().__init__(_open(unpacked, kind))
        self.format = f"{self.format} in {kind}"
        self._file = file
        self._unpacked = unpacked
        self._was_read = False

    def read_into(self, name: str, start: int, stop: int, buffer: memoryview) -> int:
        """Fill the buffer with bytes [start, stop) of the tensor and return how many."""
        self._was_read = True
        return super().read_into(name, start, stop, buffer)

    def encoding(self, name: str) -> Encoding:
        """Return how a tensor is stored in what is unpacked."""
        self._was_read = True
        return super().encoding(name)

    def __reduce__(self) -> Call:
        """Open it again in another process."""
        return as_call(compressed, self._file)

    def confirm(self) -> None:
        """Raise if the file has changed or, where tensors were read, its checksum is wrong.

        The checksum is known at the stream's end: what was not asked for is unpacked now.
        """
        if self._was_read:
            self._unpacked.finish()
        super().confirm()

    def close(self) -> None:
        """Forget what was unpacked, and close the file."""
        super().close()
        self._unpacked.close()
        self._file.close()


def _open(unpacked: Unpacked, kind: str) -> TensorSource:
    from ..refusals import looks_like, refusal

    head = unpacked.read(0, min(HEAD_BYTES, unpacked.size))
    where = visible(str(unpacked.path))
    error = refusal(head, unpacked.path, unpacked.size)
    if error:
        raise error
    inner = unpacked.path.with_suffix("") if unpacked.path.suffix else unpacked.path
    for entry in readers():
        if entry.options["recognise"](head, inner):
            if entry.plugin is compressed:
                raise CorruptFile(where, f"{_kind(head)} in {kind}: it is compressed twice")
            return entry.plugin(unpacked)
    seen = looks_like(head) or f"it begins with {head[:8].hex(' ')}"
    raise UnknownFormat(where, f"no reader knows what is in this {kind}: {seen}")


def _gzip(file: ModelFile) -> _Packing:
    import zlib

    size = int.from_bytes(file.read(max(0, file.size - 4), file.size), "little")
    while size < file.size * 0.99:  # 32 bits of it; weights pack by little, and never grow by more
        size += 1 << 32
    return _Packing(Gzip, (zlib.error,), size)


def _xz(file: ModelFile) -> _Packing:
    import lzma

    return _Packing(_xz_coder, (lzma.LZMAError, EOFError), _xz_size(file))


def _xz_coder() -> Coder:
    import lzma

    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MOST_MEMORY)


def _bzip2(file: ModelFile) -> _Packing:
    import bz2

    del file
    return _Packing(bz2.BZ2Decompressor, (OSError, ValueError, EOFError), None)


def _zstd(file: ModelFile) -> _Packing:
    library = _zstd_library()
    try:
        info = library.get_frame_info(file.read(0, min(18, file.size)))
    except library.ZstdError as error:
        where = visible(str(file.path))
        raise CorruptFile(where, "the zstd stream is damaged at its begin") from error
    return _Packing(library.ZstdDecompressor, (library.ZstdError, EOFError), info.decompressed_size)


def _zstd_library() -> Any:
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]
    except ImportError:  # before Python 3.14
        try:
            from backports import zstd
        except ImportError:
            raise MissingExtra("reading .zst", "zstd") from None
    return zstd


_PACKINGS = {"gzip": _gzip, "zstd": _zstd, "xz": _xz, "bzip2": _bzip2}


def _xz_size(file: ModelFile) -> int | None:
    """Add up what the index says; None if the file is not just one stream."""
    footer = file.read(max(0, file.size - 12), file.size)
    length = (int.from_bytes(footer[4:8], "little") + 1) * 4
    if footer[-2:] != b"YZ" or length > min(file.size - 24, 1 << 24):
        return None
    index = file.read(file.size - 12 - length, file.size - 12)
    numbers, number, shift = [], 0, 0
    for byte in index[1:-4]:
        number |= (byte & 0x7F) << shift
        shift = shift + 7 if byte & 0x80 else 0
        if not shift:
            numbers.append(number)
            number = 0
        elif shift > 63:
            return None
    blocks = numbers[1 : 1 + 2 * numbers[0]] if numbers else []
    packed = sum(-(-block // 4) * 4 for block in blocks[::2])
    return sum(blocks[1::2]) if 24 + packed + length == file.size else None


_STEP = 1 << 16


class Coder(Protocol):
    """What the decompressors of Python's bz2, lzma and zstd have in common."""

    @property
    def eof(self) -> bool:
        """Has the member ended?"""

    @property
    def needs_input(self) -> bool:
        """Is all input used up?"""

    @property
    def unused_data(self) -> bytes:
        """What follows the member's end."""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """Return at most so many bytes."""


class Gzip:
    """zlib's decompressor in the manner of the others; it can be copied as well."""

    def __init__(self) -> None:
        """Begin a member; zlib reads its header and checks its end."""
        self._coder = zlib.decompressobj(16 + zlib.MAX_WBITS)

    @property
    def eof(self) -> bool:
        """Has the member ended?"""
        return self._coder.eof

    @property
    def needs_input(self) -> bool:
        """Is all input used up?"""
        return not self._coder.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        """What follows the member's end."""
        return self._coder.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """Return at most so many bytes."""
        return self._coder.decompress(self._coder.unconsumed_tail + data, max_length)

    def copy(self) -> Gzip:
        """Return a second one in the same state."""
        other = Gzip()
        other._coder = self._coder.copy()
        return other


@dataclass(frozen=True)
class Chaining:
    """How to begin with the first of several members in a row."""

    packed: ModelFile
    make: Callable[[], Coder]
    about: str
    errors: tuple[type[Exception], ...]

    def __call__(self) -> Cursor:
        """Begin at the first byte."""
        return Chained(self.packed, self.make, self.about, self.errors)


class Chained:
    """A cursor over members in a row; keeps to the limits while it unpacks."""

    def __init__(
        self,
        packed: ModelFile,
        make: Callable[[], Coder],
        about: str,
        errors: tuple[type[Exception], ...],
    ) -> None:
        """Begin at the first byte; `errors` are what the decompressor raises on damage."""
        self._packed = packed
        self._make = make
        self._about = about
        self._errors = errors
        self._coder = make()
        self._at = 0
        self._given = 0
        self._limits = packed.limit("compressed_bytes"), packed.limit("compressed_ratio")

    def more(self, wanted: int) -> bytes:
        """Return the next bytes; at the end of a member go on with the one behind it."""
        parts = []
        while wanted:
            data = b""
            if self._coder.eof:
                data = self._coder.unused_data or self._next()
                if not data:
                    break
                self._coder = self._make()
            elif self._coder.needs_input:
                data = self._next()
            part = self._step(data, wanted)
            wanted -= len(part)
            parts.append(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def copy(self) -> Chained | None:
        """Return a second cursor at this place, if the decompressor can be copied."""
        copied = getattr(self._coder, "copy", None)
        if copied is None:
            return None
        other = object.__new__(Chained)
        other.__dict__.update(self.__dict__)
        other._coder = copied()
        return other

    def _next(self) -> bytes:
        stop = min(self._at + _STEP, self._packed.size)
        data = self._packed.read(self._at, stop)
        self._at = stop
        return data

    def _step(self, data: bytes, wanted: int) -> bytes:
        try:
            part = self._coder.decompress(data, wanted)
        except self._errors as error:
            self._fail(damage(error))
        if not part and not data and not self._coder.eof and self._at == self._packed.size:
            self._fail("ends before its data does")
        self._given += len(part)
        most, ratio = self._limits
        if self._given > most and self._given > ratio * self._at:
            reason = f"{self._about} unpacks to more than {ratio} times its size"
            hint = "raise it with --limit compressed_ratio=N if you trust the file"
            raise LimitExceeded(visible(str(self._packed.path)), reason, hint=hint)
        return part

    def _fail(self, what: str) -> NoReturn:
        where = visible(str(self._packed.path))
        hint = INCOMPLETE if what.startswith("ends") else ""
        raise CorruptFile(where, f"{self._about} {what}", hint=hint)
