"""How far training moved the weights between two checkpoints, and whether it helped."""

from __future__ import annotations

from typing import Any

from ..answers import Answer
from ..diffs import Diff
from ..evidences import Evidence, Side
from ..measure.energy import Energy
from ..measure.scan import Scan
from ..records import Envelope, Interval, Policy, Threshold
from . import analysis
from .quality.check import Check
from .quality.checks import Settings, checks
from .training.clock import clock
from .training.distances import SEED, Known, decay_rate, over_tensors, stacked
from .training.series import steps_of
from .training.trends import Movement, movement, progress_column
from .training.weights import pooled, weights

NAME = "learning_progress"
THRESHOLDS = {
    "metric": Threshold(None, "the metric that tells progress; by default a loss, told by name"),
    "stable_margin": Threshold(0.01, "part of its value a metric may drift and still be stable"),
    "steady_band": Threshold(0.01, "how far the ratio of successive moves may be from 1 as steady"),
    "alpha": Threshold(0.05, "chance of calling noise a trend"),
}
_TREND_NEEDS = "--log, --eval-left/--eval-right or --metrics-left/--metrics-right"
_TWO_NUMBERS = "two single numbers, noise unknown"
_WORDS = {"better": "improving", "worse": "degrading", "equivalent": "stable"}
_FIELDS = ("trend", "magnitude", "speed", "motion", "rel_l2", "steps_between", "trend_basis")


@analysis(needs=[Scan, Energy], thresholds=THRESHOLDS)
def learning_progress(diff: Diff, evidence: Evidence, policy: Policy) -> Envelope:
    """How far the weights moved, how fast they slow down, and whether a metric got better."""
    answer = Answer(NAME, policy, THRESHOLDS)
    if not diff.deltas:
        for field in (*_FIELDS, "significance"):
            answer.lack(field, needs="tensors", why="neither model holds any")
        return answer.envelope("not_applicable")
    _trend(answer, evidence, policy)
    _magnitude(answer, diff)
    _speed(answer, evidence)
    _steps(answer, evidence)
    return answer.envelope()


def _trend(answer: Answer, evidence: Evidence, policy: Policy) -> None:
    """Take the log where it has enough points, then examples, then single numbers."""
    logged = _logged(answer, evidence, policy)
    if logged is not None and logged.p is not None:
        _say(answer, logged.word, "log", logged.basis, logged.interval, logged.p)
        return
    check = _check(answer, evidence, policy)
    if check is not None and check.decision is not None and check.comparison is not None:
        word = _WORDS.get(check.decision.word, "inconclusive")
        basis = f"examples: {check.metric}, {check.note}, {check.decision.reason}"
        _say(answer, word, "evals", basis, check.interval, check.comparison.p)
    elif check is not None:
        loss = check.degradation
        word = "inconclusive" if not loss else "degrading" if loss > 0 else "improving"
        basis = f"metrics: {check.metric}, {_TWO_NUMBERS}"
        _say(answer, word, "metrics", basis, f"none_available: {_TWO_NUMBERS}", None)
    elif logged is not None:
        _say(answer, logged.word, "log", logged.basis, logged.interval, None)
    else:
        why = "weights say how far they moved, not whether that was for the better"
        for field in ("trend", "trend_basis", "significance"):
            answer.lack(field, needs=_TREND_NEEDS, why=why)


def _say(
    answer: Answer, word: str, source: str, basis: str, sure: Interval | str, p: float | None
) -> None:
    answer.say("trend", word, basis=basis, uncertainty=sure)
    answer.say("trend_basis", source, basis="the first there is of log, examples, metrics")
    answer.either("significance", p, basis=f"two-sided p; {basis}",
                  needs=_TREND_NEEDS, why=f"{source}: {_p_missing(source, basis)}")  # fmt: skip


def _p_missing(source: str, basis: str) -> str:
    return _TWO_NUMBERS if source == "metrics" else basis


def _logged(answer: Answer, evidence: Evidence, policy: Policy) -> Movement | None:
    found = progress_column(evidence.log, answer["metric"], policy)
    if found is None:
        return None
    window = steps_of(evidence)
    if None in window:
        answer.assume("the steps of both checkpoints are not known: the trend is of the whole log")
    elif window[0] == window[1]:
        return None  # no training lies between them, so the log says nothing about it
    return movement(*found, window, policy, answer["stable_margin"], answer["alpha"])


