"""The bits of the NumPy codec: written and read by arrays, lowest bit first."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.uint64]
Words = NDArray[Any]  # unsigned, of 1, 2, 4 or 8 bytes


class Writer:
    """Bits, gathered in arrays of single bits."""

    def __init__(self) -> None:
        """Begin with none."""
        self._parts: list[NDArray[np.uint8]] = []

    def put(self, value: int, bits: int) -> None:
        """Write the lowest bits of a number."""
        self._parts.append(np.array([value >> bit & 1 for bit in range(bits)], np.uint8))

    def put_all(self, values: Array, bits: Array | int) -> None:
        """Write the lowest bits of many numbers, of each as many as its place in `bits` says."""
        lengths = np.broadcast_to(np.asarray(bits, np.int64), values.shape)
        total = int(lengths.sum())
        if not total:
            return
        owners = np.repeat(np.arange(len(values)), lengths)
        shifts = np.arange(total) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        self._parts.append((values[owners] >> shifts.astype(np.uint64) & np.uint64(1)).astype("u1"))

    def put_unary(self, values: Array) -> None:
        """Write each number as that many zeros and a one."""
        if len(values):
            ends = np.cumsum(values.astype(np.int64) + 1)
            bits = np.zeros(int(ends[-1]), np.uint8)
            bits[ends - 1] = 1
            self._parts.append(bits)

    def put_step(self, step: int) -> None:
        """Write a small difference, 0 -1 1 -2 2 ... as unary 0 1 2 3 4 ..."""
        self.put_unary(np.array([-2 * step - 1 if step < 0 else 2 * step], np.uint64))

    def put_number(self, value: int) -> None:
        """Write how many bits the number has, and those below the highest."""
        length = value.bit_length()
        self.put(length, 6)
        self.put(value, max(length - 1, 0))

    def put_list(self, gaps: Array) -> None:
        """Write the gaps of a list of ascending places: how many, the parameter, Rice codes."""
        self.put_number(len(gaps))
        if len(gaps):
            k = rice_parameter(gaps)
            self.put(k, 5)
            self.put_all(gaps, k)
            self.put_unary(gaps >> np.uint64(k))

    def to_bytes(self) -> bytes:
        """Return all bits, the last byte filled with zeros."""
        bits = np.concatenate(self._parts) if self._parts else np.zeros(0, np.uint8)
        return np.packbits(bits, bitorder="little").tobytes()


class Reader:
    """Bits of data that nobody vouches for: ValueError where they end too early."""

    def __init__(self, data: bytes) -> None:
        """Begin with the first bit."""
        self.data = data
        self.bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")
        self.at = 0

    def read(self, bits: int) -> int:
        """Read a number of so many bits."""
        return int(self.take_all(1, bits)[0]) if bits else 0

    def take_all(self, count: int, bits: NDArray[np.int64] | int) -> Array:
        """Read many numbers, each of as many bits as its place in `bits` says."""
        lengths = np.broadcast_to(np.asarray(bits, np.int64), (count,))
        total = int(lengths.sum())
        self._check(total)
        ends = np.cumsum(lengths)
        owners = np.repeat(np.arange(count), lengths)
        shifts = (np.arange(total) - np.repeat(ends - lengths, lengths)).astype(np.uint64)
        values = np.zeros(count, np.uint64)
        np.add.at(values, owners, self.bits[self.at : self.at + total].astype(np.uint64) << shifts)
        self.at += total
        return values

    def take_unary(self, count: int) -> Array:
        """Read so many runs of zeros, each ended by a one."""
        if not count:
            return np.zeros(0, np.uint64)
        ones = np.flatnonzero(self.bits[self.at :])[:count]
        if len(ones) < count:
            raise ValueError("the chunk is damaged")
        self.at += int(ones[-1]) + 1
        return (np.diff(ones, prepend=-1) - 1).astype(np.uint64)

    def take_step(self) -> int:
        """Read a small difference."""
        value = int(self.take_unary(1)[0])
        return -((value + 1) // 2) if value & 1 else value // 2

    def take_number(self) -> int:
        """Read a number that says how long it is."""
        length = self.read(6)
        return self.read(length - 1) | 1 << (length - 1) if length > 1 else length

    def take_list(self, limit: int) -> Array:
        """Read ascending places below the limit."""
        count = self.take_number()
        if count > limit:
            raise ValueError("the chunk is damaged")
        if not count:
            return np.zeros(0, np.uint64)
        k = self.read(5)
        rests = self.take_all(count, k)
        return self.places(rests, k, limit)

    def places(self, rests: Array, k: int, limit: int) -> Array:
        """Read the quotients that belong to remainders, and add the gaps up."""
        gaps = (self.take_unary(len(rests)) << np.uint64(k)) + rests
        places = np.cumsum(gaps + np.uint64(1)) - np.uint64(1)
        if len(places) and int(places[-1]) >= limit:
            raise ValueError("the chunk is damaged")
        return places

    def check_end(self) -> None:
        """Raise unless all but the bits that fill the last byte were read."""
        if len(self.bits) - self.at >= 8:
            raise ValueError("the chunk is damaged")

    def _check(self, bits: int) -> None:
        if bits > len(self.bits) - self.at:
            raise ValueError("the chunk is damaged")


def rice_parameter(gaps: Array) -> int:
    """Choose the parameter near the logarithm of the mean that takes the fewest bits."""
    middle = (int(gaps.sum()) // len(gaps)).bit_length() if len(gaps) else 0
    candidates = range(max(middle - 2, 0), min(middle, 31) + 1)
    return min(candidates, key=lambda k: len(gaps) * (k + 1) + int((gaps >> np.uint64(k)).sum()))


def lengths_of(values: Array) -> NDArray[np.int64]:
    """Return the number of bits of each value."""
    lengths = np.zeros(len(values), np.int64)
    rest = values.copy()
    for step in (32, 16, 8, 4, 2, 1):
        longer = rest >> np.uint64(step) > 0
        lengths[longer] += step
        rest[longer] >>= np.uint64(step)
    return lengths + (values > 0)


def log2(value: int) -> int:
    """Return the logarithm in 1/65536, of the nine leading bits."""
    length = value.bit_length()
    top = value >> (length - 9) if length > 9 else value << (9 - length)
    x, bits = top << 23, 0
    for bit in range(15, -1, -1):
        x = x * x >> 31
        if x >> 32:
            x >>= 1
            bits |= 1 << bit
    return (length - 1) * 65536 + bits
