"""An alarm for pipelines: did a metric cross its line?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from difflens.core.errors import DifflensError
from difflens.core.policy import GateWord, Threshold

from ..answer import Answer
from ..diff import Diff
from ..evidence.records import Evidence
from ..quality.check import Check
from ..quality.gating import gate_outcomes, gate_word, quality_needs
from ..quality.margins import direction_needs, directions
from ..quality.outcomes import Outcome
from ..quality.trials import Settings
from . import analysis

MODES = ("limit", "point")
_REPEATS = ("--eval-left/--eval-right", "--latency-left/--latency-right", "--history")


class _Watch(NamedTuple):
    """A metric and its line: a loss that is allowed, or a limit of the value itself."""

    outcome: Outcome
    what: str
    current: float
    line: float
    excess: float  # over the line, relative to left: so points and milliseconds can be compared

    @property
    def check(self) -> Check:
        """What was judged."""
        return self.outcome.check


# What is told of the examples, such as their number, and the line of a metric, which settings draw,
# may be the same for very different weights.
@analysis(
    thresholds={
        "mode": Threshold(
            "limit", "`limit`: the sure part of the loss decides; `point`: the value"
        ),
        "degradation": Threshold(
            None,
            "loss, relative to left, where the metric has no margin; none: as --regression-test",
        ),
        "alpha": Threshold(0.05, "chance of a false alarm, over all metrics together (Holm)"),
        "latency_quantile": Threshold(0.95, "the quantile of the latencies that is watched"),
        "seed": Threshold(0, "seed of the resampling behind latency intervals"),
    },
    fields={
        "verdict": "",
        "metric": "the one that is furthest over its line, or nearest",
        "current": "",
        "threshold": "[metrics.NAME] margin or threshold, `degradation`",
        "alert_triggered": "",
        "evidence": "",
        "directions": "the policy, the option, or the name of the metric",
    },
    gate="verdict",
    constants=("evidence", "threshold"),
)
def alert_on_degradation(diff: Diff, evidence: Evidence, answer: Answer) -> None:  # noqa: ARG001
    """Whether a metric crossed its line: the confidence limit by default, or the value."""
    if answer["mode"] not in MODES:
        reason = f"mode is '{answer['mode']}', limit or point is wanted"
        raise DifflensError(reason, where=f"policy, [{answer.name}]")
    is_point, part = answer["mode"] == "point", answer["degradation"]
    if part is None and is_point:
        part = 0.0  # the value as it is seen may not be worse at all
    known = gate_outcomes(evidence, answer.policy, Settings.of(answer), {}, part)
    found = [watch for each in known for watch in _watches(each, is_point=is_point)]
    if not found:
        _lack(answer, [each.check for each in known], evidence)
        return
    metrics = [each.check.metric for each in known]
    answer.say("directions", directions(metrics, answer.policy))
    found.sort(key=lambda each: (_is_over(each, is_point=is_point), each.excess), reverse=True)
    over = [each for each in found if _is_over(each, is_point=is_point)]
    _say(answer, found[0], known, _word(known, over, is_point=is_point))
    _assume(answer, [each.check for each in known], {each.check.metric for each in found})
    for each in over:
        text = f"{each.check.metric}: {each.what} {each.current:.4g} crosses {each.line:.4g}"
        answer.find("", text, {"current": each.current, "line": each.line}, "high")


def _word(known: list[Outcome], over: list[_Watch], *, is_point: bool) -> GateWord:
    """Name the verdict: of the values as they are seen, or by the rule of every gate."""
    if is_point:
        return "failed" if over else "passed"
    return gate_word(each.passed for each in known if each.counts)


def _is_over(watch: _Watch, *, is_point: bool) -> bool:
    """Did it cross its line, and is that sure where it must be?"""
    return watch.excess > 0 and (is_point or watch.outcome.passed is False)


def _say(answer: Answer, watch: _Watch, known: list[Outcome], word: GateWord) -> None:
    check = watch.check
    basis = f"{check.metric}, by {check.source}"
    is_open = [each for each in known if each.counts and each.passed is None]
    told = "; ".join(f"{each.check.metric}: {each.why}" for each in is_open[:4])
    answer.say("verdict", word, basis=told if word == "cannot_tell" else basis)
    answer.say("alert_triggered", word == "failed", basis=basis)
    answer.say("metric", check.metric)
    answer.say("threshold", watch.line)
    answer.say(
        "current",
        watch.current,
        basis=f"{watch.what} of {check.metric}",
        uncertainty=check.interval,
    )
    answer.say("evidence", check.to_dict(), basis=check.source)
    if word == "cannot_tell":
        answer.assume(f"cannot tell: {told}")


def _assume(answer: Answer, known: list[Check], watched: set[str]) -> None:
    answer.assume("watched at every commit, the family of looks needs a sequential test")
    left_out = [each.metric for each in known if each.metric not in watched]
    if left_out:
        answer.assume(f"not evaluated for lack of a direction or of repeats: {', '.join(left_out)}")
    if any(each.source == "latency" for each in known):
        answer.seeded(answer["seed"])


def _watches(outcome: Outcome, *, is_point: bool) -> Iterator[_Watch]:
    """Hold the loss, and the value where it has a limit, against what is allowed."""
    check = outcome.check
    loss = check.degradation if is_point else outcome.limit
    size = abs(check.left) or 1.0
    line = check.rule.margin
    if loss is not None and line is not None:
        is_seen = is_point or not check.statistical
        what = "the loss" if is_seen else "the least sure loss"
        yield _Watch(outcome, what, loss, line, (loss - line) / size)
    limit, better = check.rule.threshold, check.direction
    if limit is None or better is None:
        return
    low, high = check.right_interval
    best = high if better == "higher" else low
    is_seen = is_point or best is None
    value = check.right if is_seen or best is None else best
    over = limit - value if better == "higher" else value - limit
    what = "the value" if is_seen else "the best that is possible"
    yield _Watch(outcome, what, value, limit, over / size)


def _lack(answer: Answer, known: list[Check], evidence: Evidence) -> None:
    """Say that nothing was evaluated: for lack of any evidence, or although there is some."""
    needs = _needs(answer, known[0], evidence) if known else quality_needs(evidence)
    if known:
        answer.say("verdict", "cannot_tell", basis=_why(known))
    answer.lack_rest(needs=needs, why=_why(known))


def _needs(answer: Answer, check: Check, evidence: Evidence) -> str:
    if check.direction is None:
        return direction_needs(check.metric)
    if check.statistical:
        return f"more examples or repeats of {check.metric}"
    repeats = evidence.lacking(*_REPEATS, instead="repeats of it")
    return repeats if answer["mode"] == "point" else f"{repeats}, or --alert-mode point"


def _why(known: list[Check]) -> str:
    if not known:
        return "not evaluated: weights alone do not measure quality"
    told = ", ".join(f"{each.metric} ({_obstacle(each)})" for each in known[:4])
    return f"not evaluated: {told}"


def _obstacle(check: Check) -> str:
    if check.direction is None:
        return "which way is better is not known"
    return check.decision.reason if check.decision else check.note