def _check(answer: Answer, evidence: Evidence, policy: Policy) -> Check | None:
    """Compare the declared metric, else the first one whose better direction is known."""
    sides = (Side(evals=side.evals, metrics=side.metrics)
             for side in (evidence.left, evidence.right))  # fmt: skip
    known = Evidence(**dict(zip(("left", "right"), sides, strict=True)))
    found = checks(known, policy, Settings(alpha=answer["alpha"]))
    wanted = answer["metric"]
    judged = [each for each in found if each.direction and wanted in (None, each.metric)]
    return min(judged, key=lambda each: each.source != "evals", default=None)


def _magnitude(answer: Answer, diff: Diff) -> None:
    found = weights(diff) if diff.has_values else []
    left, right, moved = pooled(found)
    whole = None if left is None or right is None else left + right
    needs = "tensor values" if not diff.has_values else "parameters with finite norms"
    why = "only headers were read" if not diff.has_values else "norms are zero or too large"
    over = f"over {len(found)} float parameters of one shape on both sides"
    for field, below, formula in (
        ("magnitude", whole, "‖right - left‖ / (‖left‖ + ‖right‖)"),
        ("rel_l2", left, "‖right - left‖ / ‖left‖"),
    ):
        answer.either(field, _ratio(moved, below) if found else None, basis=f"{formula} {over}",
                      uncertainty="exact", needs=needs, why=why)  # fmt: skip
    dropped = sum(each.dropped for each in found)
    if dropped:
        answer.assume(f"{dropped} elements not finite on both sides are left out of the norms")


def _ratio(part: float | None, whole: float | None) -> float | None:
    if part == 0:
        return 0.0
    return part / whole if part is not None and whole else None


def _speed(answer: Answer, evidence: Evidence) -> None:
    path = evidence.trajectory
    if path is None or len(path.points) < 3:
        for field in ("speed", "motion"):
            answer.lack(field, needs="--checkpoint",
                        why="two checkpoints are one move; a third shows how moves change")  # fmt: skip
        return
    ticks = clock(path.steps, None)
    rate = over_tensors(stacked(path), lambda each: decay_rate(each, ticks))
    unit = "step" if ticks.has_steps else "interval"
    if not ticks.has_steps:
        answer.assume("steps of the checkpoints are not known: they are taken for evenly spaced")
    basis = f"ρ = exp(Theil-Sen slope of ln(‖move‖ / {unit})) over {len(path.points) - 1} moves"
    why = "between two checkpoints nothing moved"
    answer.either("speed", None if rate is None else min(1.0, max(0.0, 1 - rate.value)),
                  basis=f"1 - ρ, clipped to [0, 1]; {basis}", uncertainty=_turned(rate),
                  needs="checkpoints that differ", why=why)  # fmt: skip
    answer.either("motion", _motion(rate, answer["steady_band"]),
                  basis=f"where the interval of ρ lies; says nothing about good or bad; {basis}",
                  needs="checkpoints that differ", why=why)  # fmt: skip
    answer.seeded(SEED)


def _turned(rate: Known | None) -> Interval | str | None:
    """Give the interval of 1 - ρ."""
    known: Any = rate.interval if rate else None
    if not isinstance(known, Interval) or known.low is None or known.high is None:
        return known  # type: ignore[no-any-return]
    ends = (min(1.0, max(0.0, 1 - end)) for end in (known.high, known.low))
    return Interval(*ends, known.level, known.method, known.n)


def _motion(rate: Known | None, band: float) -> str | None:
    if rate is None:
        return None
    low = rate.value if rate.low is None else rate.low
    high = rate.value if rate.high is None else rate.high
    if 1 - band <= low and high <= 1 + band:
        return "steady"
    if high < 1:
        return "slowing"
    return "accelerating" if low > 1 else "inconclusive"


def _steps(answer: Answer, evidence: Evidence) -> None:
    left, right = steps_of(evidence)
    answer.either(
        "steps_between",
        None if left is None or right is None else right - left,
        basis="step of right - step of left",
        uncertainty="exact",
        needs="checkpoint-STEP in the path, or trainer_state.json beside it",
        why="neither file says at which step it was saved",
    )
