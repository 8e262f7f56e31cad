"""Compressed models: any of the formats in gzip, zstd, xz or bzip2, unpacked as it is read.

    gzip    1f 8b 08      its last 4 bytes give the size, as far as 32 bits hold it
    zstd    28 b5 2f fd   the frame may give the size
    xz      fd '7zXZ' 00  the index at its end gives the size
    bzip2   'BZh'         nothing does: it is unpacked once to learn it

Where the size that was given turns out wrong (several members in a row), it is counted instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import CorruptFile, MissingExtra, ModelError, UnknownFormat
from ..escape import visible
from ..protocols import ModelFile, TensorSource
from ..records import TensorInfo
from . import HEAD_BYTES, readers, source
from .containers.chained import Chained, Coder, Gzip
from .containers.stream import Unpacked

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


def recognise(head: bytes, path: Path) -> bool:
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

    def begin() -> Chained:
        return Chained(file, packing.make, about, packing.errors)

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


class Compressed:
    """A model within a compressed file; what it holds is its own reader's."""

    def __init__(self, file: ModelFile, unpacked: Unpacked, kind: str) -> None:
        """Find the reader by the first unpacked bytes."""
        self._file = file
        self._unpacked = unpacked
        self._was_read = False
        self._model = _open(unpacked, kind)
        self.format = f"{self._model.format} in {kind}"
        self.tensors: Mapping[str, TensorInfo] = self._model.tensors
        self.metadata: Mapping[str, str] = self._model.metadata
        self.warnings: list[str] = self._model.warnings
        self.refused: list[str] = getattr(self._model, "refused", [])
        self.aliases: dict[str, str] = getattr(self._model, "aliases", {})

    def read_into(self, name: str, start: int, stop: int, buffer: memoryview) -> int:
        """Fill the buffer with bytes [start, stop) of the tensor and say how many."""
        self._was_read = True
        return self._model.read_into(name, start, stop, buffer)

    def confirm(self) -> None:
        """Raise if the file has changed or, where tensors were read, its checksum is wrong.

        The checksum is known at the stream's end: what was not asked for is unpacked now.
        """
        if self._was_read:
            self._unpacked.finish()
        self._model.confirm()

    def close(self) -> None:
        """Forget what was unpacked, and give the descriptor back."""
        self._model.close()
        self._unpacked.close()
        self._file.close()


def _open(unpacked: Unpacked, kind: str) -> TensorSource:
    from .refusals import looks_like, refusal

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
            return entry.plugin(unpacked)  # type: ignore[no-any-return]
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

    def make() -> Coder:
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MOST_MEMORY)

    return _Packing(make, (lzma.LZMAError, EOFError), _xz_size(file))


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
    """Add up what the index says; None where the file is not just one stream."""
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
