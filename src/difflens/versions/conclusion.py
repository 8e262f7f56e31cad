"""What follows from an A/B test: a winner only where the rule fires; what was too small to see."""

from __future__ import annotations

from math import ceil
from typing import Literal, NamedTuple

from difflens.core.findings import Missing
from difflens.diffs.quality.sides import Sides
from difflens.stats.effect import minimal_difference, sample_size
from difflens.stats.proportions import wilson
from difflens.stats.samples import sample, variance

from .records.ab import (
    ABTestConclusion,
    ABTestConfig,
    SequentialResult,
    StatisticalTestResult,
    SummaryStats,
)
from .tested import MetricTest

MANY_FLIPS = 0.05  # share of answers, surely flipped, from which it is worth a finding

NO_ERROR = "no standard error is known: what is compared does not vary"
RULE = (
    "the adjusted p is below alpha, the interval leaves out zero, and lies wholly beyond the"
    " least effect that matters"
)
PEEKING_RULE = "an interval that is valid at every look lies wholly beyond the least effect"
_SAID = {"yes": True, "no": False, "unclear": None}


def conclude(
    primary: StatisticalTestResult,
    config: ABTestConfig,
    means: tuple[SummaryStats, SummaryStats],
    sequential: SequentialResult | None,
) -> ABTestConclusion:
    """Conclude from the primary metric."""
    winner = winner_of(primary, config)
    needed = primary.required_sample_size
    short = None if needed is None else min(primary.n_a, primary.n_b) < needed
    missing = []
    if _SAID[primary.practical] is None:
        why = "the interval neither lies beyond the least effect nor within it"
        missing.append(Missing("practical_significance", "more observations", why))
    if needed is None:
        missing += [
            Missing(field, "--min-effect", "no least effect that matters was named")
            for field in ("required_sample_size", "underpowered")
        ]
    if primary.minimal_detectable_effect is None:
        missing.append(Missing("minimal_detectable_effect", "values that vary", NO_ERROR))
    if winner is None:
        missing.append(Missing("winner", *_no_winner(primary)))
    return ABTestConclusion(
        winner=winner,
        confidence=primary.level,
        practical_significance=_SAID[primary.practical],
        recommendation=_recommendation(primary, config, winner, short),
        summary=sentence(primary, config, means, sequential),
        verdict=primary.verdict,
        practical=primary.practical,
        rule=PEEKING_RULE if config.sequential else RULE,
        underpowered=short,
        minimal_detectable_effect=primary.minimal_detectable_effect,
        required_sample_size=needed,
        missing=tuple(missing),
    )


def _no_winner(primary: StatisticalTestResult) -> tuple[str, str]:
    """Say what would decide for a winner, and why there is none."""
    found = {
        "equivalent": ("models that differ", "both are equivalent: neither is better"),
        "non_inferior": ("a sure difference", "one is not worse, and not shown to be better"),
        "different": ("--direction", "nobody said which way is better"),
        "a_better": ("a larger difference", "it is not shown to reach the least that matters"),
        "b_better": ("a larger difference", "it is not shown to reach the least that matters"),
    }
    return found.get(primary.verdict, ("more observations", primary.verdict))


def winner_of(primary: StatisticalTestResult, config: ABTestConfig) -> str | None:
    """Name the winner where the rule fires."""
    if primary.practical != "yes":
        return None
    return {"a_better": config.model_a, "b_better": config.model_b}.get(primary.verdict)


