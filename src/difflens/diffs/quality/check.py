"""One check per metric: what was measured of both sides, and whether it got worse."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, NamedTuple

from difflens.core.findings import Interval
from difflens.core.policy import MetricRule, Policy
from difflens.stats.comparison import Comparison
from difflens.stats.decision import Decision, Direction, decide, degradation, holm
from difflens.stats.effect import minimal_difference
from difflens.stats.skewed import AGAINST_SKEW

from ..diff import Diff
from ..evidence.records import Evidence
from .margins import better
from .sides import compared, metrics_of, sides_of
from .trials import Settings, Trial, trials


class Check(NamedTuple):
    """A metric, the evidence it was judged by, and the judgement.

    `comparison` and `decision` are at the level asked for, and None if two single numbers were
    all there was: then a limit of the user may be breached, but nothing can be called noise or
    change. `sure_loss` is the least loss at `sure_level`, which is higher where several metrics
    are looked at, so that all of them together raise a false alarm no more often than one.
    """

    trial: Trial
    direction: Direction | None
    rule: MetricRule
    comparison: Comparison | None = None
    decision: Decision | None = None
    adjusted: float | None = None  # p after Holm, over the metrics of one screen
    sure_loss: float | None = None
    sure_level: float | None = None
    right_interval: tuple[float | None, float | None] = (None, None)

    @property
    def metric(self) -> str:
        """Its name."""
        return self.trial.metric

    @property
    def source(self) -> str:
        """Which evidence it was judged by."""
        return self.trial.source

    @property
    def left(self) -> float:
        """The value before."""
        return self.trial.left

    @property
    def right(self) -> float:
        """The value after."""
        return self.trial.right

    @property
    def statistical(self) -> bool:
        """Can change be told from noise at all?"""
        return self.trial.compare is not None

    @property
    def is_enough(self) -> bool:
        """Is there a test, and enough data for a verdict?"""
        return self.decision is not None and self.decision.word != "not_enough_data"

    @property
    def degradation(self) -> float | None:
        """How much worse right is, in the metric's own units; None if worse has no meaning."""
        if self.decision is not None:
            return self.decision.degradation
        if self.direction is None:
            return None
        return self.left - self.right if self.direction == "higher" else self.right - self.left

    @property
    def relative(self) -> float | None:
        """How much worse right is, over the size of left."""
        loss = self.degradation
        return None if loss is None or not self.left else loss / abs(self.left)

    @property
    def note(self) -> str:
        """What to know of the evidence and of the test."""
        test = self.comparison.note if self.comparison else ""
        return "; ".join(dict.fromkeys(filter(None, (self.trial.note, test))))

    @property
    def cautions(self) -> list[str]:
        """What must be told beside the result: how its examples were compared, and a long tail."""
        made = self.comparison
        skew = made.note if made and made.method.endswith(AGAINST_SKEW) else ""
        return [f"{self.metric}: {each}" for each in (self.trial.caution, skew) if each]

    @property
    def interval(self) -> Interval | str:
        """How sure the degradation is."""
        found, made = self.decision, self.comparison
        if found is None or made is None or found.degradation_low is None:
            return f"none_available: {self.note or 'no interval'}"
        return Interval(
            found.degradation_low, found.degradation_high, made.level, made.method, made.n_right
        )

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        made, found = self.comparison, self.decision
        flips = self.trial.flips
        return {
            "metric": self.metric,
            "source": self.source,
            "left": self.left,
            "right": self.right,
            "direction": self.direction,
            "margin": self.rule.margin,
            "limit": self.rule.threshold,
            "degradation": self.degradation,
            "degradation_low": found.degradation_low if found else None,
            "degradation_high": found.degradation_high if found else None,
            "sure_loss": self.sure_loss,
            "sure_level": self.sure_level,
            "p": made.p if made else None,
            "p_adjusted": self.adjusted,
            "method": made.method if made else None,
            "n": made.n_right if made else None,
            "clusters": made.clusters if made else None,
            "detectable": detectable(made),
            "broke": flips[0] if flips else None,
            "fixed": flips[1] if flips else None,
            "word": found.word if found else None,
            "statistical": True if self.statistical else None,
            "note": self.note,
        }


def detectable(made: Comparison | None) -> float | None:
    """Return the difference found in 80 of 100 cases; None without a standard error."""
    if made is None or not made.standard_error:
        return None
    return minimal_difference(made.standard_error, made.df, alpha=1 - made.level)


def rule_of(metric: str, policy: Policy) -> tuple[MetricRule, Direction | None]:
    """Return what the user says of a metric, and which way is better: theirs, or as it is known."""
    return policy.metrics.get(metric, MetricRule()), better(metric, policy).direction


# Holm's procedure on intervals instead of p-values: of m metrics one is first bounded at level
# 1 - alpha/m; each that crosses its line leaves the others fewer to share alpha with. So a margin
# is tested as a margin, and a test without a p (a bootstrap) takes part like the others.

