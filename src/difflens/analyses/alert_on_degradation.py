"""An alarm for pipelines: did a metric cross its line?"""

from __future__ import annotations

from typing import Any

from ..answers import Answer
from ..diffs import Diff
from ..evidences import Evidence
from ..records import Envelope, Policy, Threshold
from . import analysis
from .quality.check import Check
from .quality.checks import Settings, checks
from .regression_test import NEEDS

NAME = "alert_on_degradation"
THRESHOLDS = {
    "mode": Threshold("limit", "`limit`: the sure part of the loss decides; `point`: the value"),
    "degradation": Threshold(0.0, "loss, relative to left, where the metric has no margin"),
    "alpha": Threshold(0.05, "chance of a false alarm for each metric, before Holm"),
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
    settings = Settings(answer["alpha"], answer["latency_quantile"], answer["seed"])
    found = [each for each in checks(evidence, policy, settings) if _loss(answer, each) is not None]
    if not found:
        for field in _FIELDS:
            answer.lack(field, needs=_needs(answer), why="not evaluated: no metric can be judged")
        return answer.envelope()
    worst = max(found, key=lambda each: _loss(answer, each) - _line(answer, each))  # type: ignore[operator]
    fired = [each for each in found if _fires(answer, each)]
    shown = max(fired, key=lambda each: _loss(answer, each)) if fired else worst  # type: ignore[arg-type,return-value]
    _say(answer, shown, alarm=bool(fired))
    for each in fired:
        loss = _loss(answer, each)
        text = f"{each.metric}: a loss of {loss:.4g} crosses the line {_line(answer, each):.4g}"
        answer.find("", text, {"loss": loss, "line": _line(answer, each)}, "high")
    return answer.envelope()


def _say(answer: Answer, check: Check, *, alarm: bool) -> None:
    answer.say("alert_triggered", alarm, basis=f"{check.metric}, by {check.source}")
    answer.say("metric", check.metric, basis="the one that is furthest over its line, or nearest")
    answer.say("threshold", _line(answer, check), basis="[metrics.NAME] margin, or `degradation`")
    answer.say("current", _loss(answer, check), basis=f"loss of {check.metric}, positive is worse",
               uncertainty=check.interval)  # fmt: skip
    answer.say("evidence", check.told(), basis=check.source)
    answer.assume("watched at every commit, this needs the sequential mode of `difflens ab`")


def _loss(answer: Answer, check: Check) -> float | None:
    """Give what is held against the line: the least loss that is sure, or the loss as seen."""
    if answer["mode"] == "point":
        return check.degradation
    return check.decision.degradation_low if check.decision else None


def _line(answer: Answer, check: Check) -> float:
    if check.rule.margin is not None:
        return check.rule.margin
    return float(answer["degradation"]) * abs(check.left or 0.0)


def _fires(answer: Answer, check: Check) -> bool:
    loss = _loss(answer, check)
    sure = answer["mode"] == "point" or check.adjusted is None or check.adjusted < answer["alpha"]
    return loss is not None and loss > _line(answer, check) and sure


def _needs(answer: Answer) -> str:
    return NEEDS if answer["mode"] == "point" else f"{NEEDS} with repeats, or --alert-mode point"
