"""CRC-32C, the checksum of TensorFlow's tables and TensorBoard's events, as fast as NumPy is.

A checksum is linear: that of a whole is made of those of its parts, each moved on by what
follows it. So a stretch is cut into lanes of equal length that are worked on side by side.
The plain loop (Castagnoli's polynomial, one table) serves for the few bytes of a small table.
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
    """Give the checksum of the bytes that follow those whose checksum is `before`.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    state = before ^ _ONES
    whole = len(data) // _LANE if len(data) >= _FEW else 0
    if whole:
        state = _move(state, whole * _LANE) ^ _lanes(data[: whole * _LANE])
    table = _table()
    for byte in data[whole * _LANE :]:
        state = state >> 8 ^ table[(state ^ byte) & 0xFF]
    return state ^ _ONES


def masked(checksum: int) -> int:
    """Turn a checksum as it is stored: a sum of data that holds sums is a poor one.

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
    """What two bytes at once do to a state."""
    import numpy as np

    single = np.array(_table(), np.uint32)
    both = np.arange(1 << 16, dtype=np.uint32)
    once = both >> np.uint32(8) ^ single[both & 0xFF]
    twice: NDArray[np.uint32] = once >> np.uint32(8) ^ single[once & 0xFF]
    return twice


@cache
def _moves(length: int) -> tuple[int, ...]:
    """Where each bit of a state goes when `length` zero bytes follow."""
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
    """Give the state after all lanes, from zero: each lane alone, then pairs of neighbours."""
    import numpy as np

    words = np.frombuffer(data, "<u2").reshape(-1, _LANE // 2).T
    states = np.zeros(words.shape[1], np.uint32)
    pairs, low, sixteen = _pairs(), np.uint32(0xFFFF), np.uint32(16)
    for column in np.ascontiguousarray(words):
        states = pairs[(states ^ column) & low] ^ states >> sixteen
    length = _LANE
    while len(states) > 1:
        if len(states) % 2:  # a lane of zeros in front changes nothing
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
