"""Means of scores that come in clusters: one passage, one template, one user, one question.

Clusters of one size have the errors of Miller (2024). Where sizes differ a large cluster pulls the
mean towards itself, and its residual hides how much it varies: 49 clusters of 5 beside one of 250
gave 20 % false alarms instead of 2.5 %. So the error is the jackknife's (CV3: MacKinnon, Nielsen
& Webb 2023), and its degrees of freedom are Satterthwaite's (Bell & McCaffrey 2002).

Two means may share clusters: values of one passage, user or template are not independent, and an
example that both sides answered moves both means. So what varies is the cluster: each one's pull
on the difference is summed up first. Where every value is a cluster of its own this is Welch's
test; where every cluster lies on both sides it is the paired one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from .comparison import Comparison, by_t, quantile
from .samples import probability, sample, variance

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class ClusteredMean(NamedTuple):
    """A mean, its standard error with and without regard to clusters, and an interval.

    `design_effect` is (se / naive_se)², by which the clusters make the sample smaller.
    """

    mean: float
    se: float | None
    naive_se: float | None
    low: float | None
    high: float | None
    df: float
    clusters: int
    design_effect: float | None


def clustered_mean(
    values: Sequence[float], clusters: Sequence[Hashable], level: float = 0.95
) -> ClusteredMean:
    """Return the mean with a cluster-robust standard error, by leaving out each cluster in turn.

    SE² = (C - 1)/C · Σ_c (s̄ without c - s̄)². For clusters of one size that is
    C/(C - 1) · Σ_c (Σ_i (s_ic - s̄))² / n², with C - 1 degrees of freedom.

    >>> clustered_mean([1.0, 1.0, 0.0, 0.0], ["a", "a", "b", "b"]).clusters
    2
    """
    probability(level, "level")
    array = sample(values, "values")
    sums, sizes = cluster_sums(array, clusters)
    mean, count = float(array.mean()), sums.size
    spread = variance(array) if array.size > 1 else 0.0
    naive = (spread / array.size) ** 0.5 or None
    if count < 2 or naive is None:
        return ClusteredMean(mean, None, naive, None, None, count - 1, count, None)
    error = float((pulls(sums, sizes, mean) ** 2).sum()) ** 0.5
    df = effective_df(sizes)
    reach = quantile((1 + level) / 2, df) * error
    return ClusteredMean(
        mean, error, naive, mean - reach, mean + reach, df, count, (error / naive) ** 2
    )


def pulls(
    sums: NDArray[np.float64], sizes: NDArray[np.float64], mean: float
) -> NDArray[np.float64]:
    """Return what the mean loses without each cluster; their squares add up to its variance."""
    lost: NDArray[np.float64] = (sums - mean * sizes) / (sizes.sum() - sizes)
    small: float = (1 - 1 / sizes.size) ** 0.5
    return lost * small


def effective_df(
    *sides: NDArray[np.float64], of: Sequence[NDArray[np.bool_]] | None = None
) -> float:
    """Return Satterthwaite's degrees of freedom of the squared pulls of some clusters.

    One array of sizes is one mean; `of` chooses clusters of each, as many and in one order, of
    which the pulls of two means are subtracted. For independent values the pulls of one mean
    have the covariance (diag(w/(1 - w)²) - a aᵀ)/n, with w = n_c/n and a = w/(1 - w), and
    df = tr(M)²/tr(M²).

    >>> import numpy as np
    >>> effective_df(np.array([5.0, 5.0, 5.0])), round(effective_df(np.array([5.0, 5.0, 90.0])), 2)
    (2.0, 1.01)
    """
    import numpy as np

    if of is None and len(sides) == 1 and sides[0].min() == sides[0].max():
        return float(sides[0].size - 1)
    chosen = of or [np.ones(each.size, bool) for each in sides]
    own, lost = [], []
    for sizes, kept in zip(sides, chosen, strict=True):
        total = sizes.sum()
        shares = sizes[kept] / (total - sizes[kept])
        own.append(shares * (1 + shares) / total)
        lost.append(shares / total**0.5)
    alone, without = sum(own), sum(each**2 for each in lost)
    crossed = sum(float(one @ other) ** 2 for one in lost for other in lost)
    spread = float((alone**2 - 2 * alone * without).sum()) + crossed
    return float((alone - without).sum()) ** 2 / spread


def cluster_sums(
    array: NDArray[np.float64], clusters: Sequence[Hashable]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the sum of each cluster's values and how many it has, in order of appearance."""
    import numpy as np

    if len(clusters) != array.size:
        raise ValueError(f"{array.size} values need as many clusters, there are {len(clusters)}")
    index: dict[Hashable, int] = {}
    places = np.array([index.setdefault(each, len(index)) for each in clusters])
    sums = np.bincount(places, weights=array).astype(np.float64)
    return sums, np.bincount(places).astype(np.float64)


def design_effect(size: float, correlation: float) -> float:
    """Return 1 + (m - 1)·ICC: how much larger clusters of m make the variance (Kish 1965).

    >>> design_effect(10, 0.5)
    5.5
    """
    return 1 + (size - 1) * correlation


