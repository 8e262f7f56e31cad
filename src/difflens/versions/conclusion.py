"""What follows from an A/B test: a winner only where the rule fires, and one plain sentence."""

from __future__ import annotations

from ..ab_results import (
    ABTestConclusion,
    ABTestConfig,
    SequentialResult,
    StatisticalTestResult,
    SummaryStats,
)
from ..records import Missing

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
        missing += [Missing(field, "--min-effect", "no least effect that matters was named")
                    for field in ("required_sample_size", "underpowered")]  # fmt: skip
    if primary.minimal_detectable_effect is None:
        why = primary.note or "no standard error is known"
        missing.append(Missing("minimal_detectable_effect", "values that vary", why))
    if winner is None:
        missing.append(Missing("winner", "the rule to fire", primary.verdict))
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
        "non_inferior": f"{config.model_b} is not worse than {config.model_a} on {test.metric}"
        f" by more than {config.margin or 0:.4g}",
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
    numbers.append(f"{test.test_type}, n = {test.n_a} and {test.n_b}")
    return f"{lead}: {', '.join(numbers)}"


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
        return f"take either: {test.verdict.replace('_', '-')} within {config.margin or 0:.4g}"
    if test.verdict == "different":
        return f"say which way {test.metric} is better"
    return _undecided(test, config, short)


def _undecided(test: StatisticalTestResult, config: ABTestConfig, short: bool | None) -> str:
    if short and test.required_sample_size:
        return f"go on until each arm has {test.required_sample_size} values"
    if test.minimal_detectable_effect is not None:
        seen = f"{test.minimal_detectable_effect:.3g}"
        return f"no decision: a difference of {seen} would have been found in {config.power:.0%}"
    return "no decision: there is nothing to test against"
