"""The magnitude that keeps the largest part of a tensor, found without holding it.

Magnitudes are seen as float32, whose bits grow with the value: counting the upper half of the
bits, then the lower half within one bin, finds the exact one in two passes (radix selection).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

_HALF = 1 << 16
_LOW = _HALF - 1


def bits(values: NDArray[Any]) -> NDArray[Any]:
    """Give the bits of |value| as float32: they are ordered as the magnitudes are."""
    import numpy as np

    found: NDArray[Any] = np.abs(values).astype(np.float32).view(np.uint32)
    return found


def threshold(values: NDArray[Any], kept: int) -> int:
    """Give the bits of the kept-th largest magnitude of an array at hand; 1 at least."""
    import numpy as np

    found = bits(values)
    place = max(0, found.size - kept)
    return max(1, int(np.partition(found, place)[place]))


def thresholds(passes: Callable[[], Iterator[tuple[NDArray[Any], ...]]], kept: int) -> list[int]:
    """Give, for each sequence that goes by, the bits of its kept-th largest magnitude.

    They are 1 at least, so that no zero is kept.
    """
    import numpy as np

    upper: dict[int, NDArray[Any]] = {}
    for piece in passes():
        for which, values in enumerate(piece):
            found = np.bincount(bits(values) >> 16, minlength=_HALF)
            upper[which] = upper[which] + found if which in upper else found
    places = {which: _place(counts, kept) for which, counts in upper.items()}
    lower = {which: np.zeros(_HALF, np.int64) for which in upper}
    for piece in passes():
        for which, values in enumerate(piece):
            found = bits(values)
            inside = found[found >> 16 == places[which][0]] & _LOW
            lower[which] += np.bincount(inside, minlength=_HALF)
    return [
        max(1, place << 16 | _place(lower[which], rest)[0])
        for which, (place, rest) in places.items()
    ]


def _place(counts: NDArray[Any], kept: int) -> tuple[int, int]:
    """Give the bin that holds the kept-th largest, and its rank within the bin."""
    import numpy as np

    above = np.cumsum(counts[::-1])[::-1]
    reached = np.flatnonzero(above >= min(kept, int(above[0])))
    place = int(reached[-1])
    return place, kept - int(above[place] - counts[place])
