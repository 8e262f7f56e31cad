"""Is B better than A? Two arms of observations, every metric tested, one plain conclusion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from difflens.core.errors import InsufficientData
from difflens.core.findings import Missing
from difflens.core.kept import made as record_of
from difflens.core.kept import now
from difflens.diffs.quality.margins import direction as known_direction
from difflens.diffs.quality.sides import Sides
from difflens.stats.comparison import Comparison
from difflens.stats.decision import (
    Direction,
    decide,
    non_inferior,
    probability_fixes_prevail,
    probability_worse,
)
from difflens.stats.skewed import AGAINST_SKEW

from .arms import Arm, arms, describe_arms, sides, summary_stats
from .conclusion import NO_ERROR, Plan, conclude, many_flips, plan, practical
from .metrics import BUILTIN, relative
from .pairwise import ADJUST, effect_interval
from .records.ab import ABTestConfig, ABTestResult, StatisticalTestResult, Verdict
from .tested import MetricTest, SequentialTest, run_sequential_test, run_test

_WORDS: dict[str, Verdict] = {
    "better": "b_better",
    "worse": "a_better",
    "equivalent": "equivalent",
    "non_inferior": "non_inferior",
    "inconclusive": "inconclusive",
    "not_enough_data": "not_enough_data",
}
FEW_TO_SEE_SKEW = 20  # pairs below which a long tail often looks like none
_NO_P = "looked at again and again, a p of a fixed sample would not keep its promise"


class _Metric(NamedTuple):
    """One metric on its way: both sides, the test, and what looking again and again allows."""

    name: str
    sides: Sides
    found: MetricTest
    direction: Direction | None
    looks: SequentialTest | None = None


def run_ab_test(
    config: ABTestConfig | Mapping[str, Any],
    model_a_data: Any,
    model_b_data: Any,
    *,
    start_time: str | None = None,
    end_time: str | None = None,
) -> ABTestResult:
    """Test two arms: sequences of numbers or examples, or maps of metrics to such.

    Paired where ids match, or where `paired` says so; `start_time` and `end_time` are those of
    the experiment, where it is known when it ran.
    """
    config = record_of(ABTestConfig, config)
    left = arms(model_a_data, config, config.model_a)
    right = arms(model_b_data, config, config.model_b)
    names, warnings = _tracked(left, right, config)
    metrics = [_metric(name, left[name], right[name], config, len(names)) for name in names]
    tests = _adjusted([_result(each, config) for each in metrics], metrics, config)
    primary = config.primary_metric or names[0]
    first = next(each for each in metrics if each.name == primary)
    ours, theirs = describe_arms(left), describe_arms(right)
    means = tuple(summary_stats(own.values) for own in first.sides.owned)
    looks = first.looks.looks if first.looks else None
    when = "the data do not say when they were taken"
    return ABTestResult(
        config=config,
        model_a_results=ours,
        model_b_results=theirs,
        conclusion=conclude(tests[primary], config, (means[0], means[1]), looks),
        statistical_tests=tests,
        start_time=start_time,
        end_time=end_time or now(),
        sequential=looks,
        missing=() if start_time else (Missing("start_time", "times of the observations", when),),
        warnings=(*warnings, *_warnings(left, right, tests[primary], config), *_cautions(metrics)),
        findings=tuple(filter(None, (many_flips(each, config) for each in tests.values()))),
    )


def _tracked(
    left: Mapping[str, Arm], right: Mapping[str, Arm], config: ABTestConfig
) -> tuple[list[str], list[str]]:
    """List the metrics to test, the primary one first, and say which cannot be."""
    wanted = list(config.tracked_metrics) or list(dict.fromkeys([*left, *right]))
    if config.primary_metric and config.primary_metric not in wanted:
        wanted.insert(0, config.primary_metric)
    both = [name for name in wanted if name in left and name in right]
    lacking = [name for name in wanted if name not in both]
    warnings = [f"{name} has no values in both arms and was not tested" for name in lacking]
    if not both or (config.primary_metric and config.primary_metric not in both):
        said = f"{config.primary_metric or 'no metric'} has values in both arms"
        if config.primary_metric:
            said = f"{config.primary_metric} has no values in both arms"
        raise InsufficientData(said)
    return both, warnings


def _metric(name: str, left: Arm, right: Arm, config: ABTestConfig, family: int) -> _Metric:
    for arm, model in ((left, config.model_a), (right, config.model_b)):
        if not arm.finite:
            raise InsufficientData(f"{model} has no finite value of {name}")
    both = sides(left, right, name, config)
    if not both.left:
        raise InsufficientData(f"{name}: no pair of finite values")
    better = config.directions.get(name) or _direction(name)
    if not config.sequential:
        return _Metric(name, both, run_test(both, 1 - config.alpha, config.seed), better)
    looks = run_sequential_test(both, 1 - config.alpha / family)
    return _Metric(name, both, MetricTest(looks.made, looks.made.method, None, ""), better, looks)


def _direction(metric: str) -> Direction | None:
    return BUILTIN[metric].direction if metric in BUILTIN else known_direction(metric)


def _result(metric: _Metric, config: ABTestConfig) -> StatisticalTestResult:
    """Record one metric; its p is not adjusted yet."""
    made, both = metric.found.made, metric.sides
    planned = plan(metric.found, both, config)
    verdict, reason = _verdict(metric, config)
    flips = both.flips
    means = sum(both.left) / len(both.left), sum(both.right) / len(both.right)
    ends = None if made.low is None or made.high is None else (made.low, made.high)
    return StatisticalTestResult(
        test_type=metric.found.name,
        statistic=made.statistic,
        p_value=made.p,
        effect_size=metric.found.effect,
        confidence_interval=ends,
        metric=metric.name,
        direction=metric.direction,
        difference=made.difference,
        relative_difference=relative(means[1], means[0]),
        level=made.level,
        df=made.df,
        effect_name=metric.found.effect_name if metric.found.effect is not None else "",
        effect_interval=effect_interval(made),
        n_a=len(both.left),
        n_b=len(both.right),
        paired=both.is_paired,
        clusters=made.clusters,
        verdict=verdict,
        practical=practical(metric.found, both, config),
        minimal_detectable_effect=planned.detectable,
        required_sample_size=planned.needed,
        probability_b_better=_probability(metric, _mirrored(made)),
        not_worse=_not_worse(metric, config),
        broke=flips.broke if flips else None,
        fixed=flips.fixed if flips else None,
        further=metric.found.further,
        assumptions=_assumptions(metric),
        note="; ".join(filter(None, (reason, both.note, made.note))),
        missing=_gaps(metric, planned, config),
    )


def _verdict(metric: _Metric, config: ABTestConfig) -> tuple[Verdict, str]:
    """Say how B stands against A, by the interval."""
    made = metric.found.made
    word = decide(_mirrored(made), metric.direction, config.margin or None, config.alpha)
    if word.word == "inconclusive" and metric.direction is None and _leaves_out_zero(made):
        return "different", word.reason
    if word.word == "inconclusive" and _not_worse(metric, config) == (config.model_a,):
        told = f"worse by less than {config.margin:g} at level {1 - config.alpha:.0%}"
        return "non_inferior", f"{config.model_a}: {told}"
    return _WORDS[word.word], f"{config.model_b}: {word.reason}"


def _not_worse(metric: _Metric, config: ABTestConfig) -> tuple[str, ...]:
    """Name the models that are shown not to be worse than the other by more than the margin."""
    if not config.margin or metric.direction is None:
        return ()
    made = metric.found.made
    against = ((config.model_a, made), (config.model_b, _mirrored(made)))
    return tuple(
        model
        for model, each in against
        if non_inferior(each, config.margin, metric.direction, config.alpha).holds
    )


def _adjusted(
    results: list[StatisticalTestResult], metrics: list[_Metric], config: ABTestConfig
) -> dict[str, StatisticalTestResult]:
    """Adjust every p over the metrics, and take back verdicts that do not stand then."""
    ps = [each.p_value for each in results if each.p_value is not None]
    adjusted = iter(ADJUST[config.correction](ps))
    found = {}
    for result, metric in zip(results, metrics, strict=True):
        p = next(adjusted) if result.p_value is not None else None
        stands = None if p is None else p < config.alpha
        if metric.looks:
            stands = metric.looks.looks.stopped_at is not None
        verdict = result.verdict
        if verdict in {"a_better", "b_better", "different"} and not stands:
            verdict = "inconclusive"
        found[metric.name] = msgspec.structs.replace(
            result, p_adjusted=p, is_significant=stands, verdict=verdict
        )
    return found


def _mirrored(made: Comparison) -> Comparison:
    """Turn A minus B into B minus A: the question is how B compares with A."""
    return made._replace(
        difference=0.0 - made.difference,  # no negative zero
        low=None if made.high is None else 0.0 - made.high,
        high=None if made.low is None else 0.0 - made.low,
    )


def _leaves_out_zero(made: Comparison) -> bool:
    return made.low is not None and made.high is not None and (made.low > 0 or made.high < 0)


def _probability(metric: _Metric, mirrored: Comparison) -> float | None:
    """Return P(B better | data) under a flat prior, where the method has a posterior."""
    if metric.direction is None or metric.looks:
        return None
    flips = metric.found.flips
    if flips is not None:
        ahead = probability_fixes_prevail(flips.fixed, flips.broke)  # of B over A
        return ahead if metric.direction == "higher" else 1 - ahead
    worse = probability_worse(mirrored, metric.direction)
    return None if worse is None else 1 - worse


def _gaps(metric: _Metric, planned: Plan, config: ABTestConfig) -> tuple[Missing, ...]:
    """Say why a field is null."""
    made, found = metric.found.made, []
    untested = _NO_P if config.sequential else made.note or "nothing varies"
    for field, value in (("statistic", made.statistic), ("p_value", made.p)):
        if value is None:
            found.append(Missing(field, "values that vary", untested))
    if made.low is None:
        found.append(Missing("confidence_interval", "values that vary", made.note or untested))
    if metric.found.effect is None:
        found.append(Missing("effect_size", "independent values that vary", made.note or untested))
    if metric.direction is None:
        needs = f"--direction, or directions.{metric.name}"
        found.append(Missing("direction", needs, "its name does not tell which way is better"))
    if planned.detectable is None:
        found.append(Missing("minimal_detectable_effect", "values that vary", NO_ERROR))
    if planned.needed is None:
        found.append(Missing("required_sample_size", "--min-effect", planned.why))
    return tuple(found)


def _assumptions(metric: _Metric) -> tuple[str, ...]:
    both = metric.sides
    found = []
    if both.left_clusters is None:
        unit = "pairs" if both.is_paired else "values"
        found.append(f"{unit} are independent of each other")
    if both.is_paired and not both.is_binary and len(both.left) < FEW_TO_SEE_SKEW:
        found.append("differences are not heavily skewed: so few could not show it")
    if metric.looks:
        found.append("values stand in the order they came in")
    return tuple(found)


def _cautions(metrics: list[_Metric]) -> list[str]:
    """Warn of what weakens a test: a long tail, or too few shared ids to pair by."""
    found = []
    for each in metrics:
        made = each.found.made
        skew = made.note if made.method.endswith(AGAINST_SKEW) else ""
        found += [f"{each.name}: {told}" for told in (each.sides.caution, skew) if told]
    return found


def _warnings(
    left: Mapping[str, Arm],
    right: Mapping[str, Arm],
    primary: StatisticalTestResult,
    config: ABTestConfig,
) -> list[str]:
    """Say what the reader must know before believing the numbers."""
    found = []
    for model, side in ((config.model_a, left), (config.model_b, right)):
        for name, arm in side.items():
            lost = len(arm.values) - len(arm.finite)
            if lost:
                found.append(f"{model}, {name}: {lost} values are not finite and were left out")
    fewest, planned = min(primary.n_a, primary.n_b), config.sample_size
    if planned and fewest < planned and not config.sequential:
        found.append(
            f"{fewest} of {planned} planned values: a look before the end needs --sequential"
        )
    needed = primary.required_sample_size
    if needed and fewest < needed:
        found.append(f"underpowered: {fewest} values an arm, {needed} are needed")
    return found
