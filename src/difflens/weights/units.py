"""The largest weight of each output unit: a unit is zero where even that counts as zero.

The largest magnitude, not the Euclidean norm: it can neither overflow nor underflow.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np


class Units:
    """One number a unit, filled piece by piece, whatever the pieces are."""

    def __init__(self, shape: tuple[int, ...], axis: int) -> None:
        """Units lie along the first axis or the last."""
        self.largest = np.zeros(shape[axis])
        self._first = axis == 0
        self._length = prod(shape[1:]) if self._first else shape[-1]

    def add(self, start: int, magnitudes: Any) -> None:
        """Take in elements from `start` on, counted flat; what is not finite is not zero."""
        if not magnitudes.size:
            return
        if self._first:
            self._along_rows(start, magnitudes)
        else:
            self._along_columns(start, magnitudes)

    def _along_rows(self, start: int, magnitudes: Any) -> None:
        first = start // self._length
        last = (start + magnitudes.size - 1) // self._length
        edges = np.arange(first, last + 1) * self._length - start
        edges[0] = 0
        found = np.maximum.reduceat(magnitudes, edges)
        part = self.largest[first : last + 1]
        np.maximum(part, found, out=part)

    def _along_columns(self, start: int, magnitudes: Any) -> None:
        offset = start % self._length
        padded = np.zeros(-(-(offset + magnitudes.size) // self._length) * self._length)
        padded[offset : offset + magnitudes.size] = magnitudes
        np.maximum(self.largest, padded.reshape(-1, self._length).max(axis=0), out=self.largest)

    def zero(self, bound: float) -> Any:
        """Say of each unit whether all its weights are at most so large."""
        return self.largest <= bound
