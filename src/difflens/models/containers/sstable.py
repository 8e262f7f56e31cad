"""The sorted table of LevelDB, in which TensorFlow keeps the index of a checkpoint.

    blocks       contents, one byte 0 plain or 1 snappy, CRC-32C of both, masked
    contents     entries: shared, own, size as varints; own bytes of the key; the value
                 then the places of keys written whole, four bytes each, and their count
    index block  the last key of each block -> its offset and size as varints
    footer       48 bytes: the places of two index blocks, zeros, magic 0xdb4775248b80fb57

Keys are sorted: a key that is not above the one before it is refused, so none comes twice.
"""

from __future__ import annotations

from collections.abc import Iterator

from difflens.core.crc32c import crc32c, masked
from difflens.core.errors import INCOMPLETE, CorruptFile, LimitExceeded
from difflens.core.escape import visible
from difflens.core.protocols import ModelFile

from .protobuf import varint

MAGIC = bytes.fromhex("57fb808b247547db")
_FOOTER = 48
_TRAILER = 5


class Table:
    """An open table: its entries in order, each block checked before it is used."""

    def __init__(self, file: ModelFile) -> None:
        """Look at a file."""
        self._file = file
        self._where = visible(str(file.path))

    def entries(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield every key with its value."""
        last: bytes | None = None
        for _, handle in self._block(*self._root()):
            offset, at = varint(handle, 0)
            size, end = varint(handle, at) if at > 0 else (0, -1)
            if end != len(handle):
                raise self._corrupt("an entry of its index names no block")
            for key, value in self._block(offset, size):
                if last is not None and key <= last:
                    raise self._corrupt("its keys are not in order, or one comes twice")
                yield key, value
                last = key

    def _root(self) -> tuple[int, int]:
        """Find the index block."""
        size = self._file.size
        footer = self._file.read(max(0, size - _FOOTER), size)
        if len(footer) < _FOOTER or footer[-8:] != MAGIC:
            reason = "it does not end as a table does, with 48 bytes and a magic"
            raise CorruptFile(self._where, reason, hint=INCOMPLETE)
        at, numbers = 0, []
        for _ in range(4):
            number, at = varint(footer[:40], at)
            if at < 0:
                raise self._corrupt("its footer names no index block")
            numbers.append(number)
        if footer[at:40].strip(b"\0"):
            raise self._corrupt("its footer holds bytes that mean nothing")
        return numbers[2], numbers[3]

    def _block(self, offset: int, size: int) -> Iterator[tuple[bytes, bytes]]:
        yield from self._entries(self._contents(offset, size), offset)

    def _contents(self, offset: int, size: int) -> bytes:
        """Read a block and check its sum."""
        end, limit = offset + size + _TRAILER, self._file.limit("json_header")
        if end > self._file.size - _FOOTER:
            reason = f"a block ends at byte {end}, the blocks at {self._file.size - _FOOTER}"
            raise CorruptFile(self._where, reason, hint=INCOMPLETE)
        if size > limit:
            reason = f"a block has {size} bytes, the limit is {limit}"
            raise LimitExceeded(self._where, reason, hint="raise it with --limit json_header=N")
        stored = self._file.read(offset, end)
        found, said = masked(crc32c(stored[:-4])), int.from_bytes(stored[-4:], "little")
        if found != said:
            reason = f"the block at byte {offset} has the checksum {found:08x}, {said:08x} is kept"
            raise CorruptFile(self._where, reason, hint="the file is damaged: fetch it again")
        kind = stored[size]
        if kind == 0:
            return stored[:size]
        if kind != 1:
            raise self._corrupt(f"the block at byte {offset} is packed in way {kind}, 1 is snappy")
        try:
            return unpack(stored[:size])
        except Unpackable as error:
            raise self._corrupt(f"the snappy block at byte {offset}: {error}") from error

    def _entries(self, block: bytes, offset: int) -> Iterator[tuple[bytes, bytes]]:
        restarts = int.from_bytes(block[-4:], "little") if len(block) >= 4 else -1
        stop = len(block) - 4 - 4 * restarts
        if restarts < 0 or stop < 0:
            raise self._corrupt(f"the block at byte {offset} has no list of whole keys")
        at, key = 0, b""
        while at < stop:
            shared, at = varint(block, at)
            own, at = varint(block, at) if at > 0 else (0, -1)
            size, at = varint(block, at) if at > 0 else (0, -1)
            if at < 0 or shared > len(key) or at + own + size > stop:
                raise self._corrupt(f"an entry of the block at byte {offset} ends past it")
            key = key[:shared] + block[at : at + own]
            at += own + size
            yield key, block[at - size : at]

    def _corrupt(self, reason: str) -> CorruptFile:
        return CorruptFile(self._where, reason)


# length of what comes out, varint; then elements, the low two bits of the first byte say which:
# 0 literal: length - 1 in six bits, or in one to four bytes that follow; then the bytes
# 1 copy: length - 4 in three bits, offset in eleven     2, 3 copy: offset in two, four bytes

_MOST_TIMES = 32  # three bytes copy at most 64


class Unpackable(ValueError):
    """These bytes are no snappy data; the caller knows where they are from."""


def unpack(data: bytes) -> bytes:
    r"""Unpack a block; what it claims is checked before anything is made.

    >>> unpack(b"\x05\x10hello")
    b'hello'
    """
    wanted, at = varint(data, 0)
    if at < 0:
        raise Unpackable("its length does not end")
    if wanted > _MOST_TIMES * len(data):
        raise Unpackable(f"{len(data)} bytes claim to unpack to {wanted}")
    made = bytearray()
    while at < len(data):
        tag = data[at]
        at += 1
        at = (_copy if tag & 3 else _literal)(data, tag, at, made)
        if len(made) > wanted:
            break
    if len(made) != wanted:
        raise Unpackable(f"it claims {wanted} bytes and unpacks to {len(made)}")
    return bytes(made)


def _literal(data: bytes, tag: int, at: int, made: bytearray) -> int:
    length = (tag >> 2) + 1
    if length > 60:
        width = length - 60
        length = int.from_bytes(data[at : at + width], "little") + 1
        at += width
    if at + length > len(data):
        raise Unpackable(f"a literal of {length} bytes ends past the block")
    made += data[at : at + length]
    return at + length


def _copy(data: bytes, tag: int, at: int, made: bytearray) -> int:
    width = (0, 1, 2, 4)[tag & 3]
    offset = int.from_bytes(data[at : at + width], "little")
    length = (tag >> 2) + 1
    if width == 1:
        offset |= (tag >> 5) << 8
        length = (tag >> 2 & 7) + 4
    if at + width > len(data) or not 0 < offset <= len(made):
        raise Unpackable(f"a copy from {offset} bytes back, {len(made)} are there")
    start = len(made) - offset
    piece = bytes(made[start : start + length])
    made += (piece * (length // len(piece) + 1))[:length]
    return at + width