def sentence(
    test: StatisticalTestResult,
    config: ABTestConfig,
    means: tuple[SummaryStats, SummaryStats],
    sequential: SequentialResult | None,
) -> str:
    """Say it in one sentence, with its numbers."""
    a, b = means[0].mean or 0.0, means[1].mean or 0.0
    lead = {
        "a_better": f"{config.model_a} is better than {config.model_b} on {test.metric}",
        "b_better": f"{config.model_b} is better than {config.model_a} on {test.metric}",
        "equivalent": f"{config.model_a} and {config.model_b} are equivalent on {test.metric}",
        "non_inferior": _not_inferior(test, config),
        "different": f"{config.model_a} and {config.model_b} differ on {test.metric},"
        " of which nobody said which way is better",
        "inconclusive": f"{test.metric} does not tell {config.model_a} and {config.model_b} apart",
        "not_enough_data": f"too few values of {test.metric} for a verdict",
    }[test.verdict]
    numbers = [f"{a:.4g} against {b:.4g}"]
    if test.confidence_interval:
        low, high = test.confidence_interval
        numbers.append(f"{test.level:.0%} interval of the difference {low:.3g} to {high:.3g}")
    if test.p_adjusted is not None:
        numbers.append(f"p = {test.p_adjusted:.2g}")
    if sequential and sequential.stopped_at:
        numbers.append(f"decided after {sequential.stopped_at}")
    if test.broke is not None:
        numbers.append(f"{test.broke} right -> wrong, {test.fixed} wrong -> right")
    numbers.append(f"{test.test_type}, {_sizes(test, means)}")
    return f"{lead}: {', '.join(numbers)}"


def _not_inferior(test: StatisticalTestResult, config: ABTestConfig) -> str:
    better, other = _shown(test, config)
    return (
        f"{better} is not worse than {other} on {test.metric} by more than {config.margin or 0:.4g}"
    )


def _shown(test: StatisticalTestResult, config: ABTestConfig) -> tuple[str, str]:
    """Name the one model that is shown not to be worse, and the other."""
    models = config.model_b, config.model_a
    return models if models[0] in test.not_worse else models[::-1]


def _sizes(test: StatisticalTestResult, means: tuple[SummaryStats, SummaryStats]) -> str:
    """Say how many values were compared, and of how many each mean is where those are others."""
    own = means[0].n, means[1].n
    if own == (test.n_a, test.n_b):
        return f"n = {test.n_a} and {test.n_b}"
    return f"n = {test.n_a} pairs of {own[0]} and {own[1]}"


def many_flips(test: StatisticalTestResult, config: ABTestConfig) -> str:
    """Say that many answers flipped although neither model is shown to be better; else nothing."""
    if test.broke is None or test.fixed is None or test.verdict in {"a_better", "b_better"}:
        return ""
    flips = test.broke + test.fixed
    least = wilson(flips, test.n_a, test.level).low
    if least < MANY_FLIPS:
        return ""
    return (
        f"{test.metric}: {flips} of {test.n_a} answers flipped ({flips / test.n_a:.1%}, at least"
        f" {least:.1%} of answers like these): {test.broke} right in {config.model_a} and wrong in"
        f" {config.model_b}, {test.fixed} the other way; the models are not interchangeable"
        " answer by answer"
    )


def _recommendation(
    test: StatisticalTestResult, config: ABTestConfig, winner: str | None, short: bool | None
) -> str:
    if winner is not None:
        return f"take {winner}"
    if test.verdict in {"a_better", "b_better"}:
        least = f"{config.min_effect_size:g} ({config.effect_unit})"
        if test.practical == "no":
            return f"take either: the difference is sure, and smaller than the {least} that matter"
        return f"go on: the difference is sure, but not that it reaches the {least} that matter"
    if test.verdict in {"equivalent", "non_inferior"}:
        return _within_margin(test, config)
    if test.verdict == "different":
        return f"say which way {test.metric} is better"
    return _undecided(test, config, short)


def _within_margin(test: StatisticalTestResult, config: ABTestConfig) -> str:
    """Say which may be taken: either only where neither is worse by more than the margin."""
    if test.verdict == "equivalent":
        return f"take either: equivalent within {config.margin or 0:.4g}"
    better, other = _shown(test, config)
    told = f"take {better}: not worse than {other} by more than {config.margin or 0:.4g}"
    return f"{told}; of {other} that is not shown"


