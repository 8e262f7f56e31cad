"""Every metric judged, and how sure each loss is when all are looked at together.

Holm's procedure on intervals instead of p-values: of m metrics one is first bounded at level
1 - alpha/m; each that crosses its line leaves the others fewer to share alpha with. So a margin
is tested as a margin, and a test without a p (a bootstrap) takes part like the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...diffs import Diff
from ...evidences import Evidence
from ...records import Policy
from ...stats.adjust import holm
from ...stats.decision import decide
from ...stats.equivalence import degradation
from .check import Check, rule_of
from .settings import Settings
from .trials import Trial, trials

Line = Callable[[Check], float]


def margin_of(check: Check) -> float:
    """Give the line of a metric: the loss that its user can bear, or none at all."""
    return check.rule.margin or 0.0


def checks(
    evidence: Evidence,
    policy: Policy,
    settings: Settings,
    line: Line = margin_of,
    diff: Diff | None = None,
) -> list[Check]:
    """Judge each metric once, by its strongest evidence; a diff remembers what was resampled."""
    return held(_tried(evidence, settings, diff), policy, settings, line)


def held(
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
    tested = [(at, each.comparison.p) for at, each in enumerate(found)
              if each.comparison and each.comparison.p is not None]  # fmt: skip
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
