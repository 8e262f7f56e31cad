"""How tensors are cut into chunks, and how the words of each dtype are read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Protocol

from difflens.core.buffers import ThreadBuffers
from difflens.core.dtypes import BITS
from difflens.core.errors import ChangedWhileReading
from difflens.core.records import TensorInfo

Buffer = bytes | bytearray | memoryview
Kind = tuple[int, int, int]  # bytes of a word, bits of the mantissa, bits of the exponent

_KINDS: dict[str, Kind] = {
    "F64": (8, 52, 11),
    "F32": (4, 23, 8),
    "C64": (4, 23, 8),
    "F16": (2, 10, 5),
    "BF16": (2, 7, 8),
    "F8_E4M3": (1, 3, 4),
    "F8_E4M3FNUZ": (1, 3, 4),
    "F8_E5M2": (1, 2, 5),
    "F8_E5M2FNUZ": (1, 2, 5),
}
_MOST_BYTES, _MOST_WORDS = 1 << 22, 1 << 20


class Readable(Protocol):
    """What chunks are read from: an open model, or a model as a patch makes it."""

    @property
    def tensors(self) -> Mapping[str, TensorInfo]:
        """The tensors by name."""

    def read_into(self, name: str, start: int, stop: int, buffer: memoryview) -> int:
        """Fill the buffer with bytes [start, stop) of the tensor and return how many."""


def kind_of(dtype: str) -> Kind:
    """Return how to read the words of a dtype; packed and unknown ones are read as bytes.

    >>> kind_of("BF16"), kind_of("I64"), kind_of("F4")
    ((2, 7, 8), (8, 0, 0), (1, 0, 0))
    """
    kind = _KINDS.get(dtype)
    if kind:
        return kind
    return (BITS[dtype] // 8 if dtype[0] in "IU" else 1, 0, 0)


def chunk_bytes(dtype: str) -> int:
    """Return the size of a chunk: at most a megaword and 4 MiB."""
    return min(_MOST_BYTES, _MOST_WORDS * kind_of(dtype)[0])


def chunks_of(info: TensorInfo) -> list[tuple[int, int]]:
    """Cut a tensor into chunks: the first byte and the end of each."""
    size, step = info.size_bytes, chunk_bytes(info.dtype)
    return [(start, min(start + step, size)) for start in range(0, size, step)]


def read_range(source: Readable, name: str, start: int, stop: int, view: memoryview) -> memoryview:
    """Read bytes [start, stop) of a tensor into memory, and return that."""
    got = source.read_into(name, start, stop, view)
    if got != stop - start:
        raise ChangedWhileReading(name, f"{stop - start} bytes expected, {got} came")
    return view


def read_whole(source: Readable, info: TensorInfo, buffers: ThreadBuffers) -> Iterator[memoryview]:
    """Yield the bytes of a tensor chunk by chunk; each is good until the next."""
    for start, stop in chunks_of(info):
        yield read_range(source, info.name, start, stop, buffers.get("whole", stop - start))


def digest(data: bytes | memoryview) -> bytes:
    """Return the strong digest of a chunk."""
    return hashlib.blake2b(data, digest_size=32).digest()


class Content:
    """The digest of a model's tensors, whatever file they are in: chunks in the order of names."""

    def __init__(self) -> None:
        """Begin without tensors."""
        self._hashes: dict[str, hashlib.blake2b] = {}
        self._infos: dict[str, TensorInfo] = {}

    def add(self, info: TensorInfo, chunk: bytes) -> None:
        """Add the digest of the next chunk of a tensor."""
        self.declare(info)
        self._hashes[info.name].update(chunk)

    def declare(self, info: TensorInfo) -> None:
        """Add a tensor, which may have no chunk."""
        if info.name not in self._hashes:
            self._hashes[info.name] = hashlib.blake2b(digest_size=32)
            self._infos[info.name] = info

    def digest(self) -> bytes:
        """Return the digest of all tensors."""
        total = hashlib.blake2b(digest_size=32)
        for name in sorted(self._hashes):
            total.update(described(self._infos[name]) + self._hashes[name].digest())
        return total.digest()


def described(info: TensorInfo) -> bytes:
    """Return what identifies a tensor beside its values."""
    shape = ",".join(map(str, info.shape))
    name = info.name.encode("utf-8", "surrogatepass")
    return len(name).to_bytes(8, "little") + name + f"{info.dtype}[{shape}]".encode() + b"\0"