class Averaged(NamedTuple):
    """The mean score of each question, in order of appearance.

    `within` is the mean variance of repeated answers to one question (None if no question
    has two), `repeats` how many answers a question has.
    """

    questions: tuple[Hashable, ...]
    means: tuple[float, ...]
    within: float | None
    repeats: tuple[int, ...]


def average_repeats(questions: Sequence[Hashable], scores: Sequence[float]) -> Averaged:
    """Average the answers to each question (Miller 2024: variance = between + within / K).

    >>> average_repeats(["a", "b", "a"], [0.0, 1.0, 1.0]).means
    (0.5, 1.0)
    """
    array = sample(scores, "scores")
    sums, sizes = cluster_sums(array, questions)
    means = sums / sizes
    names = tuple(dict.fromkeys(questions))
    place = {name: index for index, name in enumerate(names)}
    centred = array - means[[place[each] for each in questions]]
    squares = cluster_sums(centred**2, questions)[0]
    several = sizes > 1
    within = float((squares[several] / (sizes[several] - 1)).mean()) if several.any() else None
    return Averaged(
        names, tuple(float(each) for each in means), within, tuple(int(each) for each in sizes)
    )


METHOD = "welch, clustered"


class _Side(NamedTuple):
    """The clusters of one mean: how large each is, and how far it pulls the mean."""

    sizes: dict[Hashable, float]
    pulls: dict[Hashable, float]


class _Part(NamedTuple):
    """Clusters of one kind (only left, only right, on both sides): their variance and its df."""

    variance: float
    df: float


def linked(
    left: Sequence[float],
    right: Sequence[float],
    left_clusters: Sequence[Hashable],
    right_clusters: Sequence[Hashable],
    level: float = 0.95,
) -> Comparison:
    """Compare two means by the errors between clusters; a name on both sides is one cluster.

    u_c is what r̄ loses without cluster c less what l̄ loses, each times sqrt((C - 1)/C) of its
    side's C clusters; SE² = Σ u_c², as `clustered_mean` has it. Degrees of freedom by
    Satterthwaite over the clusters only left, only right and on both sides, which are
    independent of each other.

    >>> linked([1.0, 2.0, 3.0], [2.0, 3.0, 4.0], "abc", "def").difference
    1.0
    """
    probability(level, "level")
    before, after = sample(left, "left"), sample(right, "right")
    difference = float(after.mean() - before.mean())
    names = [list(dict.fromkeys(each)) for each in (left_clusters, right_clusters)]
    fewest = min(map(len, names))
    bare = Comparison(
        difference, None, None, level, None, METHOD, before.size, after.size, clusters=fewest
    )
    if fewest < 2 or not (variance(before) or variance(after)):
        return bare._replace(note="one cluster, or values without spread, tell no error")
    parts = list(_parts(_side(before, left_clusters), _side(after, right_clusters)))
    total = sum(each.variance for each in parts)
    if not total:
        return bare._replace(note="clusters without spread tell no error")
    # As shares of the total: their squares neither overflow nor vanish, whatever the unit.
    df = 1 / sum((each.variance / total) ** 2 / each.df for each in parts)
    made = by_t(difference, total**0.5, df, level, METHOD, (before.size, after.size))
    return made._replace(clusters=fewest)


def _side(array: NDArray[np.float64], clusters: Sequence[Hashable]) -> _Side:
    """Sum up how far each cluster pulls its side's mean."""
    mean = float(array.mean())
    sums, sizes = cluster_sums(array - mean, clusters)
    names = list(dict.fromkeys(clusters))
    found = pulls(sums, sizes, 0.0)
    return _Side(
        dict(zip(names, sizes.tolist(), strict=True)), dict(zip(names, found.tolist(), strict=True))
    )


def _parts(left: _Side, right: _Side) -> Iterator[_Part]:
    """Yield the parts of the variance; each mean that was estimated costs its clusters one df."""
    both = left.sizes.keys() & right.sizes.keys()
    for side in (left, right):
        alone = [name for name in side.sizes if name not in both]
        if alone:
            squares = [side.pulls[name] ** 2 for name in alone]
            yield _Part(sum(sorted(squares)), _df([side], alone))
    if both:
        squares = [(right.pulls[name] - left.pulls[name]) ** 2 for name in both]
        yield _Part(sum(sorted(squares)), _df([left, right], [n for n in left.sizes if n in both]))


def _df(sides: list[_Side], names: list[Hashable]) -> float:
    """Return the degrees of freedom of some clusters' part: they stand first on each side."""
    import numpy as np

    chosen = set(names)
    sizes, kept = [], []
    for side in sides:
        order = [*names, *(name for name in side.sizes if name not in chosen)]
        sizes.append(np.array([side.sizes[name] for name in order]))
        kept.append(np.arange(len(order)) < len(names))
    whole = len(sides) == 1 and len(names) == len(sides[0].sizes)
    return effective_df(*sizes) if whole else effective_df(*sizes, of=kept)
