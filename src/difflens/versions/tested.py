"""One metric of two arms, tested: the method follows from the data, the others stand beside it.

Differences are A minus B, while `stats` subtracts left from right: so B is its left.

A sequential test may be looked at after every value: its interval holds at all looks at once. It
has no p of a fixed sample, which, looked at a hundred times at 5 %, would raise a false alarm in
37 of 100 cases.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import asin, sqrt
from typing import Any, NamedTuple

from difflens.diffs.quality.sides import SHARED, Sides, compared
from difflens.stats.bootstrap import bootstrap
from difflens.stats.clusters import METHOD as CLUSTERED
from difflens.stats.clusters import average_repeats
from difflens.stats.comparison import Comparison, two_sided
from difflens.stats.means import permutation, yuen
from difflens.stats.paired import sign_flip, signed_rank
from difflens.stats.proportions import McNemar, mcnemar
from difflens.stats.ranking import brunner_munzel
from difflens.stats.sequential import START, Bounds, betting_sequence, confidence_sequence

from .records.ab import FurtherTest, SequentialResult

RESAMPLES = 9999
_WORK = 20_000_000  # values that resampling may draw
_LEAST = 999  # resamples below which there is no point
_LINKED = {CLUSTERED: "Welch's t-test, clustered", SHARED: "Welch's t-test, shared examples"}
_JACKKNIFED = 5000  # values up to which the acceleration of BCa is worth its time


class MetricTest(NamedTuple):
    """What decides, its name, its effect, the other methods, and the flips of paired answers."""

    made: Comparison
    name: str
    effect: float | None
    effect_name: str
    further: tuple[FurtherTest, ...] = ()
    flips: McNemar | None = None
    error: float | None = None  # of the difference, where its interval is made in another way

    @property
    def standard_error(self) -> float | None:
        """How much the difference varies from sample to sample: what power is planned with."""
        return self.made.standard_error or self.error


def run_test(sides: Sides, level: float, seed: int) -> MetricTest:
    """Choose the test by the data: paired or not, right and wrong or measured, in clusters."""
    made = compared(_turned(sides), level)
    if sides.is_paired:
        plain = sides.is_binary and sides.left_clusters is None
        return _paired_answers(sides, made) if plain else _paired_values(sides, made, seed)
    if made.method in _LINKED:
        return MetricTest(made, _LINKED[made.method], None, "")
    return _answers(sides, made) if sides.is_binary else _values(sides, made, seed)


def _turned(sides: Sides) -> Sides:
    """Swap A and B: `stats` says right minus left."""
    clusters = sides.right_clusters, sides.left_clusters
    own = (sides.own[1], sides.own[0]) if sides.own else None
    return Sides(sides.right, sides.left, sides.is_paired, *clusters, sides.note, own)


def _values(sides: Sides, made: Comparison, seed: int) -> MetricTest:
    level = made.level
    effect = 0.0 if made.p is None and not made.difference else made.effect
    if made.p is None:
        return MetricTest(made, "Welch's t-test", effect, "Hedges g")
    further = [_ranked(sides, level), _trimmed(sides, level)]
    return MetricTest(
        made, "Welch's t-test", effect, "Hedges g", (*further, *_resampled(sides, level, seed))
    )


def _ranked(sides: Sides, level: float) -> FurtherTest:
    made = brunner_munzel(sides.right, sides.left, level)
    ends = None
    if made.effect_low is not None and made.effect_high is not None:
        ends = (made.effect_low, made.effect_high)
    return FurtherTest(
        test_type="Brunner-Munzel",
        statistic=made.statistic,
        p_value=made.p,
        estimate=made.effect,
        estimate_name="P(A > B) + P(A = B)/2",
        confidence_interval=ends,
        note=made.note,
    )


def _trimmed(sides: Sides, level: float) -> FurtherTest:
    made = yuen(sides.right, sides.left, level=level)
    return _other_test("Yuen, 20 % trimmed", made, "difference of trimmed means")


def _other_test(name: str, made: Comparison, what: str) -> FurtherTest:
    ends = None if made.low is None or made.high is None else (made.low, made.high)
    return FurtherTest(
        test_type=name,
        statistic=made.statistic,
        p_value=made.p,
        estimate=made.difference,
        estimate_name=what,
        confidence_interval=ends,
        note=made.note,
    )


def _resampled(sides: Sides, level: float, seed: int) -> list[FurtherTest]:
    count = len(sides.left) + len(sides.right)
    resamples = min(RESAMPLES, _WORK // count)
    if resamples < _LEAST:
        return []
    found = permutation(sides.right, sides.left, resamples, seed)
    tests = [_other_test(f"studentised {found.method}", found, "difference of means")]
    if count <= _JACKKNIFED:
        tests.append(_booted([sides.left, sides.right], level, resamples, seed, is_paired=False))
    return tests


def _booted(
    samples: Sequence[Sequence[float]], level: float, resamples: int, seed: int, *, is_paired: bool
) -> FurtherTest:
    made = bootstrap(
        samples,
        _gap,
        level=level,
        resamples=resamples,
        seed=seed,
        paired=is_paired,
        vectorised=True,
    )
    ends = None if made.low is None or made.high is None else (made.low, made.high)
    return FurtherTest(
        test_type=f"bootstrap, {made.method}, {made.resamples} resamples, seed {seed}",
        estimate=made.value,
        estimate_name="difference of means",
        confidence_interval=ends,
        note=made.note,
    )


def _gap(left: Any, right: Any, axis: int = -1) -> Any:
    return left.mean(axis=axis) - right.mean(axis=axis)


def _answers(sides: Sides, made: Comparison) -> MetricTest:
    sizes = len(sides.left), len(sides.right)
    rates = sum(sides.left) / sizes[0], sum(sides.right) / sizes[1]
    error = sqrt(sum(p * (1 - p) / n for p, n in zip(rates, sizes, strict=True)))
    name = "Boschloo's exact test" if "boschloo" in made.method else "score test"
    effect = _cohen_h(*rates)
    return MetricTest(made, f"{name}, Newcombe interval", effect, "Cohen h", error=error or None)


def _cohen_h(left: float, right: float) -> float:
    """Return 2 asin sqrt(p_a) - 2 asin sqrt(p_b) (Cohen 1988)."""
    return 2 * asin(sqrt(left)) - 2 * asin(sqrt(right))


def _paired_answers(sides: Sides, made: Comparison) -> MetricTest:
    flags = [[bool(each) for each in side] for side in (sides.right, sides.left)]
    flips = mcnemar(*flags)
    # Its p stays: the one question has one p, here and in every gate.
    made = made._replace(statistic=flips.chi2)
    further = (
        FurtherTest(test_type="McNemar, exact", p_value=flips.p_exact),
        FurtherTest(
            test_type="McNemar, chi-square",
            statistic=flips.chi2,
            p_value=None if flips.chi2 is None else two_sided(sqrt(flips.chi2), None),
        ),
        FurtherTest(
            test_type="McNemar, corrected",
            statistic=flips.chi2_corrected,
            estimate=float(flips.fixed - flips.broke),
            estimate_name="net flips in favour of A",
        ),
    )
    rates = sum(sides.left) / len(sides.left), sum(sides.right) / len(sides.right)
    spread = flips.broke + flips.fixed - (flips.fixed - flips.broke) ** 2 / flips.n
    return MetricTest(
        made,
        "McNemar, mid-p",
        _cohen_h(*rates),
        "Cohen h",
        further,
        flips,
        sqrt(spread) / flips.n or None,
    )


def _paired_values(sides: Sides, made: Comparison, seed: int) -> MetricTest:
    level = made.level
    name = made.method.replace("paired t", "paired t-test")
    effect = 0.0 if made.effect is None and not made.difference else made.effect
    if made.p is None or sides.left_clusters is not None:
        return MetricTest(made, name, effect, "paired g")
    ranked = signed_rank(sides.right, sides.left)
    further = [
        FurtherTest(
            test_type=f"Wilcoxon {ranked.method}",
            statistic=ranked.statistic,
            p_value=ranked.p,
            estimate=ranked.difference,
            estimate_name="median difference",
        )
    ]
    resamples = min(RESAMPLES, _WORK // len(sides.left))
    if resamples >= _LEAST:
        flipped = sign_flip(sides.right, sides.left, resamples, seed, level)
        further.append(_other_test(flipped.method, flipped, "mean difference"))
    if resamples >= _LEAST and len(sides.left) <= _JACKKNIFED:
        pairs = [sides.left, sides.right]
        further.append(_booted(pairs, level, resamples, seed, is_paired=True))
    return MetricTest(made, name, effect, "paired g", tuple(further))


_LONGEST = 50_000  # values up to which betting against every mean is worth its time


class SequentialTest(NamedTuple):
    """The interval that counts, as a comparison of A minus B, and the looks behind it."""

    made: Comparison
    looks: SequentialResult


def run_sequential_test(sides: Sides, level: float) -> SequentialTest:
    """Follow the differences in the order they came; stop at the first interval without zero."""
    moves, note = _differences(sides)
    bounded = all(0 <= value <= 1 for side in (sides.left, sides.right) for value in side)
    if bounded and len(moves) <= _LONGEST:
        method = "betting confidence sequence"
        found = betting_sequence(moves, level=level, bounds=(-1.0, 1.0))
    else:
        method = "asymptotic confidence sequence"
        found = confidence_sequence(moves, level=level)
        if len(moves) < START:
            note = f"{note}; nothing can be said before {START} values".lstrip("; ")
    low, high = _ends(found)
    mean = sum(moves) / len(moves)
    n = len(moves)
    made = Comparison(mean, low, high, level, None, method, n, n, note=note)
    return SequentialTest(
        made,
        SequentialResult(
            method=method,
            low=low,
            high=high,
            level=level,
            looks=n,
            stopped_at=found.stopped,
            note=note,
        ),
    )


def _ends(found: Bounds) -> tuple[float | None, float | None]:
    """Return the interval at the stop, where the question was decided, else the last one."""
    place = (found.stopped or len(found.low)) - 1
    return found.low[place], found.high[place]


def _differences(sides: Sides) -> tuple[list[float], str]:
    """Return A minus B, value by value; values of one cluster count as one, at its first."""
    left, right = (
        _in_order(values, clusters)
        for values, clusters in (
            (sides.left, sides.left_clusters),
            (sides.right, sides.right_clusters),
        )
    )
    count = min(len(left), len(right))
    notes = []
    if sides.left_clusters is not None:
        notes.append("clusters count as one value each")
    if not sides.is_paired:
        notes.append("arms are compared value by value in the order they came")
        if len(left) != len(right):
            notes.append(f"{abs(len(left) - len(right))} values of the longer arm wait")
    return [left[at] - right[at] for at in range(count)], "; ".join(notes)


def _in_order(values: Sequence[float], clusters: Sequence[str] | None) -> list[float]:
    return list(values) if clusters is None else list(average_repeats(clusters, values).means)
