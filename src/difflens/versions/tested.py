"""One metric of two arms, tested: the method follows from the data, the others stand beside it.

Differences are A minus B, as the contract writes them; `stats` says right minus left, so B is
handed to it as left.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import asin, sqrt
from typing import Any, NamedTuple

from ..ab_results import FurtherTest
from ..stats.bootstrap import bootstrap
from ..stats.clusters import clustered_mean
from ..stats.comparison import Comparison, quantile, two_sided
from ..stats.mcnemar import McNemar, mcnemar
from ..stats.paired import paired, sign_flip, signed_rank
from ..stats.permutation import permutation
from ..stats.proportions import newcombe, newcombe_paired
from ..stats.ranks import brunner_munzel
from ..stats.trimmed import yuen
from ..stats.welch import welch
from .arms import Sides

RESAMPLES = 9999
_WORK = 20_000_000  # values that resampling may draw
_LEAST = 999  # resamples below which there is no point
_JACKKNIFED = 5000  # values up to which the acceleration of BCa is worth its time


class Tested(NamedTuple):
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


def tested(sides: Sides, level: float, seed: int) -> Tested:
    """Choose the test by the data: paired or not, right and wrong or measured, in clusters."""
    if sides.is_paired:
        plain = sides.is_binary and sides.left_clusters is None
        return _paired_answers(sides, level) if plain else _paired_values(sides, level, seed)
    if sides.left_clusters is not None and sides.right_clusters is not None:
        return _clustered(sides, level)
    return _answers(sides, level) if sides.is_binary else _values(sides, level, seed)


def _values(sides: Sides, level: float, seed: int) -> Tested:
    made = welch(sides.right, sides.left, level)
    effect = 0.0 if made.p is None and not made.difference else made.effect
    if made.p is None:
        return Tested(made, "Welch's t-test", effect, "Hedges g")
    further = [_ranked(sides, level), _trimmed(sides, level)]
    return Tested(
        made, "Welch's t-test", effect, "Hedges g",
        (*further, *_resampled(sides, level, seed)),
    )  # fmt: skip


def _ranked(sides: Sides, level: float) -> FurtherTest:
    made = brunner_munzel(sides.right, sides.left, level)
    ends = None
    if made.effect_low is not None and made.effect_high is not None:
        ends = (made.effect_low, made.effect_high)
    return FurtherTest(
        test_type="Brunner-Munzel", statistic=made.statistic, p_value=made.p,
        estimate=made.effect, estimate_name="P(A > B) + P(A = B)/2", confidence_interval=ends,
        note=made.note,
    )  # fmt: skip


def _trimmed(sides: Sides, level: float) -> FurtherTest:
    made = yuen(sides.right, sides.left, level=level)
    return _further("Yuen, 20 % trimmed", made, "difference of trimmed means")


def _further(name: str, made: Comparison, what: str) -> FurtherTest:
    ends = None if made.low is None or made.high is None else (made.low, made.high)
    return FurtherTest(
        test_type=name, statistic=made.statistic, p_value=made.p, estimate=made.difference,
        estimate_name=what, confidence_interval=ends, note=made.note,
    )  # fmt: skip


def _resampled(sides: Sides, level: float, seed: int) -> list[FurtherTest]:
    count = len(sides.left) + len(sides.right)
    resamples = min(RESAMPLES, _WORK // count)
    if resamples < _LEAST:
        return []
    found = permutation(sides.right, sides.left, resamples, seed)
    tests = [_further(f"studentised {found.method}", found, "difference of means")]
    if count <= _JACKKNIFED:
        tests.append(_booted([sides.left, sides.right], level, resamples, seed, is_paired=False))
    return tests


def _booted(
    samples: Sequence[Sequence[float]], level: float, resamples: int, seed: int, *, is_paired: bool
) -> FurtherTest:
    made = bootstrap(
        samples, _gap, level=level, resamples=resamples, seed=seed, paired=is_paired,
        vectorised=True,
    )  # fmt: skip
    ends = None if made.low is None or made.high is None else (made.low, made.high)
    return FurtherTest(
        test_type=f"bootstrap, {made.method}, {made.resamples} resamples, seed {seed}",
        estimate=made.value, estimate_name="difference of means", confidence_interval=ends,
        note=made.note,
    )  # fmt: skip


def _gap(left: Any, right: Any, axis: int = -1) -> Any:
    return left.mean(axis=axis) - right.mean(axis=axis)


def _answers(sides: Sides, level: float) -> Tested:
    counts = (int(sum(sides.right)), len(sides.right), int(sum(sides.left)), len(sides.left))
    made = newcombe(*counts, level)
    rates = counts[2] / counts[3], counts[0] / counts[1]
    error = sqrt(sum(p * (1 - p) / n for p, n in zip(rates, (counts[3], counts[1]), strict=True)))
    name = "Boschloo's exact test" if "boschloo" in made.method else "score test"
    effect = _cohen_h(*rates)
    return Tested(made, f"{name}, Newcombe interval", effect, "Cohen h", error=error or None)


def _cohen_h(left: float, right: float) -> float:
    """Give 2 asin sqrt(p_a) - 2 asin sqrt(p_b) (Cohen 1988)."""
    return 2 * asin(sqrt(left)) - 2 * asin(sqrt(right))


def _clustered(sides: Sides, level: float) -> Tested:
    """Compare two means by the errors between clusters, df by Satterthwaite over clusters."""
    left = clustered_mean(sides.left, sides.left_clusters or (), level)
    right = clustered_mean(sides.right, sides.right_clusters or (), level)
    sizes = len(sides.right), len(sides.left)
    fewest = min(left.clusters, right.clusters)
    gap = left.mean - right.mean
    name = "Welch's t-test, clustered"
    bare = Comparison(gap, None, None, level, None, "welch, clustered", *sizes, clusters=fewest)
    if not left.se or not right.se:
        note = "one cluster, or clusters without spread, tell no error"
        return Tested(bare._replace(note=note), name, None, "")
    parts = left.se**2, right.se**2
    shares = [part / sum(parts) for part in parts]
    df = 1 / sum(share**2 / d for share, d in zip(shares, (left.df, right.df), strict=True))
    error = sqrt(sum(parts))
    reach = quantile((1 + level) / 2, df) * error
    made = bare._replace(
        low=gap - reach, high=gap + reach, p=two_sided(gap / error, df), statistic=gap / error,
        df=df, standard_error=error,
    )  # fmt: skip
    return Tested(made, name, None, "")


def _paired_answers(sides: Sides, level: float) -> Tested:
    flags = [[bool(each) for each in side] for side in (sides.right, sides.left)]
    made, flips = newcombe_paired(flags[0], flags[1], level), mcnemar(*flags)
    made = made._replace(p=flips.p, statistic=flips.chi2)
    further = (
        FurtherTest(test_type="McNemar, exact", p_value=flips.p_exact),
        FurtherTest(test_type="McNemar, mid-p", p_value=flips.p_mid),
        FurtherTest(
            test_type="McNemar, corrected", statistic=flips.chi2_corrected,
            estimate=float(flips.fixed - flips.broke), estimate_name="net flips in favour of A",
        ),
    )  # fmt: skip
    rates = sum(sides.left) / len(sides.left), sum(sides.right) / len(sides.right)
    spread = flips.broke + flips.fixed - (flips.fixed - flips.broke) ** 2 / flips.n
    return Tested(
        made, f"McNemar, {flips.method}", _cohen_h(*rates), "Cohen h", further, flips,
        sqrt(spread) / flips.n or None,
    )  # fmt: skip


def _paired_values(sides: Sides, level: float, seed: int) -> Tested:
    made = paired(sides.right, sides.left, sides.left_clusters, level)
    name = made.method.replace("paired t", "paired t-test")
    effect = 0.0 if made.effect is None and not made.difference else made.effect
    if made.p is None or sides.left_clusters is not None:
        return Tested(made, name, effect, "paired g")
    ranked = signed_rank(sides.right, sides.left)
    further = [
        FurtherTest(
            test_type=f"Wilcoxon {ranked.method}", statistic=ranked.statistic, p_value=ranked.p,
            estimate=ranked.difference, estimate_name="median difference",
        )
    ]  # fmt: skip
    resamples = min(RESAMPLES, _WORK // len(sides.left))
    if resamples >= _LEAST:
        flipped = sign_flip(sides.right, sides.left, resamples, seed, level)
        further.append(_further(flipped.method, flipped, "mean difference"))
    if resamples >= _LEAST and len(sides.left) <= _JACKKNIFED:
        pairs = [sides.left, sides.right]
        further.append(_booted(pairs, level, resamples, seed, is_paired=True))
    return Tested(made, name, effect, "paired g", tuple(further))
