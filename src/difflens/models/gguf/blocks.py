"""The tensor types of GGUF: the size of their blocks, and how those become plain numbers.

    Q4_0   d f16, 16 bytes: the low nibbles, then the high ones            (q - 8) d
    Q8_0   d f16, 32 signed bytes                                          q d
    Q4_K   d f16, m f16, 8 scales and 8 minima of 6 bits in 12 bytes,
           4 x 32 bytes of nibbles                                         q (d s) - m n
    Q5_K   the same, with 32 bytes of fifth bits before the nibbles
    Q6_K   128 bytes of low nibbles, 64 bytes of upper bit pairs,
           16 signed scales, d f16                                         (q - 32) (d s)

These five are decoded here, 2 to 6 times as fast as by the `gguf` package and equal to it bit for
bit; all others are decoded by the package. The sizes are our own, so that files open without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

from difflens.core.dtypes import bits
from difflens.core.errors import MissingExtra
from difflens.core.protocols import Extent, ModelFile

from ..containers.encodings import Straight

# A decoder reads an array of bytes and fills an array of bytes.
Decoder = Callable[[Any, Any], None]

_PIECE = 1 << 20  # decoded bytes that are worked on at once
_CACHED = 1 << 16  # elements: the package's own arrays stay in the cache, twice as fast

_PLAIN = {0: "F32", 1: "F16", 24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64", 30: "BF16"}
# Number: name, elements of a block, bytes of a block.
_DECODED = {
    2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20), 6: ("Q5_0", 32, 22), 7: ("Q5_1", 32, 24),
    8: ("Q8_0", 32, 34), 10: ("Q2_K", 256, 84), 11: ("Q3_K", 256, 110), 12: ("Q4_K", 256, 144),
    13: ("Q5_K", 256, 176), 14: ("Q6_K", 256, 210), 16: ("IQ2_XXS", 256, 66),
    17: ("IQ2_XS", 256, 74), 18: ("IQ3_XXS", 256, 98), 19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18), 21: ("IQ3_S", 256, 110), 22: ("IQ2_S", 256, 82),
    23: ("IQ4_XS", 256, 136), 29: ("IQ1_M", 256, 56), 34: ("TQ1_0", 256, 54),
    35: ("TQ2_0", 256, 66), 39: ("MXFP4", 32, 17), 40: ("NVFP4", 64, 36),
}  # fmt: skip
# Blocks of known size that the package does not decode; 31 to 38 are interleaved for one processor.
_OPAQUE = {
    15: ("Q8_K", 256, 292),
    31: ("Q4_0_4_4", 32, 18),
    32: ("Q4_0_4_8", 32, 18),
    33: ("Q4_0_8_8", 32, 18),
    36: ("IQ4_NL_4_4", 32, 18),
    37: ("IQ4_NL_4_8", 32, 18),
    38: ("IQ4_NL_8_8", 32, 18),
    41: ("Q1_0", 128, 18),
}
REFUSED = {
    4: "4 (Q4_2), which was removed before GGUF",
    5: "5 (Q4_3), which was removed before GGUF",
    9: "9 (Q8_1), whose blocks take 36 or 40 bytes depending on the writer",
}
# Where the 16-bit numbers of a block lie that a big-endian file swaps; no other type is defined.
_SWAPPED = {"Q4_0": (0,), "Q8_0": (0,), "Q4_K": (0, 2), "Q6_K": (208,), "MXFP4": (), "NVFP4": ()}


class BlockType(NamedTuple):
    """How a tensor is stored, and what its bytes become; no `decode` means: as they are."""

    name: str
    elements: int
    size: int
    dtype: str
    decode: Decoder | None = None

    @property
    def is_opaque(self) -> bool:
        """Are its blocks compared as bytes, because they cannot be decoded?"""
        return self.dtype == "U8"

    @property
    def stored(self) -> str | None:
        """The name to show for the storage; None for plain little-endian numbers."""
        plain = self.elements == 1 and not self.is_opaque
        if plain:
            return f"{self.name} big-endian" if self.decode else None
        return self.name

    @property
    def unit(self) -> int:
        """Count the bytes a decoded block takes."""
        return self.elements * bits(self.dtype) // 8


@cache
def block_type(number: int, *, big_endian: bool) -> BlockType | None:
    """Return the type with that number; None if there is no such type.

    >>> block_type(12, big_endian=False).name
    'Q4_K'
    """
    if number in _PLAIN:
        dtype = _PLAIN[number]
        size = bits(dtype) // 8
        return BlockType(dtype, 1, size, dtype, _swapper(size) if big_endian and size > 1 else None)
    if number in _DECODED:
        name, elements, size = _DECODED[number]
        decode = _OWN.get(name) or _by_package(name, elements, size)
        if not big_endian:
            return BlockType(name, elements, size, "F32", decode)
        if name in _SWAPPED:
            return BlockType(name, elements, size, "F32", _swapping(decode, name, size))
        return BlockType(name, elements, size, "U8")
    return BlockType(*_OPAQUE[number], "U8") if number in _OPAQUE else None


class Blocks(NamedTuple):
    """The encoding of a tensor whose blocks are decoded as they are read."""

    file: ModelFile
    begin: int
    number: int  # of the type
    big_endian: bool

    @property
    def stored(self) -> BlockType:
        """The type, which can be decoded."""
        stored = block_type(self.number, big_endian=self.big_endian)
        if stored is None or stored.decode is None:
            raise ValueError(f"blocks of type {self.number} are not decoded")
        return stored

    def extents(self, start: int, stop: int) -> Iterable[Extent]:
        """Return the range of the blocks, of a remote file."""
        stored = self.stored
        first, last = start // stored.unit, -(-stop // stored.unit)
        return Straight(self.file, self.begin).extents(first * stored.size, last * stored.size)

    def read_into(self, start: int, buffer: memoryview) -> int:
        """Decode the blocks that the range touches, straight into the buffer where possible."""
        import numpy as np

        stored = self.stored
        stop, unit, size = start + len(buffer), stored.unit, stored.size
        for first, last in _pieces(start, stop, unit):
            raw: Any = np.empty((last - first) * size, np.uint8)
            self.file.read_into(self.begin + first * size, memoryview(raw))
            low, high = max(start, first * unit), min(stop, last * unit)
            target = np.frombuffer(buffer[low - start : high - start], np.uint8)
            is_complete = high - low == (last - first) * unit
            decoded = target if is_complete else np.empty((last - first) * unit, np.uint8)
            with np.errstate(all="ignore"):  # a scale may be infinite: that is the file's affair
                stored.decode(raw, decoded)  # type: ignore[misc]
            if not is_complete:
                target[:] = decoded[low - first * unit : high - first * unit]
        return len(buffer)


def _pieces(start: int, stop: int, unit: int) -> Iterator[tuple[int, int]]:
    """Cut a range of bytes into ranges of blocks; one that is wanted in part stands alone."""
    while start < stop:
        first = start // unit
        is_part = start % unit or stop - start < unit
        count = 1 if is_part else min(stop - start, max(unit, _PIECE)) // unit
        yield first, first + count
        start = (first + count) * unit


def _swapper(size: int) -> Decoder:
    def swap(raw: Any, out: Any) -> None:
        out.view(f"<u{size}")[:] = raw.view(f">u{size}")

    return swap


def _swapping(decode: Decoder, name: str, size: int) -> Decoder:
    """Turn the numbers inside big-endian blocks round, then decode."""

    def swap(raw: Any, out: Any) -> None:
        blocks = raw.reshape(-1, size)
        for at in _SWAPPED[name]:
            blocks[:, at : at + 2] = blocks[:, [at + 1, at]]
        decode(raw, out)

    return swap


def _by_package(name: str, elements: int, size: int) -> Decoder:
    """Decode with `gguf.quants`, which is imported when the first block is read."""

    def decode(raw: Any, out: Any) -> None:
        try:
            from gguf.constants import GGMLQuantizationType
            from gguf.quants import dequantize

            kind = GGMLQuantizationType[name]
        except ImportError as error:
            raise MissingExtra(f"decoding {name}", "gguf") from error
        except KeyError as error:
            raise MissingExtra(f"decoding {name} with gguf 0.19 or later", "gguf") from error
        numbers, step = out.view("<f4"), _CACHED // elements
        for block in range(0, len(raw) // size, step):
            some = raw[block * size : (block + step) * size].reshape(1, -1)
            numbers[block * elements : (block + step) * elements] = dequantize(some, kind)[0]

    return decode


def _half(blocks: Any, at: int) -> Any:
    """Return the 16-bit float at that byte of every block, as a column."""
    return blocks[:, at : at + 2].copy().view("<f2").astype("f4")


def _q4_0(raw: Any, out: Any) -> None:
    blocks, numbers = raw.reshape(-1, 18), out.view("<f4").reshape(-1, 2, 16)
    nibbles = blocks[:, 2:]
    numbers[:, 0] = nibbles & 15
    numbers[:, 1] = nibbles >> 4
    numbers -= 8
    numbers *= _half(blocks, 0)[:, :, None]


def _q8_0(raw: Any, out: Any) -> None:
    import numpy as np

    blocks, numbers = raw.reshape(-1, 34), out.view("<f4").reshape(-1, 32)
    np.multiply(blocks[:, 2:].view("i1"), _half(blocks, 0), out=numbers, dtype="f4")


def _scaled(blocks: Any, numbers: Any) -> None:
    """Apply the scales and minima of Q4_K and Q5_K: 6 bits each, the upper two kept apart."""
    import numpy as np

    low, middle, high = blocks[:, 4:8], blocks[:, 8:12], blocks[:, 12:16]
    scales = np.hstack([low & 63, high & 15 | low >> 2 & 48]) * _half(blocks, 0)
    minima = np.hstack([middle & 63, high >> 4 | middle >> 2 & 48]) * _half(blocks, 2)
    numbers *= scales[:, :, None]
    numbers -= minima[:, :, None]


def _q4_k(raw: Any, out: Any) -> None:
    blocks, numbers = raw.reshape(-1, 144), out.view("<f4").reshape(-1, 8, 32)
    nibbles = blocks[:, 16:].reshape(-1, 4, 32)
    numbers[:, ::2] = nibbles & 15
    numbers[:, 1::2] = nibbles >> 4
    _scaled(blocks, numbers)


def _q5_k(raw: Any, out: Any) -> None:
    import numpy as np

    blocks, numbers = raw.reshape(-1, 176), out.view("<f4").reshape(-1, 8, 32)
    nibbles = blocks[:, 48:].reshape(-1, 4, 32)
    eights = blocks[:, 16:48].copy().view("u8")[:, None]  # eight bytes are shifted at once
    fifth = eights >> np.arange(8, dtype="u8")[:, None] & np.uint64(0x0101010101010101)
    fifth = (fifth << np.uint64(4)).view("u1")
    numbers[:, ::2] = nibbles & 15 | fifth[:, ::2]
    numbers[:, 1::2] = nibbles >> 4 | fifth[:, 1::2]
    _scaled(blocks, numbers)


def _q6_k(raw: Any, out: Any) -> None:
    blocks, numbers = raw.reshape(-1, 210), out.view("<f4").reshape(-1, 2, 4, 32)
    low, high = blocks[:, :128].reshape(-1, 2, 2, 32), blocks[:, 128:192].reshape(-1, 2, 32)
    scales = blocks[:, 192:208].view("i1") * _half(blocks, 208)
    numbers[:, :, 0] = low[:, :, 0] & 15 | (high & 3) << 4
    numbers[:, :, 1] = low[:, :, 1] & 15 | (high & 12) << 2
    numbers[:, :, 2] = low[:, :, 0] >> 4 | high & 48
    numbers[:, :, 3] = low[:, :, 1] >> 4 | (high & 192) >> 2
    numbers -= 32
    numbers = numbers.reshape(-1, 16, 16)
    numbers *= scales[:, :, None]


_OWN: dict[str, Decoder] = {
    "Q4_0": _q4_0,
    "Q8_0": _q8_0,
    "Q4_K": _q4_k,
    "Q5_K": _q5_k,
    "Q6_K": _q6_k,
}