def _undecided(test: StatisticalTestResult, config: ABTestConfig, short: bool | None) -> str:
    if short and test.required_sample_size:
        return f"go on until each arm has {test.required_sample_size} values"
    if test.minimal_detectable_effect is not None:
        seen = f"{test.minimal_detectable_effect:.3g}"
        return f"no decision: a difference of {seen} would have been found in {config.power:.0%}"
    return "no decision: there is nothing to test against"


Practical = Literal["yes", "no", "unclear"]


class Plan(NamedTuple):
    """What would be found with the wanted power; None if that is not known, and why."""

    detectable: float | None
    needed: int | None
    why: str = ""


def plan(found: MetricTest, sides: Sides, config: ABTestConfig) -> Plan:
    """Return the least difference this sample finds, and the sample that finds the least effect."""
    error = found.standard_error
    seen = None
    if error:
        seen = minimal_difference(error, found.made.df, alpha=config.alpha, power=config.power)
    effect, why = _standardised(sides, config)
    if effect is None:
        return Plan(seen, None, why)
    needed = sample_size(effect, alpha=config.alpha, power=config.power, paired=sides.is_paired)
    design = _design(found, sides)
    return Plan(seen, ceil(needed * design), "")


def _standardised(sides: Sides, config: ABTestConfig) -> tuple[float | None, str]:
    """Return the least effect that matters in units of the deviation that the test stands on."""
    least = config.min_effect_size
    if not least:
        return None, "no least effect that matters was named"
    if config.effect_unit == "standardised":
        return least, ""
    spread = _deviation(sides)
    if not spread:
        return None, "the values do not vary"
    if config.effect_unit == "absolute":
        return least / spread, ""
    mean = sum(sides.left) / len(sides.left)
    return (least * abs(mean) / spread, "") if mean else (None, "the mean of A is zero")


def _deviation(sides: Sides) -> float:
    if sides.is_paired:
        moves = [one - other for one, other in zip(sides.left, sides.right, strict=True)]
        return float(variance(sample(moves, "differences")) ** 0.5) if len(moves) > 1 else 0.0
    if min(len(sides.left), len(sides.right)) < 2:
        return 0.0
    parts = [variance(sample(each, "arm")) for each in (sides.left, sides.right)]
    return float((sum(parts) / 2) ** 0.5)


def _design(found: MetricTest, sides: Sides) -> float:
    """Say how much larger clusters make the sample that is needed: (error / plain error)²."""
    if found.made.clusters is None or not found.made.standard_error:
        return 1.0
    spread, n = _deviation(sides), len(sides.left)
    plain = spread**2 / n if sides.is_paired else spread**2 * (1 / n + 1 / len(sides.right))
    return max(1.0, found.made.standard_error**2 / plain) if plain else 1.0


def practical(found: MetricTest, sides: Sides, config: ABTestConfig) -> Practical:
    """Compare the interval, not the point, with the least effect that matters."""
    ends = _in_unit(found, sides, config)
    least = config.min_effect_size
    if ends is None:
        return "unclear"
    low, high = ends
    if low > least or high < -least:
        return "yes"
    return "no" if -least < low and high < least else "unclear"


def _in_unit(found: MetricTest, sides: Sides, config: ABTestConfig) -> tuple[float, float] | None:
    """Return the interval in units of the smallest effect, or of the metric if that is zero."""
    made = found.made
    if made.low is None or made.high is None:
        return None
    if config.effect_unit == "absolute" or not config.min_effect_size:
        return made.low, made.high
    if config.effect_unit == "relative":
        mean = abs(sum(sides.left) / len(sides.left))
        return (made.low / mean, made.high / mean) if mean else None
    if made.effect_low is not None and made.effect_high is not None:
        return made.effect_low, made.effect_high
    spread = _deviation(sides)
    return (made.low / spread, made.high / spread) if spread else None