Line = Callable[[Check], float]


def margin_of(check: Check) -> float:
    """Return the line of a metric: the loss that its user can bear, or none at all."""
    return check.rule.margin or 0.0


def checks(
    evidence: Evidence,
    policy: Policy,
    settings: Settings,
    line: Line = margin_of,
    diff: Diff | None = None,
) -> list[Check]:
    """Judge each metric once, by its strongest evidence; a diff remembers what was resampled."""
    return judge_trials(_tried(evidence, settings, diff), policy, settings, line)


def judge_trials(
    found: Iterable[Trial], policy: Policy, settings: Settings, line: Line = margin_of
) -> list[Check]:
    """Judge trials as one family, wherever they came from."""
    every = [judged(trial, policy, settings.alpha) for trial in found]
    return stepped_down(_adjusted(every), settings.alpha, line)


def _tried(evidence: Evidence, settings: Settings, diff: Diff | None) -> list[Trial]:
    if diff is None:
        return trials(evidence, settings)
    # The evidence is kept with the trials: no other one can come to have its identity.
    kept: tuple[list[Trial], Evidence] = diff.remember(
        ("trials", id(evidence), settings), lambda: (trials(evidence, settings), evidence)
    )
    return kept[0]


def judged(trial: Trial, policy: Policy, alpha: float) -> Check:
    """Judge one metric by itself, at level 1 - alpha."""
    rule, better = rule_of(trial.metric, policy)
    if trial.compare is None:
        return Check(trial, better, rule)
    made = trial.compare(1 - alpha)
    # No margin and a margin of nothing leave the same word: there is no room to be equivalent in.
    decision = decide(made, better, margin=rule.margin or None, alpha=alpha, least=trial.least)
    own = trial.own(1 - alpha) if trial.own else (None, None)
    return Check(trial, better, rule, made, decision, right_interval=own)


def _adjusted(found: list[Check]) -> list[Check]:
    tested = [
        (at, each.comparison.p)
        for at, each in enumerate(found)
        if each.comparison and each.comparison.p is not None
    ]
    for (at, _), p in zip(tested, holm([p for _, p in tested]), strict=True):
        found[at] = found[at]._replace(adjusted=p)
    return found


def stepped_down(found: list[Check], alpha: float, line: Line) -> list[Check]:
    """Bound every loss so that P(any bound is wrong) <= alpha, over those with enough data."""
    result = list(found)
    left = [at for at, each in enumerate(found) if each.direction and each.is_enough]
    while left:
        level = 1 - alpha / len(left)
        for at in left:
            result[at] = found[at]._replace(sure_loss=_least(found[at], level), sure_level=level)
        crossed = {at for at in left if is_over(result[at], line)}
        if not crossed:
            break
        left = [at for at in left if at not in crossed]
    return result


def is_over(check: Check, line: Line) -> bool:
    """Is it sure that the metric crossed its line?"""
    return check.sure_loss is not None and check.sure_loss > line(check)


def _least(check: Check, level: float) -> float | None:
    if check.trial.compare is None or check.direction is None:
        return None
    ends = degradation(check.trial.compare(level), check.direction).interval(level)
    return ends[0] if ends else None


LEVEL = 0.95


class Difference(NamedTuple):
    """One metric, right minus left; no interval where only two numbers are known."""

    metric: str
    left: float
    right: float
    direction: Literal["higher", "lower"] | None
    interval: Interval | None = None

    @property
    def change(self) -> float:
        """Right minus left."""
        return self.right - self.left

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        found = self.interval
        return {
            "left": self.left,
            "right": self.right,
            "change": self.change,
            "direction": self.direction,
            "low": found.low if found else None,
            "high": found.high if found else None,
        }


def differences(evidence: Evidence, policy: Policy) -> list[Difference]:
    """Compare every metric that both sides have: by examples where there are, else by numbers."""
    found = {each.metric: each for each in _of_examples(evidence, policy)}
    left, right = evidence.left.metrics or {}, evidence.right.metrics or {}
    for metric in sorted(left.keys() & right.keys() - found.keys()):
        _, better = rule_of(metric, policy)
        found[metric] = Difference(metric, left[metric], right[metric], better)
    return list(found.values())


def _of_examples(evidence: Evidence, policy: Policy) -> Iterator[Difference]:
    left, right = evidence.left.evals, evidence.right.evals
    for metric in sorted(metrics_of(left, right)):
        sides = sides_of(left, right, metric)
        if sides is None:
            continue
        test = compared(sides, LEVEL)
        means = [sum(side) / len(side) for side in (sides.left, sides.right)]
        known = test.low is not None and test.high is not None
        span = Interval(test.low, test.high, LEVEL, test.method, test.n_left) if known else None
        yield Difference(metric, means[0], means[1], rule_of(metric, policy)[1], span)
