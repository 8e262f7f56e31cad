"""How the values of both sides are distributed, and how far apart the two distributions are.

None of it sees position: a shuffled tensor is at distance zero.
"""

from __future__ import annotations

from math import log, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from difflens.core.dtypes import bits
from difflens.core.record import Record
from difflens.core.records import Delta

from .matrices import has_numbers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .values import Values

QUANTILES = (0.0, 0.001, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 0.999, 1.0)
BINS, PSI_BINS = 256, 10
_JEFFREYS = 0.5  # added to every bin, so that no logarithm is infinite


class Histogram(Record, frozen=True):
    """Quantiles (type 7, at `QUANTILES`) of both sides and distances of their distributions.

    `wasserstein` is ∫|F - G|, in units of weights; `ks` sup|F - G|; `jensen_shannon` (at most ln 2)
    and `kl` (left to right, half a count added a bin) are over `BINS` bins of the pooled range,
    `bin_width` wide, as are the entropies in bits; `psi` is over ten bins at the left's deciles,
    and `psi_null` what it would be on average were both drawn from one distribution.
    `q9999` are of |w|. Exact for 16-bit types, else `rank_error` off at most (95 %).
    Memory: 40 MB.
    """

    left_quantiles: tuple[float, ...]
    right_quantiles: tuple[float, ...]
    left_q9999: float
    right_q9999: float
    wasserstein: float
    relative_wasserstein: float | None
    ks: float
    jensen_shannon: float
    kl: float
    psi: float
    psi_null: float
    left_entropy: float
    right_entropy: float
    bin_width: float
    rank_error: float

    @classmethod
    def wants(cls, delta: Delta) -> bool:
        """Take float tensors that differ and are on both sides."""
        moved = delta.kind in {"changed", "recast", "within_epsilon", "reshaped"}
        return moved and has_numbers(delta.pair.left) and has_numbers(delta.pair.right)

    @classmethod
    def of(cls, left: Values | None, right: Values | None) -> Self | None:
        """Count both sides; None if one has no finite value."""
        if left is None or right is None:
            return None
        before, after = counts_of(left), counts_of(right)
        if not (before.total and after.total):
            return None
        wasserstein, ks = _distances(before, after)
        spread = _deviation(before)
        bins, width = _binned(before, after)
        psi = _psi(before, after)
        return cls(
            tuple(before.quantile(share) for share in QUANTILES),
            tuple(after.quantile(share) for share in QUANTILES),
            before.magnitudes().quantile(0.9999),
            after.magnitudes().quantile(0.9999),
            wasserstein,
            wasserstein / spread if spread else None,
            ks,
            _jensen_shannon(*bins),
            _kl(*bins),
            psi[0],
            psi[1],
            _entropy(bins[0]),
            _entropy(bins[1]),
            width,
            max(before.rank_error, after.rank_error),
        )

    def figures(self) -> dict[str, Any]:
        """Return the distances."""
        return {
            "wasserstein": self.wasserstein,
            "relative_wasserstein": self.relative_wasserstein,
            "ks": self.ks,
            "jensen_shannon": self.jensen_shannon,
            "psi": self.psi,
            "psi_null": self.psi_null,
            "left_entropy_bits": self.left_entropy,
            "right_entropy_bits": self.right_entropy,
        }


def _distances(left: Counts, right: Counts) -> tuple[float, float]:
    """∫|F - G| and sup|F - G|, exact on the values counted."""
    import numpy as np

    places = np.union1d(left.values, right.values)
    gap = np.abs(_shares(left, places) - _shares(right, places))
    return float((gap[:-1] * np.diff(places)).sum()), float(gap.max())


def _shares(side: Counts, places: NDArray[Any]) -> NDArray[Any]:
    """Return the share of values at or below each place."""
    import numpy as np

    ends = np.concatenate([[0], np.cumsum(side.counts)])
    return np.asarray(ends[np.searchsorted(side.values, places, "right")] / ends[-1])


def _deviation(side: Counts) -> float:
    import numpy as np

    mean = np.average(side.values, weights=side.counts)
    return sqrt(float(np.average((side.values - mean) ** 2, weights=side.counts)))


def _binned(left: Counts, right: Counts) -> tuple[tuple[NDArray[Any], NDArray[Any]], float]:
    """Count both sides over bins of one width, from the least value of both to the largest."""
    import numpy as np

    low = min(left.values[0], right.values[0])
    width = float(max(left.values[-1], right.values[-1]) - low) / BINS

    def counted(side: Counts) -> NDArray[Any]:
        places = (side.values - low) / width if width > 0 else np.zeros(len(side.values))
        return np.bincount(np.minimum(places.astype(np.int64), BINS - 1), side.counts, BINS)

    return (counted(left), counted(right)), width


def _kl(left: NDArray[Any], right: NDArray[Any]) -> float:
    """Σ p ln(p / q), with half a count more in every bin (Jeffreys)."""
    import numpy as np

    p, q = ((each + _JEFFREYS) / (each + _JEFFREYS).sum() for each in (left, right))
    return float((p * np.log(p / q)).sum())


def _jensen_shannon(left: NDArray[Any], right: NDArray[Any]) -> float:
    """(KL(p, m) + KL(q, m)) / 2, m = (p + q) / 2: the divergence, not its square root."""
    import numpy as np

    p, q = left / left.sum(), right / right.sum()
    middle = (p + q) / 2
    parts = [(each[each > 0] * np.log(each[each > 0] / middle[each > 0])).sum() for each in (p, q)]
    return max(0.0, float(sum(parts)) / 2)


def _psi(left: Counts, right: Counts) -> tuple[float, float]:
    """Σ (p - q) ln(p / q) over bins at the left's deciles, and its mean where nothing changed.

    E = (B - 1)(1/N + 1/M) for B bins, N and M values.
    """
    import numpy as np

    edges = np.unique([left.quantile(i / PSI_BINS) for i in range(1, PSI_BINS)])
    counted = [
        np.bincount(np.searchsorted(edges, side.values, "left"), side.counts, len(edges) + 1)
        for side in (left, right)
    ]
    p, q = ((each + _JEFFREYS) / (each + _JEFFREYS).sum() for each in counted)
    null = len(edges) * (1 / left.total + 1 / right.total)
    return float(((p - q) * np.log(p / q)).sum()), null


def _entropy(counted: NDArray[Any]) -> float:
    """-Σ p log₂ p."""
    import numpy as np

    shares = counted[counted > 0] / counted.sum()
    return max(0.0, -float((shares * np.log2(shares)).sum()))


# 16-bit floats have 65,536 codes, so all of them are counted. Of wider types that are larger than
# `SAMPLE`, one element is drawn from each of so many equal stretches, with a fixed seed; the share
# of values below any point is then off by at most `rank_error` (Dvoretzky-Kiefer-Wolfowitz, 95 %).

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
        """Return the quantile of type 7: linear between the order statistics around (n - 1) q."""
        import numpy as np

        ends = np.cumsum(self.counts)
        place = (int(ends[-1]) - 1) * share
        low = int(place)
        below, above = self.values[
            np.searchsorted(ends, [low, min(low + 1, ends[-1] - 1)], "right")
        ]
        return float(below + (above - below) * (place - low))

    def magnitudes(self) -> Counts:
        """Return the same of the absolute values."""
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
    middles = (
        (every.astype(np.uint32) << np.uint32(16)).view(np.float32) if brain else every.view("f2")
    )
    kept = np.isfinite(middles) & (totals > 0)
    return merged(middles[kept].astype(np.float64), totals[kept], 0.0)


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
