"""Paired comparisons: the same examples on both sides, whose difficulty cancels out."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from .clusters import cluster_sums, clustered_mean
from .comparison import Comparison, two_sided
from .effect import paired_effect
from .samples import pairs, probability, variance

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FEW_CLUSTERS, MANY_CLUSTERS = 10, 30  # between them the law of t is too short, flips are not
NONE_DIFFERS = "paired, no pair differs"
_EXACT = 50  # pairs up to which the exact law of the signed ranks is summed up
_RESAMPLES, _SEED = 9999, 0


def paired(
    left: Sequence[float],
    right: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> Comparison:
    """Compare pairs by the mean of d = right - left: t = d̄ / (s_d / sqrt(n)), df = n - 1.

    With clusters standard error and df are those of `clustered_mean`; from 10 to 29 clusters p
    and interval come from flipping whole clusters. The effect is d̄ / s_d, corrected as
    Hedges' g is. Where no pair differs, the interval is what n examples can bound.
    """
    probability(level, "level")
    before, after = pairs(left, right)
    moves = after - before
    magnitude = float(max(abs(before).max(), abs(after).max()))
    count = None if clusters is None else cluster_sums(moves, clusters)[0].size
    groups = clusters if clusters is not None else range(moves.size)
    bare = Comparison(
        float(moves.mean()),
        None,
        None,
        level,
        None,
        "paired t",
        moves.size,
        moves.size,
        clusters=count,
    )
    if moves.size < 2 or not variance(moves, magnitude):
        return _without_spread(bare, before, moves)
    effect = paired_effect(left, right, level)
    bare = bare._replace(effect=effect.g, effect_low=effect.low, effect_high=effect.high)
    if count is not None and FEW_CLUSTERS <= count < MANY_CLUSTERS:
        return _flipped(bare, *cluster_sums(moves, groups), _RESAMPLES, _SEED)
    return _by_t(bare, moves, groups)


def signed_rank(left: Sequence[float], right: Sequence[float]) -> Comparison:
    """Test that d = right - left is symmetric about zero; the difference is the median of d.

    Wilcoxon's signed ranks, zeros ranked and then left out (Pratt 1959). Up to 50 pairs the law
    is summed up exactly, ties and all; beyond it is normal.
    """
    import numpy as np
    from scipy.stats import rankdata

    before, after = pairs(left, right)
    moves = after - before
    doubled = np.rint(2 * rankdata(np.abs(moves))).astype(int)[moves != 0]
    positive = int(doubled[moves[moves != 0] > 0].sum())
    exact = moves.size <= _EXACT
    p = _exact_rank_p(doubled, positive) if exact else _normal_rank_p(doubled, positive)
    law = "exact" if exact else "normal"
    return Comparison(
        float(np.median(moves)),
        None,
        None,
        0.95,
        p,
        f"signed rank, {law}",
        moves.size,
        moves.size,
        statistic=positive / 2,
        note="a test of symmetry, without an interval",
    )


def sign_flip(
    left: Sequence[float],
    right: Sequence[float],
    resamples: int = _RESAMPLES,
    seed: int = _SEED,
    level: float = 0.95,
) -> Comparison:
    """Test a zero mean of d = right - left by flipping signs; all flips where they are few."""
    import numpy as np

    probability(level, "level")
    before, after = pairs(left, right)
    moves = after - before
    bare = Comparison(
        float(moves.mean()), None, None, level, None, "sign flip", moves.size, moves.size
    )
    return _flipped(bare, moves, np.ones(moves.size), resamples, seed)


def _by_t(bare: Comparison, moves: NDArray[np.float64], groups: Sequence[Hashable]) -> Comparison:
    found = clustered_mean(list(moves), groups, bare.level)
    if not found.se:
        return bare._replace(note="one cluster, or clusters without spread, tell no error")
    statistic = found.mean / found.se
    return bare._replace(
        low=found.low,
        high=found.high,
        p=two_sided(statistic, found.df),
        method="paired t" if bare.clusters is None else "paired t, clustered",
        statistic=statistic,
        df=found.df,
        standard_error=found.se,
    )


def _flipped(
    bare: Comparison,
    sums: NDArray[np.float64],
    sizes: NDArray[np.float64],
    resamples: int,
    seed: int,
) -> Comparison:
    found = flips(sums, sizes, bare.level, resamples, seed)
    clustered = "" if bare.clusters is None else ", whole clusters"
    how = "exact" if found.exact else f"{resamples} resamples, seed {seed}"
    return bare._replace(
        low=found.low,
        high=found.high,
        p=found.p,
        method=f"sign flip{clustered}, {how}",
        p_error=found.p_error,
        note="" if found.low is not None else "too few terms to bound the mean at this level",
    )


def _without_spread(
    bare: Comparison, before: NDArray[np.float64], moves: NDArray[np.float64]
) -> Comparison:
    """Compare one pair, or pairs that all differ by the same amount: no spread is known.

    Where none of n pairs (or clusters) differs, at most a part 1 - (alpha/2)^(1/n) of all would
    (Clopper & Pearson 1934), each by no more than the scores range.
    """
    if moves.size < 2:
        return bare._replace(note="fewer than two pairs, so no spread is known")
    if moves.any():
        return bare._replace(note="all pairs differ by the same amount: no spread to test against")
    unit = before.min() >= 0 and before.max() <= 1
    scale = 1.0 if unit else float(before.max() - before.min())
    if not scale:
        return bare._replace(p=1.0, note="no pair differs, and all scores are the same")
    independent = moves.size if bare.clusters is None else bare.clusters
    reach = scale * (1 - ((1 - bare.level) / 2) ** (1 / independent))
    note = f"no pair differs; how far others may is what {independent} independent ones can tell"
    return bare._replace(low=-reach, high=reach, p=1.0, method=NONE_DIFFERS, note=note)


def _exact_rank_p(doubled: NDArray[np.int64], positive: int) -> float:
    """Sum up the law of the positive ranks: each rank, doubled to be whole, is in or out."""
    import numpy as np

    law = np.ones(1)
    for rank in doubled:
        law = np.concatenate([law, np.zeros(rank)]) + np.concatenate([np.zeros(rank), law])
        law /= 2
    centre = abs(2 * positive - int(doubled.sum()))
    far = np.abs(2 * np.arange(law.size) - int(doubled.sum())) >= centre
    return min(1.0, float(law[far].sum()))


def _normal_rank_p(doubled: NDArray[np.int64], positive: int) -> float:
    deviation = float((doubled.astype(float) ** 2).sum()) ** 0.5 / 2
    if not deviation:
        return 1.0
    return two_sided((positive - float(doubled.sum()) / 2) / deviation, None)


# Under a true mean μ the residuals may change sign. A flip asks whether the mean of those kept or
# the mean of those flipped lies beyond μ, so the interval is read off the means of random subsets
# (Hartigan 1969, "Using subsample values as typical values"): no search, no studentising, since
# the sum of squares is the same under every flip. With whole clusters flipped together this is
# the wild cluster bootstrap under the null (Cameron, Gelbach & Miller 2008).

_AT_ONCE = 2_000_000  # signs held in memory at a time
_TIE = 1 - 1e-9  # sums that differ by rounding alone are ties


class Flips(NamedTuple):
    """The p of a zero mean, its Monte-Carlo error, and an interval (None if unbounded)."""

    p: float
    p_error: float
    low: float | None
    high: float | None
    exact: bool


def flips(
    sums: NDArray[np.float64], sizes: NDArray[np.float64], level: float, resamples: int, seed: int
) -> Flips:
    """Test a mean of terms given as sums over clusters and how many values each holds."""
    import numpy as np

    exact = 2**sums.size <= resamples + 1
    total, count = float(sums.sum()), float(sizes.sum())
    as_far, means = 0, []
    for kept in _signs(sums.size, resamples, seed, exact=exact):
        part, part_count = kept @ sums, kept @ sizes
        as_far += int(np.count_nonzero(np.abs(2 * part - total) >= abs(total) * _TIE))
        with np.errstate(divide="ignore", invalid="ignore"):
            means.append((part / part_count, (total - part) / (count - part_count)))
    ours, others = (np.concatenate(each) for each in zip(*means, strict=True))
    draws = ours.size
    p = as_far / draws if exact else (1 + as_far) / (1 + draws)
    # Keeping all or none leaves an empty subset, whose mean bounds nothing.
    low = np.where(np.isfinite(ours + others), np.minimum(ours, others), -np.inf)
    high = np.where(np.isfinite(ours + others), np.maximum(ours, others), np.inf)
    rank = int((1 - level) * (draws if exact else draws + 1)) - (not exact)
    ends = (np.sort(low)[rank], np.sort(high)[draws - 1 - rank]) if rank >= 0 else (-np.inf, np.inf)
    bounded = bool(np.isfinite(ends).all())
    error = 0.0 if exact else (p * (1 - p) / draws) ** 0.5
    return Flips(
        p, error, float(ends[0]) if bounded else None, float(ends[1]) if bounded else None, exact
    )


def _signs(n: int, resamples: int, seed: int, *, exact: bool) -> Iterator[NDArray[np.float64]]:
    import numpy as np

    if exact:
        masks = np.arange(2**n)[:, None] >> np.arange(n)
        yield (masks & 1).astype(np.float64)
        return
    generator = np.random.default_rng(seed)
    step = max(1, _AT_ONCE // n)
    for start in range(0, resamples, step):
        shape = min(step, resamples - start), n
        yield generator.integers(0, 2, shape).astype(np.float64)
