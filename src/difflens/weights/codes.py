"""A fine histogram of floats of any size: counted by the upper bits of their float32.

A code is the sign, the exponent and 12 bits of the fraction, in the order of the numbers, so a
value is told to 1 part in 8,192. 16-bit and narrower floats fit into it whole and stay exact. The
road not taken is a t-digest, whose error depends on the data and on the order they come in.
"""

from __future__ import annotations

from typing import Any

import numpy as np

BITS = 21
CODES = 1 << BITS
ERROR = 2.0**-13  # relative, of a value told by the middle of its code
EXACT = frozenset({"BF16", "F16", "F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F4"})
_SHIFT = 32 - BITS
_MIDDLE = CODES >> 1
_LARGEST = float(np.finfo(np.float32).max)
_FEW = 1 << 15  # values below which looking at each beats going through all codes


def coded(values: Any) -> Any:
    """Give the code of each value; larger values never have smaller codes."""
    if values.dtype == np.float64:  # beyond float32 all is counted with its largest number
        values = np.clip(values, -_LARGEST, _LARGEST)
    numbers = np.ascontiguousarray(values, np.float32).view(np.int32)
    # Of negative floats the larger magnitude has the larger bits: turn those round.
    places = (numbers ^ ((numbers >> 31) & np.int32(0x7FFFFFFF))) >> _SHIFT
    places += _MIDDLE
    return places


def decoded(codes: Any, *, exact: bool) -> Any:
    """Give the number each code stands for: the middle of its values, or the only one."""
    places = codes.astype(np.int64) - _MIDDLE
    negative = places < 0
    bits = np.where(negative, ~places, places) << _SHIFT
    if not exact:
        bits = np.where(bits > 0, bits + (1 << (_SHIFT - 1)), bits)
    found = bits.astype(np.int32).view(np.float32).astype(np.float64)
    return np.where(negative, -found, found) + 0.0  # no negative zero


class Tally:
    """How many finite values have each code."""

    def __init__(self) -> None:
        """Nothing is counted yet."""
        self.counts = np.zeros(CODES, np.int64)

    def add(self, values: Any) -> None:
        """Count some more."""
        if not values.size:
            return
        codes = coded(values)
        if values.size < _FEW:
            some, times = np.unique(codes, return_counts=True)
            self.counts[some] += times
            return
        low = int(codes.min())
        codes -= low
        times = np.bincount(codes)
        self.counts[low : low + len(times)] += times

    def occupied(self) -> tuple[Any, Any]:
        """Give the codes that occur, ascending, and how often each does."""
        codes = np.flatnonzero(self.counts)
        return codes, self.counts[codes]
