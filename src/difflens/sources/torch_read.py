"""Bytes of a tensor out of its storage: straight where they lie as wanted, else block by block."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from ..dtypes import BITS
from ..protocols import ModelFile
from .torch_dtypes import COMPLEX, ENCODINGS, QUANTISED
from .torch_gather import gather
from .torch_tensors import Quantiser, Tensor

if TYPE_CHECKING:
    import numpy as np

BLOCK = 1 << 23  # bytes given out that are decoded at a time


class Place(NamedTuple):
    """Where a storage's bytes are."""

    file: ModelFile
    offset: int
    size: int
    big: bool = False
    checksum: int | None = None


class Memory:
    """Bytes that were found within a pickle, as a file."""

    def __init__(self, content: bytes, file: ModelFile) -> None:
        """Stand for a part of the file."""
        self.path = file.path
        self.size = len(content)
        self._content = content
        self._file = file

    def read(self, start: int, stop: int) -> bytes:
        """Give bytes [start, stop)."""
        return self._content[start:stop]

    def read_into(self, start: int, buffer: memoryview) -> int:
        """Fill the buffer from byte `start` on."""
        part = self._content[start : start + len(buffer)]
        buffer[: len(part)] = part
        return len(part)

    def limit(self, name: str) -> int:
        """Give a limit by name."""
        return self._file.limit(name)

    def confirm(self) -> None:
        """Raise if the file is not the one that was opened."""
        self._file.confirm()

    def close(self) -> None:
        """Nothing is held open."""


def given_shape(tensor: Tensor) -> tuple[int, ...]:
    """Give the shape of what is given out: halves of complex128 are an axis, pairs of F4 are not.

    >>> from .torch_tensors import Storage
    >>> given_shape(Tensor(Storage("0", 32), "complex128", 0, (2,), (1,)))
    (2, 2)
    """
    if tensor.dtype == "complex128":
        return (*tensor.shape, 2)
    if tensor.dtype == "float4_e2m1fn_x2":
        return (*tensor.shape[:-1], tensor.shape[-1] * 2)
    return tensor.shape


def lies_as_wanted(tensor: Tensor, place: Place) -> bool:
    """Can the tensor's bytes be read straight from the file?"""
    encoding = ENCODINGS[tensor.dtype]
    swapped = place.big and encoding.size != 1
    marked = tensor.conjugated or tensor.negated or tensor.dtype in QUANTISED
    widened = tensor.dtype == "complex32"
    return tensor.contiguous and not (swapped or marked or widened)


def block_elements(tensor: Tensor) -> int:
    """Say how many stored elements are decoded at a time."""
    return BLOCK // element_bytes(tensor)


def element_bytes(tensor: Tensor) -> int:
    """Say how many bytes are given out for one stored element."""
    encoding = ENCODINGS[tensor.dtype]
    return max(1, BITS[encoding.dtype] * encoding.wide // 8)


def decode(
    tensor: Tensor, place: Place, first: int, last: int, scales: Quantiser | None
) -> np.ndarray[Any, Any]:
    """Give stored elements [first, last), decoded, as bytes."""
    import numpy as np

    encoding = ENCODINGS[tensor.dtype]
    begin = place.offset + tensor.storage.start
    view = (tensor.offset, tensor.shape, tensor.stride)
    raw = gather(place.file, begin, encoding.size, view, first, last)
    numbers = raw.view(f"{'>' if place.big else '<'}{encoding.numpy}")
    if place.big:
        numbers = numbers.astype(f"<{encoding.numpy}")
    with np.errstate(all="ignore"):  # infinities and NaNs of the file are its own
        if scales is not None:
            numbers = _dequantised(numbers, tensor, first, last, scales)
        if tensor.dtype == "complex32":
            numbers = numbers.astype("<f4")
    if tensor.conjugated or tensor.negated:
        _flip(numbers, tensor)
    return numbers.view("u1")


def _flip(numbers: np.ndarray[Any, Any], tensor: Tensor) -> None:
    """Turn the signs that torch only noted: of every number, of imaginary parts."""
    width = numbers.itemsize
    signs = numbers.view(f"<u{width}")
    top = 1 << (8 * width - 1)
    if tensor.negated:
        signs ^= top
    if tensor.conjugated and tensor.dtype in COMPLEX:
        signs[1::2] ^= top


def _dequantised(
    numbers: np.ndarray[Any, Any], tensor: Tensor, first: int, last: int, scales: Quantiser
) -> np.ndarray[Any, Any]:
    """Compute (q - zero) * scale as torch does: in float32."""
    import numpy as np

    if scales.axis is None:
        scale, zero = np.float32(scales.scale), np.int64(scales.zero)
    else:
        below = prod(tensor.shape[scales.axis + 1 :])
        channel = np.arange(first, last) // below % tensor.shape[scales.axis]
        scale, zero = scales.scale[channel], scales.zero[channel]
    # Float zero points come with a scheme of their own; whole ones are taken off exactly.
    exact = numbers.astype(np.int64) - zero
    return (exact.astype(np.float32) * scale).astype("<f4")
