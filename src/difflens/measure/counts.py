"""Values and how often each occurs, in ascending order: what quantiles and distances are read from.

16-bit floats have 65,536 codes, so all of them are counted. Of wider types that are larger than
`SAMPLE`, one element is drawn from each of so many equal stretches, with a fixed seed; the share
of values below any point is then off by at most `rank_error` (Dvoretzky-Kiefer-Wolfowitz, 95 %).
"""

from __future__ import annotations

from math import log, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

from ..dtypes import bits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .values import Values

SAMPLE, SEED = 1 << 20, 0
_CODES = 1 << 16


class Counts(NamedTuple):
    """Finite values in ascending order, how often each occurs, and how exact that is."""

    values: NDArray[Any]
    counts: NDArray[Any]
    rank_error: float

    @property
    def total(self) -> int:
        """How many values were counted."""
        return int(self.counts.sum())

    def quantile(self, share: float) -> float:
        """Give the quantile of type 7: linear between the order statistics around (n - 1) q."""
        import numpy as np

        ends = np.cumsum(self.counts)
        place = (int(ends[-1]) - 1) * share
        low = int(place)
        below, above = self.values[
            np.searchsorted(ends, [low, min(low + 1, ends[-1] - 1)], "right")
        ]
        return float(below + (above - below) * (place - low))

    def magnitudes(self) -> Counts:
        """Give the same of the absolute values."""
        return merged(abs(self.values), self.counts, self.rank_error)


def counts_of(values: Values) -> Counts:
    """Count a tensor's finite values."""
    return _coded(values) if bits(values.info.dtype) <= 16 else _sampled(values)


def merged(values: NDArray[Any], counts: NDArray[Any], rank_error: float) -> Counts:
    """Sort values and add up the counts of equal ones."""
    import numpy as np

    unique, places = np.unique(values, return_inverse=True)
    totals = np.bincount(places, counts, len(unique)).astype(np.int64)
    return Counts(unique, totals, rank_error)


def _coded(values: Values) -> Counts:
    """Count codes; all that is narrower than 16 bits is exact in F16 too."""
    import numpy as np

    totals = np.zeros(_CODES, np.int64)
    brain = values.info.dtype == "BF16"
    for piece in values.pieces():
        codes = (piece.view(np.uint32) >> np.uint32(16)) if brain else _half(piece)
        totals += np.bincount(codes.astype(np.int32), minlength=_CODES)
    every = np.arange(_CODES, dtype=np.uint16)
    told = (
        (every.astype(np.uint32) << np.uint32(16)).view(np.float32) if brain else every.view("f2")
    )
    kept = np.isfinite(told) & (totals > 0)
    return merged(told[kept].astype(np.float64), totals[kept], 0.0)


def _half(piece: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    with np.errstate(over="ignore"):
        return piece.astype(np.float16).view(np.uint16)


def _sampled(values: Values) -> Counts:
    import numpy as np

    count = values.info.count
    random = np.random.default_rng(SEED)
    stretch = max(1, -(-count // SAMPLE))
    parts = []
    for piece in values.pieces():
        whole = piece.astype(np.float64, copy=False)
        starts = np.arange(0, len(whole), stretch)
        drawn = starts + random.integers(0, stretch, len(starts)) if stretch > 1 else starts
        parts.append(whole[np.minimum(drawn, len(whole) - 1)])
    every = np.concatenate(parts) if parts else np.empty(0)
    every = every[np.isfinite(every)]
    error = sqrt(log(2 / 0.05) / (2 * max(1, len(every)))) if stretch > 1 else 0.0
    return merged(every, np.ones(len(every), np.int64), error)
