"""How far two distributions are apart, wherever in the tensor their values stand.

Distances only: a test of "are they equal" says yes to nothing once there are a million weights.
Histograms are counts over shared bins; samples are plain values in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .samples import sample

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Histograms(NamedTuple):
    """Two samples counted over the same bins."""

    edges: NDArray[Any]
    left: NDArray[Any]
    right: NDArray[Any]


class Psi(NamedTuple):
    """The population stability index, beside what it is on average where nothing changed."""

    value: float
    null_mean: float


def histograms(
    left: Sequence[float] | NDArray[Any], right: Sequence[float] | NDArray[Any], bins: int = 256
) -> Histograms:
    """Count both over `bins` equal bins from their common least to their common largest value."""
    import numpy as np

    one, other = sample(left, "left"), sample(right, "right")
    low, high = min(one.min(), other.min()), max(one.max(), other.max())
    edges = np.histogram_bin_edges([low, high], bins)
    return Histograms(edges, np.histogram(one, edges)[0], np.histogram(other, edges)[0])


def quantile_histograms(
    left: Sequence[float] | NDArray[Any], right: Sequence[float] | NDArray[Any], bins: int = 10
) -> Histograms:
    """Count both over bins that hold equal shares of the left, open at both ends, as PSI asks."""
    import numpy as np

    one, other = sample(left, "left"), sample(right, "right")
    inner = np.unique(np.quantile(one, np.arange(1, bins) / bins))
    counts = [
        np.bincount(np.searchsorted(inner, side, "right"), minlength=len(inner) + 1)
        for side in (one, other)
    ]
    return Histograms(inner, *counts)


def kl(
    left: Sequence[float] | NDArray[Any],
    right: Sequence[float] | NDArray[Any],
    pseudo_count: float = 0.5,
) -> float:
    """Give sum p ln(p/q) in nats of two histograms, each count plus Jeffreys' half.

    The value depends on the bins: never compare two that were binned differently.
    """
    import numpy as np

    p, q = _shares(left, right, pseudo_count)
    return float((p * np.log(p / q)).sum())


def jensen_shannon(
    left: Sequence[float] | NDArray[Any], right: Sequence[float] | NDArray[Any]
) -> float:
    """Give (KL(p|m) + KL(q|m))/2 in nats, m the mean of both: 0 for the same, at most ln 2.

    The divergence itself, not its root as `scipy.spatial.distance.jensenshannon` gives.

    >>> round(jensen_shannon([1, 0], [0, 1]), 6)
    0.693147
    """
    return float(jensen_shannon_rows(*_shares(left, right, 0.0)))


def jensen_shannon_rows(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """Give the divergence of each pair of distributions along the last axis."""
    import numpy as np
    from scipy.special import rel_entr

    middle = (np.asarray(left) + np.asarray(right)) / 2
    both = rel_entr(left, middle).sum(axis=-1) + rel_entr(right, middle).sum(axis=-1)
    return np.asarray(np.clip(both / 2, 0, np.log(2)))


def psi(left: Sequence[float] | NDArray[Any], right: Sequence[float] | NDArray[Any]) -> Psi:
    """Give sum (p - q) ln(p/q) of two histograms, each count plus a half.

    Without any change it is (B - 1)(1/N + 1/M) on average, for B bins and N and M values: the
    folklore bounds 0.1 and 0.25 forget that.
    """
    import numpy as np

    p, q = _shares(left, right, 0.5)
    null = (len(p) - 1) * (1 / float(np.sum(left)) + 1 / float(np.sum(right)))
    return Psi(float(((p - q) * np.log(p / q)).sum()), null)


def kolmogorov(
    left: Sequence[float] | NDArray[Any], right: Sequence[float] | NDArray[Any]
) -> float:
    """Give sup |F - G| of two samples: the distance, and no p-value."""
    import numpy as np

    one, other = np.sort(sample(left, "left")), np.sort(sample(right, "right"))
    both = np.concatenate([one, other])
    shares = [np.searchsorted(side, both, "right") / len(side) for side in (one, other)]
    return float(np.abs(shares[0] - shares[1]).max())


def wasserstein(
    left: Sequence[float] | NDArray[Any], right: Sequence[float] | NDArray[Any]
) -> float:
    """Give the integral of |F^-1 - G^-1| of two samples, in their own unit; a shift gives itself.

    Equal numbers of values or of quantiles at equal levels are simply paired in order.
    """
    import numpy as np
    from scipy.stats import wasserstein_distance

    one, other = np.sort(sample(left, "left")), np.sort(sample(right, "right"))
    if len(one) == len(other):
        return float(np.abs(one - other).mean())
    return float(wasserstein_distance(one, other))


def entropy_bits(counts: Sequence[float] | NDArray[Any]) -> float:
    """Give -sum p log2 p of one histogram; it depends on the bins' width.

    >>> entropy_bits([1, 1, 1, 1])
    2.0
    """
    import numpy as np
    from scipy.special import entr

    p, _ = _shares(counts, counts, 0.0)
    return float(entr(p).sum() / np.log(2))


def _shares(
    left: Sequence[float] | NDArray[Any], right: Sequence[float] | NDArray[Any], pseudo: float
) -> tuple[NDArray[Any], NDArray[Any]]:
    p, q = sample(left, "left"), sample(right, "right")
    if len(p) != len(q):
        raise ValueError(f"{len(p)} bins against {len(q)}: both must be counted over the same")
    if min(p.min(), q.min()) < 0 or not (p.sum() and q.sum()):
        raise ValueError("a histogram holds counts: none negative, and not all of them zero")
    p, q = p + pseudo, q + pseudo
    return p / p.sum(), q / q.sum()
