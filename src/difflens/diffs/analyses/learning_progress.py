"""How far training moved the weights between two checkpoints, and whether it helped."""

from __future__ import annotations

from typing import NamedTuple

from difflens.core.findings import Interval
from difflens.core.policy import Policy, Threshold
from difflens.stats.comparison import Comparison
from difflens.stats.decision import Decision, decide

from ..answer import Answer
from ..diff import Diff
from ..evidence.records import Evidence
from ..methods.changes.energy import pooled, weights
from ..methods.training.logs import PROGRESS, better_way, movement, progress_column, steps_of
from ..methods.training.motion import LEVEL, SEED, Known, clock, decay_rate, over_tensors, stacked
from ..quality.margins import direction_needs
from ..quality.sides import compared as compared_at
from ..quality.sides import metrics_of, sides_of
from . import analysis

_OPTIONS = ("--log", "--eval-left/--eval-right", "--metrics-left/--metrics-right")
_TWO_NUMBERS = "two single numbers, noise unknown"
_WORDS = {"better": "improving", "worse": "degrading", "equivalent": "stable"}


@analysis(
    needs="tensors",
    thresholds={
        "metric": Threshold(
            None, "the metric that tells progress; by default a loss, told by name"
        ),
        "stable_margin": Threshold(
            0.01, "part of its value a metric may drift and still be stable"
        ),
        "steady_band": Threshold(
            0.01, "how far the ratio of successive moves may be from 1 as steady"
        ),
        "alpha": Threshold(0.05, "chance of calling noise a trend"),
    },
    fields={
        "trend": "",
        "magnitude": "",
        "speed": "",
        "steps_between": "step of right - step of left",
        "motion": "",
        "significance": "",
        "rel_l2": "",
        "trend_basis": "the first there is of log, examples, metrics",
    },
)
def learning_progress(diff: Diff, evidence: Evidence, answer: Answer) -> None:
    """How far the weights moved, how fast they slow down, and whether a metric got better."""
    _trend(answer, evidence)
    _magnitude(answer, diff)
    _speed(answer, evidence)
    _steps(answer, evidence)


class _Told(NamedTuple):
    """A trend, the evidence it is from, and how sure it is."""

    word: str
    source: str
    basis: str
    sure: Interval | str
    p: float | None


def _trend(answer: Answer, evidence: Evidence) -> None:
    """Take the log where it has enough points, then examples, then single numbers."""
    policy = answer.policy
    logged = _logged(answer, evidence)
    told = logged if logged and logged.p is not None else None
    told = told or _examples(answer, evidence) or _metrics(answer, evidence)
    told = told or logged
    if told is None:
        needs, why = _trend_needs(evidence, policy)
        for field in ("trend", "trend_basis", "significance"):
            answer.lack(field, needs=needs, why=why)
        return
    answer.say("trend", told.word, basis=told.basis, uncertainty=told.sure)
    answer.say("trend_basis", told.source)
    why = str(told.sure).removeprefix("none_available: ")
    answer.either(
        "significance",
        told.p,
        basis=f"two-sided p; {told.basis}",
        needs=evidence.lacking(
            "--log", "--eval-left/--eval-right", instead="more points or examples"
        ),
        why=why,
    )


def _trend_needs(evidence: Evidence, policy: Policy) -> tuple[str, str]:
    """Say what is missing: the direction of a metric that was given, or any metric at all."""
    sides = evidence.left, evidence.right
    shared = [
        *metrics_of(evidence.left.evals, evidence.right.evals),
        *(name for name in sides[0].metrics or {} if name in (sides[1].metrics or {})),
    ]
    unknown = [name for name in shared if better_way(name, policy) is None]
    if unknown:
        return direction_needs(unknown[0]), f"which way {unknown[0]} is better is not known"
    needs = evidence.lacking(*_OPTIONS, instead="metrics that both sides have")
    return needs, "weights say how far they moved, not which way quality went"


def _logged(answer: Answer, evidence: Evidence) -> _Told | None:
    found = progress_column(evidence.log, answer["metric"], answer.policy)
    window = steps_of(evidence)
    if found is None or (None not in window and window[0] == window[1]):
        return None  # with no training between them the log says nothing about the two
    if None in window:
        answer.assume("the steps of both checkpoints are not known: the trend is of the whole log")
    margin, alpha = answer["stable_margin"], answer["alpha"]
    told = movement(found, window, answer.policy, margin=margin, alpha=alpha)
    return _Told(told.word, "log", told.basis, told.interval, told.p)


def _examples(answer: Answer, evidence: Evidence) -> _Told | None:
    found = compared(evidence, answer.policy, answer["metric"], 1 - answer["alpha"])
    if found is None:
        return None
    word = _WORDS.get(found.decision.word, "inconclusive")
    basis = f"examples: {found.metric}, {found.about}, {found.decision.reason}"
    return _Told(word, "evals", basis, found.interval, found.comparison.p)


