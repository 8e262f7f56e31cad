"""CRC-32C, the checksum of TensorFlow tables and TensorBoard events, computed with NumPy.

The checksum is linear: that of a sequence follows from those of its parts and the lengths of what
comes after them. So the bytes are cut into lanes of equal length that are computed together.
A loop over bytes (Castagnoli's polynomial, one table) is used for short sequences.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_POLYNOMIAL = 0x82F63B78
_ONES = 0xFFFFFFFF
_FEW = 1 << 13
_LANE = 512  # bytes
_MASK_DELTA = 0xA282EAD8


def crc32c(data: bytes | memoryview, before: int = 0) -> int:
    """Compute the checksum of bytes that follow others whose checksum is `before`.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    state = before ^ _ONES
    size = len(data) // _LANE * _LANE if len(data) >= _FEW else 0
    if size:
        state = _move(state, size) ^ _lanes(data[:size])
    table = _table()
    for byte in data[size:]:
        state = state >> 8 ^ table[(state ^ byte) & 0xFF]
    return state ^ _ONES


def masked(checksum: int) -> int:
    """Mask a checksum as it is stored, since a checksum of data with checksums is weak.

    >>> hex(masked(0))
    '0xa282ead8'
    """
    return ((checksum >> 15 | checksum << 17) + _MASK_DELTA) & _ONES


@cache
def _table() -> list[int]:
    table = []
    for value in range(256):
        state = value
        for _ in range(8):
            state = state >> 1 ^ (_POLYNOMIAL if state & 1 else 0)
        table.append(state)
    return table


@cache
def _pairs() -> NDArray[np.uint32]:
    """The table of state changes by two bytes at once."""
    import numpy as np

    single = np.array(_table(), np.uint32)
    both = np.arange(1 << 16, dtype=np.uint32)
    once = both >> np.uint32(8) ^ single[both & 0xFF]
    twice: NDArray[np.uint32] = once >> np.uint32(8) ^ single[once & 0xFF]
    return twice


@cache
def _moves(length: int) -> tuple[int, ...]:
    """Return what each bit of a state becomes when `length` zero bytes follow."""
    if length == 1:
        table = _table()
        return tuple((1 << bit) >> 8 ^ table[(1 << bit) & 0xFF] for bit in range(32))
    half = _moves(length // 2)
    twice = tuple(_apply(half, state) for state in half)
    return tuple(_apply(_moves(1), state) for state in twice) if length % 2 else twice


def _apply(moves: tuple[int, ...], state: int) -> int:
    result = 0
    for bit in range(32):
        if state >> bit & 1:
            result ^= moves[bit]
    return result


def _move(state: int, length: int) -> int:
    return _apply(_moves(length), state)


def _lanes(data: bytes | memoryview) -> int:
    """Compute the state after all lanes: first each lane by itself, then pairs of neighbours."""
    import numpy as np

    words = np.frombuffer(data, "<u2").reshape(-1, _LANE // 2).T
    states = np.zeros(words.shape[1], np.uint32)
    pairs, low, sixteen = _pairs(), np.uint32(0xFFFF), np.uint32(16)
    for column in np.ascontiguousarray(words):
        states = pairs[(states ^ column) & low] ^ states >> sixteen
    length = _LANE
    while len(states) > 1:
        if len(states) % 2:  # a lane of zeros at the start has no effect
            states = np.concatenate((np.zeros(1, np.uint32), states))
        states = _moved(states[::2], length) ^ states[1::2]
        length *= 2
    return int(states[0])


def _moved(states: NDArray[np.uint32], length: int) -> NDArray[np.uint32]:
    import numpy as np

    result = np.zeros_like(states)
    for bit, target in enumerate(_moves(length)):
        result ^= np.where(states >> np.uint32(bit) & np.uint32(1), np.uint32(target), 0)
    return result.astype(np.uint32)
