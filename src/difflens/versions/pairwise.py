"""Every metric of every pair of models, tested where there are samples, adjusted over all tests.

A test that gives an interval and no p (latencies without named runs) is bounded at level
1 - alpha/m instead; m counts all tests, so that both kinds together keep alpha: with k such tests
and m0 true nulls among the others, Holm errs in at most m0·alpha/(m0 + k) of all cases, the
intervals in k·alpha/m.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import NamedTuple

import msgspec

from difflens.core.findings import Interval
from difflens.diffs.quality.check import detectable
from difflens.diffs.quality.trials import Settings, Trial
from difflens.stats.comparison import NO_REPEATS, Comparison
from difflens.stats.decision import benjamini_hochberg, decide, holm

from .metrics import Rule
from .records.comparisons import PairwiseTest
from .records.snapshots import DifferentialDebuggingConfig, ModelSnapshot
from .trials import Conditions, trials

ADJUST = {"holm": holm, "bh": benjamini_hochberg}


class Pairwise(NamedTuple):
    """All tests of a comparison, how many could be carried out, and warnings."""

    tests: tuple[PairwiseTest, ...]
    family: int
    warnings: tuple[str, ...]
    sources: dict[str, str]  # metric to the evidence that its tests stand on


def settings_of(config: DifferentialDebuggingConfig) -> Settings:
    """Take what a configuration says of tests."""
    return Settings(config.significance_threshold, seed=config.seed)


def pairwise_tests(
    models: Mapping[str, ModelSnapshot],
    rules: Mapping[str, Rule],
    config: DifferentialDebuggingConfig,
) -> Pairwise:
    """Test every metric of every pair, the first of a pair being left."""
    settings = settings_of(config)
    found: list[tuple[PairwiseTest, Trial | None]] = []
    warnings: list[str] = []
    sources: dict[str, str] = {}
    for left, right in combinations(models, 2):
        conditions = Conditions(models[left], models[right])
        warnings += conditions.warnings
        for trial in trials(models[left], models[right], settings):
            obstacle = conditions.obstacle(trial.metric)
            made = _tested(trial, rules[trial.metric], settings.alpha, obstacle)
            named = msgspec.structs.replace(made, left=left, right=right)
            found.append((named, None if obstacle else trial))
            if trial.compare is not None:
                sources[trial.metric] = trial.source
    family = sum(_is_tested(test) for test, _ in found)
    return Pairwise(
        _adjusted(found, family, config), family, tuple(dict.fromkeys(warnings)), sources
    )


def _tested(trial: Trial, rule: Rule, alpha: float, obstacle: str) -> PairwiseTest:
    gap = trial.right - trial.left
    bare = PairwiseTest(
        metric=trial.metric,
        left="",
        right="",
        difference=gap,
        direction=rule.direction,
        reason=obstacle or NO_REPEATS,
    )
    if obstacle or trial.compare is None:
        return bare
    made = trial.compare(1 - alpha)
    decision = decide(made, rule.direction, rule.margin or None, alpha, trial.least)
    return msgspec.structs.replace(
        bare,
        difference=made.difference,
        interval=interval_of(made),
        p=made.p,
        effect=made.effect,
        effect_name=effect_name(made),
        effect_interval=effect_interval(made),
        method=made.method,
        paired=is_paired(made),
        n_left=made.n_left,
        n_right=made.n_right,
        word=decision.word,
        minimal_detectable=detectable(made),
        reason="; ".join(filter(None, (decision.reason, trial.note))),
    )


def _is_tested(test: PairwiseTest) -> bool:
    return test.p is not None or test.interval is not None


def _adjusted(
    found: list[tuple[PairwiseTest, Trial | None]], family: int, config: DifferentialDebuggingConfig
) -> tuple[PairwiseTest, ...]:
    """Adjust every p over all tests, and say which differences stand."""
    alpha = config.significance_threshold
    ps = [test.p for test, _ in found if test.p is not None]
    silent = [1.0] * (family - len(ps))
    adjusted = iter(ADJUST[config.correction]([*ps, *silent]))
    tests = []
    for test, trial in found:
        p = next(adjusted) if test.p is not None else None
        stands = _stands(test, trial, p, alpha, family)
        tests.append(
            _worded(
                msgspec.structs.replace(test, p_adjusted=p, significant=stands),
                config.correction,
                family,
            )
        )
    return tuple(tests)


def _stands(
    test: PairwiseTest, trial: Trial | None, p: float | None, alpha: float, family: int
) -> bool | None:
    """Is the difference significant? None if there is no test, or too little for a verdict.

    Where they are told equivalent they are not: their difference, sure or not, does not matter.
    """
    if test.word == "not_enough_data" or not _is_tested(test):
        return None
    if test.word == "equivalent":
        return False
    if p is not None:
        return p < alpha
    if trial is None or trial.compare is None:
        return None
    ends = trial.compare(1 - alpha / family).interval(1 - alpha / family)
    return None if ends is None else ends[0] > 0 or ends[1] < 0


def _worded(test: PairwiseTest, correction: str, family: int) -> PairwiseTest:
    """Take back a verdict that does not stand when all tests are looked at together."""
    if test.word not in {"better", "worse"} or test.significant:
        return test
    reason = f"not after adjustment ({correction}, {family} tests); {test.reason}"
    return msgspec.structs.replace(test, word="inconclusive", reason=reason)


def interval_of(made: Comparison) -> Interval | None:
    """Return the interval of a difference as a record."""
    if made.low is None or made.high is None:
        return None
    return Interval(made.low, made.high, made.level, made.method, made.n_left + made.n_right)


def effect_interval(made: Comparison) -> Interval | None:
    """Return the interval of an effect as a record."""
    if made.effect_low is None or made.effect_high is None:
        return None
    return Interval(made.effect_low, made.effect_high, made.level, "non-central t", made.n_right)


def effect_name(made: Comparison) -> str:
    """Name the effect of a comparison: standardised by what."""
    if made.effect is None:
        return ""
    return "paired g" if is_paired(made) else "Hedges g"


def is_paired(made: Comparison) -> bool:
    """Did the comparison pair both sides?"""
    return "paired" in made.method or made.method.startswith("sign flip")
