"""An alarm for pipelines: did a metric cross its line?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ..answers import Answer
from ..diffs import Diff
from ..errors import DifflensError
from ..evidences import Evidence
from ..records import Envelope, Policy, Threshold
from . import analysis
from .quality.check import Check
from .quality.checks import checks
from .quality.settings import Settings
from .regression_test import NEEDS

NAME = "alert_on_degradation"
MODES = ("limit", "point")
THRESHOLDS = {
    "mode": Threshold("limit", "`limit`: the sure part of the loss decides; `point`: the value"),
    "degradation": Threshold(0.0, "loss, relative to left, where the metric has no margin"),
    "alpha": Threshold(0.05, "chance of a false alarm, over all metrics together (Holm)"),
    "latency_quantile": Threshold(0.95, "the quantile of the latencies that is watched"),
    "seed": Threshold(0, "seed of the resampling behind latency intervals"),
}
_FIELDS = ("alert_triggered", "metric", "threshold", "current", "evidence")


def _gate(fields: dict[str, Any]) -> bool | None:
    alarm: bool | None = fields["alert_triggered"]
    return None if alarm is None else not alarm


class _Watch(NamedTuple):
    """A metric and its line: a loss that is allowed, or a limit of the value itself."""

    check: Check
    what: str
    current: float
    line: float
    excess: float  # over the line, relative to left: so points and milliseconds can be compared


# What is told of the examples, such as their number, may be the same for very different weights.
@analysis(needs=[], thresholds=THRESHOLDS, gate=_gate, constants=("evidence",))
def alert_on_degradation(diff: Diff, evidence: Evidence, policy: Policy) -> Envelope:
    """Whether a metric crossed its line: the confidence limit by default, or the value."""
    answer = Answer(NAME, policy, THRESHOLDS)
    if answer["mode"] not in MODES:
        reason = f"mode is '{answer['mode']}', limit or point is wanted"
        raise DifflensError(reason, where=f"policy, [{NAME}]")
    settings = Settings.of(answer)
    known = checks(evidence, policy, settings, lambda check: _line(answer, check), diff)
    found = [watch for check in known for watch in _watches(answer, check)]
    if not found:
        for field in _FIELDS:
            answer.lack(field, needs=_needs(answer), why=_why(known))
        return answer.envelope()
    found.sort(key=lambda each: each.excess, reverse=True)
    _say(answer, found[0])
    _assume(answer, known, {each.check.metric for each in found})
    for each in found:
        if each.excess > 0:
            text = f"{each.check.metric}: {each.what} {each.current:.4g} crosses {each.line:.4g}"
            answer.find("", text, {"current": each.current, "line": each.line}, "high")
    return answer.envelope()


def _say(answer: Answer, watch: _Watch) -> None:
    check = watch.check
    answer.say("alert_triggered", watch.excess > 0, basis=f"{check.metric}, by {check.source}")
    answer.say("metric", check.metric, basis="the one that is furthest over its line, or nearest")
    answer.say("threshold", watch.line, basis="[metrics.NAME] margin or threshold, `degradation`")
    answer.say("current", watch.current, basis=f"{watch.what} of {check.metric}",
               uncertainty=check.interval)  # fmt: skip
    answer.say("evidence", check.told(), basis=check.source)


def _assume(answer: Answer, known: list[Check], watched: set[str]) -> None:
    answer.assume("watched at every commit, the family of looks needs a sequential test")
    left_out = [each.metric for each in known if each.metric not in watched]
    if left_out:
        answer.assume(f"not evaluated for lack of a direction or of repeats: {', '.join(left_out)}")
    if any(each.source == "latency" for each in known):
        answer.seeded(answer["seed"])


def _watches(answer: Answer, check: Check) -> Iterator[_Watch]:
    """Hold the loss, and the value where it has a limit, against what is allowed."""
    is_point = answer["mode"] == "point"
    loss, line = check.degradation if is_point else check.sure_loss, _line(answer, check)
    size = abs(check.left) or 1.0
    if loss is not None:
        what = "the loss" if is_point else "the least sure loss"
        yield _Watch(check, what, loss, line, (loss - line) / size)
    limit, better = check.rule.threshold, check.direction
    if limit is None or better is None:
        return
    low, high = check.right_interval
    value = check.right if is_point else high if better == "higher" else low
    if value is not None:
        what = "the value" if is_point else "the best that is possible"
        over = limit - value if better == "higher" else value - limit
        yield _Watch(check, what, value, limit, over / size)


def _line(answer: Answer, check: Check) -> float:
    if check.rule.margin is not None:
        return check.rule.margin
    return float(answer["degradation"]) * abs(check.left)


def _needs(answer: Answer) -> str:
    return NEEDS if answer["mode"] == "point" else f"{NEEDS} with repeats, or --alert-mode point"


def _why(known: list[Check]) -> str:
    if not known:
        return "not evaluated: weights alone do not measure quality"
    told = ", ".join(f"{each.metric} ({_obstacle(each)})" for each in known[:4])
    return f"not evaluated: {told}"


def _obstacle(check: Check) -> str:
    if check.direction is None:
        return "which way is better is not known"
    return check.decision.reason if check.decision else check.note
