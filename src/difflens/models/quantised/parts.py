"""The stored parts of quantised weights: looked up by name, read as numbers, unpacked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import prod
from typing import Any, NamedTuple

from difflens.core.dtypes import bits
from difflens.core.escape import for_terminal
from difflens.core.protocols import TensorSource
from difflens.core.records import TensorInfo

from ..computed import PieceCache

_PLAIN = {
    "BOOL": "u1",
    "U8": "u1",
    "I8": "i1",
    "I16": "<i2",
    "U16": "<u2",
    "I32": "<i4",
    "U32": "<u4",
    "I64": "<i8",
    "U64": "<u8",
    "F16": "<f2",
    "BF16": "<u2",
    "F32": "<f4",
    "F64": "<f8",
}
SMALL_FLOATS = frozenset({"F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ"})
SCALES = frozenset({"F16", "BF16", "F32", "F64", "F8_E8M0", *SMALL_FLOATS})
_SLAB = 8 << 20  # bytes of neighbouring columns that are read together, to avoid short reads
_SLABS = 6  # slabs in the cache: a weight, its scales and its zeros, for two weights
LONGEST_UNIT = 1 << 22  # most elements that can be decoded at once

# The sixteen values of E2M1: sign, two bits of exponent, one of mantissa.
E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0)


class Unfit(Exception):
    """The parts contradict each other or the scheme, so they are not decoded."""


class DecodedWeight(NamedTuple):
    """A weight that can be decoded: its dtype and shape, and the names of its parts.

    `make(first, last)` computes some of its elements, in multiples of `unit`.
    """

    info: TensorInfo
    unit: int
    make: Callable[[int, int], Any]
    names: tuple[str, ...]


class Parts:
    """The parts of the quantised weights of an open model, and its quantisation settings."""

    def __init__(self, source: TensorSource, settings: Mapping[str, Any]) -> None:
        """Store the source; read nothing."""
        self._source = source
        self._slabs = PieceCache(_SLABS)
        self.settings = settings

    def find(self, name: str) -> TensorInfo | None:
        """Look up a part by name; None if there is no such part."""
        return self._source.tensors.get(name)

    def require(self, name: str, dtypes: frozenset[str] | set[str], rank: int) -> TensorInfo:
        """Look up a part by name; raise `Unfit` if it is missing or of another type or rank."""
        info = self.find(name)
        if info is None:
            raise Unfit(f"there is no '{for_terminal(name)}'")
        if info.dtype not in dtypes or len(info.shape) != rank:
            actual = f"{info.dtype} {list(info.shape)}"
            wanted = f"{rank} dimensions of {' or '.join(sorted(dtypes))}"
            raise Unfit(f"'{for_terminal(name)}' is {actual}, expected {wanted}")
        return info

    def bytes_of(self, name: str, start: int, stop: int) -> Any:
        """Read bytes [start, stop) of a part."""
        import numpy as np

        raw: Any = np.empty(stop - start, np.uint8)
        self._source.read_into(name, start, stop, memoryview(raw))
        return raw

    def elements(self, name: str, first: int, last: int) -> Any:
        """Read elements [first, last) of a part: integers unchanged, floats as F32."""
        dtype = self._source.tensors[name].dtype
        size = bits(dtype) // 8
        return _numbers(self.bytes_of(name, first * size, last * size), dtype)

    def read_all(self, name: str) -> Any:
        """Read all elements of a small part."""
        info = self._source.tensors[name]
        return self.elements(name, 0, info.count).reshape(info.shape)

    def columns(
        self,
        name: str,
        first: int,
        last: int,
        lines: tuple[int, int],
        width: int,
        *,
        raw: bool = False,
    ) -> Any:
        """Read columns [first, last) of some lines, each of `width` elements; `raw`: as bytes."""
        import numpy as np

        dtype = self._source.tensors[name].dtype
        size = bits(dtype) // 8
        step = max(1, _SLAB // ((lines[1] - lines[0]) * size))
        pieces = []
        while first < last:
            begin = first - first % step
            end = min(begin + step, width)
            span = begin * size, end * size
            slab = self._slabs.get(
                (name, lines, begin), partial(self._slab, name, lines, width * size, span)
            )
            stop = min(last, end)
            pieces.append(slab[:, (first - begin) * size : (stop - begin) * size])
            first = stop
        columns = np.concatenate(pieces, axis=1)
        return columns if raw else _numbers(columns, dtype)

    def _slab(self, name: str, lines: tuple[int, int], width: int, span: tuple[int, int]) -> Any:
        """Read the same range of bytes from every line."""
        import numpy as np

        if span == (0, width):
            return self.bytes_of(name, lines[0] * width, lines[1] * width).reshape(-1, width)
        slab: Any = np.empty((lines[1] - lines[0], span[1] - span[0]), np.uint8)
        for line in range(len(slab)):
            start = (lines[0] + line) * width
            view = memoryview(slab[line])
            self._source.read_into(name, start + span[0], start + span[1], view)
        return slab


def decoded_as(name: str, shape: tuple[int, ...], stored: str) -> TensorInfo:
    """Describe a decoded weight; `stored` names its encoding."""
    if not prod(shape):
        raise Unfit("it has no elements")
    return TensorInfo(name, "F32", shape, stored)


def unpack(words: Any, width: int) -> Any:
    """Unpack integers of `width` bits from rows of 32-bit words: dense, the lowest bits first."""
    import numpy as np

    rows, count = words.shape
    octets = np.ascontiguousarray(words).view(np.uint8)
    if width == 8:
        return octets
    if width in (2, 4):
        apart: Any = np.empty((*octets.shape, 8 // width), np.uint8)
        for place in range(8 // width):
            np.right_shift(octets, place * width, out=apart[..., place])
        apart &= (1 << width) - 1
        return apart.reshape(rows, -1)
    groups = -(-count // width)  # `width` words hold 32 integers, some of which straddle two
    padded = np.zeros((rows, groups * width + 1), np.uint64)
    padded[:, :count] = words.view(np.uint32)
    numbers = np.empty((rows, groups, 32), np.uint8)
    for place in range(32):
        word, shift = divmod(place * width, 32)
        low, high = padded[:, word:-1:width], padded[:, word + 1 :: width][:, :groups]
        both = low[:, :groups] | high << np.uint64(32)
        numbers[:, :, place] = both >> np.uint64(shift) & np.uint64((1 << width) - 1)
    return numbers.reshape(rows, -1)[:, : count * 32 // width]


def _numbers(raw: Any, dtype: str) -> Any:
    """View bytes as numbers; convert floats that numpy lacks to F32."""
    import numpy as np

    if dtype in _PLAIN:
        numbers = raw.view(_PLAIN[dtype])
        if dtype == "BF16":
            return (numbers.astype(np.uint32) << np.uint32(16)).view(np.float32)
        return numbers.astype(np.float32) if dtype[0] == "F" else numbers
    return _table(dtype)[raw]


def _table(dtype: str) -> Any:
    """List the 256 values of an 8-bit float."""
    import ml_dtypes
    import numpy as np

    names = {
        "F8_E4M3": "float8_e4m3fn",
        "F8_E5M2": "float8_e5m2",
        "F8_E4M3FNUZ": "float8_e4m3fnuz",
        "F8_E5M2FNUZ": "float8_e5m2fnuz",
        "F8_E8M0": "float8_e8m0fnu",
    }
    return np.arange(256, dtype=np.uint8).view(getattr(ml_dtypes, names[dtype])).astype(np.float32)