def _metrics(answer: Answer, evidence: Evidence) -> _Told | None:
    """Return the direction of the declared metric, else of the first that has one."""
    left, right = evidence.left.metrics or {}, evidence.right.metrics or {}
    names = [answer["metric"]] if answer["metric"] else [*PROGRESS, *left]
    for name in names:
        way = better_way(name, answer.policy)
        if name in left and name in right and way:
            gain = (right[name] - left[name]) * (1 if way == "higher" else -1)
            word = "inconclusive" if not gain else "improving" if gain > 0 else "degrading"
            basis = f"metrics: {name} ({way} is better), {_TWO_NUMBERS}"
            return _Told(word, "metrics", basis, f"none_available: {_TWO_NUMBERS}", None)
    return None


def _magnitude(answer: Answer, diff: Diff) -> None:
    found = weights(diff) if diff.has_values else []
    left, right, moved = pooled(found)
    whole = None if left is None or right is None else left + right
    needs = "tensor values" if not diff.has_values else "parameters with finite norms"
    why = "only headers were read" if not diff.has_values else "norms are zero or too large"
    over = f"over {len(found)} float parameters of one shape on both sides"
    known = {"magnitude": _ratio(moved, whole, most=1.0), "rel_l2": _ratio(moved, left)}
    formulas = {
        "magnitude": "‖right - left‖ / (‖left‖ + ‖right‖)",
        "rel_l2": "‖right - left‖ / ‖left‖",
    }
    for field, formula in formulas.items():
        answer.either(
            field,
            known[field] if found else None,
            basis=f"{formula} {over}",
            uncertainty="exact",
            needs=needs,
            why=why,
        )
    dropped = sum(each.dropped for each in found)
    if dropped:
        answer.assume(f"{dropped} elements not finite on both sides are left out of the norms")


def _ratio(part: float | None, whole: float | None, most: float = float("inf")) -> float | None:
    """Divide, up to what is possible: rounding may go a hair beyond."""
    if part == 0:
        return 0.0
    return min(most, part / whole) if part is not None and whole else None


def _speed(answer: Answer, evidence: Evidence) -> None:
    path = evidence.trajectory
    if path is None or len(path.points) < 3:
        why = "two checkpoints are one move; a third shows how moves change"
        for field in ("speed", "motion"):
            answer.lack(field, needs="--checkpoint", why=why)
        return
    ticks = clock(path.steps, None)
    rate = over_tensors(stacked(path), lambda each: decay_rate(each, ticks))
    unit = "step" if ticks.has_steps else "interval"
    if not ticks.has_steps:
        answer.assume("steps of the checkpoints are not known: they are taken for evenly spaced")
    basis = f"r = exp(Theil-Sen slope of ln(‖move‖ / {unit})) over {len(path.points) - 1} moves"
    why = "between two checkpoints nothing moved"
    answer.either(
        "speed",
        None if rate is None else min(1.0, max(0.0, 1 - rate.value)),
        basis=f"1 - r, clipped to [0, 1]; {basis}",
        uncertainty=_turned(rate),
        needs="checkpoints that differ",
        why=why,
    )
    answer.either(
        "motion",
        _motion(rate, answer["steady_band"]),
        basis=f"where the interval of r lies; says nothing about good or bad; {basis}",
        needs="checkpoints that differ",
        why=why,
    )
    answer.seeded(SEED)


def _turned(rate: Known | None) -> Interval | str | None:
    """Return the interval of 1 - r."""
    if rate is None or rate.low is None or rate.high is None:
        return rate.interval if rate else None
    low, high = (min(1.0, max(0.0, 1 - end)) for end in (rate.high, rate.low))
    return Interval(low, high, LEVEL, "bootstrap over tensors", rate.tensors)


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
        uncertainty="exact",
        needs="checkpoint-STEP in the path, or trainer_state.json beside it",
        why="neither file says at which step it was saved",
    )


class Compared(NamedTuple):
    """A metric, how its examples compare, and what that allows to say."""

    metric: str
    comparison: Comparison
    decision: Decision
    about: str

    @property
    def interval(self) -> Interval | str:
        """How sure the difference right - left is."""
        made = self.comparison
        if made.low is None or made.high is None:
            return f"none_available: {made.note}"
        return Interval(made.low, made.high, made.level, made.method, made.n_right)


def compared(
    evidence: Evidence, policy: Policy, chosen: str | None, level: float
) -> Compared | None:
    """Compare the chosen metric, else the first whose better direction is known."""
    left, right = evidence.left.evals, evidence.right.evals
    for metric in metrics_of(left, right):
        way, rule = better_way(metric, policy), policy.metrics.get(metric)
        sides = sides_of(left, right, metric)
        if chosen not in (None, metric) or way is None or sides is None:
            continue
        made = compared_at(sides, level)
        margin = (rule.margin if rule else None) or None
        decision = decide(made, way, margin=margin, alpha=1 - level)
        return Compared(metric, made, decision, sides.note)
    return None
