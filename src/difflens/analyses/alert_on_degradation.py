"""An alarm for pipelines: did a metric cross its line?"""

from __future__ import annotations

from typing import Any

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


@analysis(needs=[], thresholds=THRESHOLDS, gate=_gate)
def alert_on_degradation(diff: Diff, evidence: Evidence, policy: Policy) -> Envelope:  # noqa: ARG001
    """Whether a metric crossed its line: the confidence limit by default, or the value."""
    answer = Answer(NAME, policy, THRESHOLDS)
    if answer["mode"] not in MODES:
        reason = f"mode is '{answer['mode']}', limit or point is wanted"
        raise DifflensError(reason, where=f"policy, [{NAME}]")

    def line(check: Check) -> float:
        return _line(answer, check)

    known = checks(evidence, policy, Settings.of(answer), line)
    found = [(each, loss) for each in known if (loss := _loss(answer, each)) is not None]
    if not found:
        for field in _FIELDS:
            answer.lack(field, needs=_needs(answer), why=_why(known))
        return answer.envelope()
    found.sort(key=lambda each: _excess(each[1], line(each[0]), each[0].left), reverse=True)
    fired = [(each, loss) for each, loss in found if loss > line(each)]
    _say(answer, *found[0], alarm=bool(fired))
    _assume(answer, known, [each for each, _ in found])
    for each, loss in fired:
        text = f"{each.metric}: a loss of {loss:.4g} crosses the line {line(each):.4g}"
        answer.find("", text, {"loss": loss, "line": line(each)}, "high")
    return answer.envelope()


def _say(answer: Answer, check: Check, loss: float, *, alarm: bool) -> None:
    answer.say("alert_triggered", alarm, basis=f"{check.metric}, by {check.source}")
    answer.say("metric", check.metric, basis="the one that is furthest over its line, or nearest")
    answer.say("threshold", _line(answer, check), basis="[metrics.NAME] margin, or `degradation`")
    what = "loss as seen" if answer["mode"] == "point" else "least loss that is sure"
    answer.say("current", loss, basis=f"{what} of {check.metric}, positive is worse",
               uncertainty=check.interval)  # fmt: skip
    answer.say("evidence", check.told(), basis=check.source)


def _assume(answer: Answer, known: list[Check], watched: list[Check]) -> None:
    answer.assume("watched at every commit, the family of looks needs a sequential test")
    left_out = [each.metric for each in known if each not in watched]
    if left_out:
        answer.assume(f"not evaluated for lack of a direction or of repeats: {', '.join(left_out)}")
    if any(each.source == "latency" for each in watched):
        answer.seeded(answer["seed"])


def _loss(answer: Answer, check: Check) -> float | None:
    """Give what is held against the line: the least loss that is sure, or the loss as seen."""
    return check.degradation if answer["mode"] == "point" else check.sure_loss


def _line(answer: Answer, check: Check) -> float:
    if check.rule.margin is not None:
        return check.rule.margin
    return float(answer["degradation"]) * abs(check.left)


def _excess(loss: float, line: float, left: float) -> float:
    """Relate to left what is over the line, so that points and milliseconds can be compared."""
    return (loss - line) / abs(left) if left else loss - line


def _needs(answer: Answer) -> str:
    return NEEDS if answer["mode"] == "point" else f"{NEEDS} with repeats, or --alert-mode point"


def _why(known: list[Check]) -> str:
    if not known:
        return "not evaluated: weights alone do not tell how good a model is"
    told = ", ".join(f"{each.metric} ({_obstacle(each)})" for each in known[:4])
    return f"not evaluated: {told}"


def _obstacle(check: Check) -> str:
    if check.direction is None:
        return "which way is better is not known"
    return check.decision.reason if check.decision else check.note
