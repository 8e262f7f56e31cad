"""Whether a row of checkpoints settles, wanders, oscillates or runs away."""

from __future__ import annotations

from collections.abc import Mapping
from math import factorial, fsum
from typing import Literal, NamedTuple

from difflens.core.policy import Threshold
from difflens.core.records import MOVED
from difflens.measure.scan import Scan

from ..answer import Answer
from ..diff import Diff
from ..evidence.records import Evidence, Trajectory
from ..methods.changes.energy import is_float
from ..methods.training.logs import Movement, movement, progress_column
from ..methods.training.motion import FIT, SEED, Known, Motion, motion
from . import analysis

_NEEDS = "--checkpoint"


@analysis(
    needs="tensors",
    thresholds={
        "alpha": Threshold(0.05, "chance of calling noise a rise of the moves"),
        "rise": Threshold(2.0, "last move over first from which a sure rise is called diverging"),
        "oscillation": Threshold(-0.75, "cosine of successive moves below which they oscillate"),
        "remaining": Threshold(1e-3, "part of ‖W‖ that may remain to go for converged"),
        "metric": Threshold(
            None, "the column of the log that tells the loss; by default by its name"
        ),
        "stable_margin": Threshold(0.01, "part of its value a loss may drift and still be stable"),
    },
    fields={
        "status": "",
        "action": "a table of (status, loss_trend)",
        "loss_trend": "",
        "stability": "",
        "stability_basis": "moves between checkpoints",
        "cos_successive": "",
        "msd_exponent": "",
        "remaining_distance": "‖last move‖ r / (1 - r), r = decay_rate: if moves go on shrinking"
        " so",
        "decay_rate": "",
        "lr_confounded": "are moves not weighed by a learning rate that may shrink?",
        "update_norms": "",
    },
)
def convergence_analysis(diff: Diff, evidence: Evidence, answer: Answer) -> None:
    """Whether the weights of a run settle, from how its checkpoints move."""
    path = evidence.trajectory
    if path is None or len(path.points) < 3:
        _two_points(answer, diff)
        return
    moves = motion(path, evidence.log)
    if moves is None:
        why = "no parameter that all checkpoints hold moved between any two of them"
        answer.lack_rest(needs="checkpoints that differ", why=why)
        return
    loss = _loss(answer, evidence, path)
    _verdict(answer, moves, loss)
    _stability(answer, moves)
    _figures(answer, moves, path)
    _say_loss(answer, loss)
    _caveats(answer, moves)
    answer.seeded(SEED)


def _two_points(answer: Answer, diff: Diff) -> None:
    """Say how evenly the tensors moved: all that one move can tell of stability."""
    why = "two checkpoints are one move, which neither slows nor turns"
    changes = _relative_changes(diff) if diff.has_values else []
    if len(changes) > 1:
        basis = f"variance of ‖d‖ / ‖left‖ over {len(changes)} parameters that moved"
        sure = "none_available: one pair of checkpoints"
        answer.say("stability", _variance(changes), basis=basis, uncertainty=sure)
        answer.say("stability_basis", "across_tensors", basis="there is one move")
    answer.lack_rest(needs=_NEEDS, why=why)


def _relative_changes(diff: Diff) -> list[float]:
    """Return ‖d‖ / ‖left‖ of the parameters that moved."""
    scans = (scan for delta, scan in diff.measured(Scan) if delta.kind in MOVED and is_float(delta))
    return [each for scan in scans if (each := scan.relative_l2) is not None]


def _variance(values: list[float]) -> float:
    mean = fsum(values) / len(values)
    return fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _loss(answer: Answer, evidence: Evidence, path: Trajectory) -> Movement | None:
    policy = answer.policy
    found = progress_column(evidence.log, answer["metric"], policy)
    if found is None:
        return None
    window = path.steps[0], path.steps[-1]
    return movement(found, window, policy, margin=answer["stable_margin"], alpha=answer["alpha"])


def _say_loss(answer: Answer, loss: Movement | None) -> None:
    if loss is None:
        answer.lack("loss_trend", needs="--log", why="weights do not tell the loss")
    else:
        answer.say("loss_trend", loss.word, basis=loss.basis, uncertainty=loss.interval)


def _verdict(answer: Answer, moves: Motion, loss: Movement | None) -> None:
    limits = {name: answer[name] for name in ("alpha", "rise", "oscillation", "remaining")}
    found = judged(moves, limits)
    answer.say("status", found.status, basis=found.why)
    next_step = action(found.status, loss.word if loss else None)
    answer.say("action", next_step)
    if found.status == "diverging":
        evidence = {
            "last_over_first": _over(moves.speeds[-1], moves.speeds[0]),
            "p": moves.rise.p,
            "newly_nonfinite": float(moves.newly_nonfinite),
        }
        answer.find("", f"the weights run away: {found.why}", evidence, "high")


def _over(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _stability(answer: Answer, moves: Motion) -> None:
    mean = fsum(moves.speeds) / len(moves.speeds)
    unit = _unit(moves)
    answer.say(
        "stability",
        _variance([each / mean for each in moves.speeds]),
        basis=f"variance of u / mean(u) over {len(moves.speeds)} moves, u = {unit}",
        uncertainty="none_available: one run",
    )
    answer.say("stability_basis", "across_intervals")


def _unit(moves: Motion) -> str:
    ticks = moves.clock
    below = (
        "sum of learning rates" if ticks.has_rates else "step" if ticks.has_steps else "interval"
    )
    return f"‖move‖ / {below}"


def _figures(answer: Answer, moves: Motion, path: Trajectory) -> None:
    """Answer with the figures of the way that the weights took."""
    still = "between two checkpoints nothing moved"
    _known(
        answer,
        "cos_successive",
        moves.cosine,
        still,
        "mean cosine of successive moves: line 1, walk 0, noise about a point -1/2, 2-cycle -1",
    )
    short = f"{len(path.points)} checkpoints, {FIT} are needed for a fit"
    _known(
        answer,
        "msd_exponent",
        moves.exponent,
        short if len(path.points) < FIT else still,
        "slope of ln mean squared displacement against ln lag: ballistic 2, diffusive 1, 0 still",
    )
    unit = _unit(moves)
    _known(answer, "decay_rate", moves.rate, still, f"exp(Theil-Sen slope of ln({unit}))")
    table = [
        {"from": path.points[at], "to": path.points[at + 1], "norm": norm, "speed": speed}
        for at, (norm, speed) in enumerate(zip(moves.norms, moves.speeds, strict=True))
    ]
    answer.say(
        "update_norms",
        table,
        basis=f"‖move‖ pooled over tensors; speed = {unit}",
        uncertainty="exact",
    )
    answer.either(
        "remaining_distance",
        moves.remaining,
        uncertainty="none_available: an extrapolation",
        needs="checkpoints whose moves shrink",
        why="moves that do not shrink have no end to extrapolate to",
    )
    answer.say("lr_confounded", not moves.clock.has_rates)


def _known(answer: Answer, field: str, known: Known | None, why: str, basis: str) -> None:
    answer.either(
        field,
        None if known is None else known.value,
        basis=basis,
        uncertainty=known.interval if known else None,
        needs=_NEEDS,
        why=why,
    )


def _caveats(answer: Answer, moves: Motion) -> None:
    n = len(moves.speeds)
    least = 2 / factorial(n) if n < 20 else 0.0
    if least > answer["alpha"]:
        answer.assume(
            f"{n} moves cannot show a trend: even a perfect one has an exact p of {least:.3g}"
        )
    elif moves.rise.note:
        answer.assume(f"trend of the moves: {moves.rise.note}")
    if not moves.clock.has_steps:
        answer.assume("steps of the checkpoints are not known: they are taken for evenly spaced")
    if not moves.clock.has_rates:
        answer.assume("moves also shrink when the learning rate is annealed, which is not known")


Status = Literal["diverging", "oscillating", "converged", "slowing", "stable"]

NOISE = -0.5  # cosine of successive moves of noise about a point

_LOOK: dict[Status, str] = {
    "diverging": "look at the loss, at gradient norms and at the learning rate around the rise",
    "oscillating": "look at the learning rate: the weights jump back and forth about a point",
    "converged": "look at a validation metric: the weights have arrived, whether well is not known",
    "slowing": "look at the learning rate: moves shrink, and annealing alone would do that",
    "stable": "look at a loss or metric: the weights keep moving, whether for the better is open",
}
_WITH_LOSS: dict[tuple[Status, str], str] = {
    ("diverging", "improving"): "check the rise of the moves: the loss still improves",
    ("diverging", "degrading"): "stop and go back to an earlier checkpoint: moves and loss rise",
    ("diverging", "stable"): "lower the learning rate or look for a cause: moves rise, loss flat",
    ("oscillating", "improving"): "a lower learning rate may go on where this one jumps",
    ("oscillating", "degrading"): "lower the learning rate: it jumps about and the loss rises",
    ("oscillating", "stable"): "lower the learning rate, or stop: it jumps about at a flat loss",
    ("converged", "improving"): "check the log: the loss improves although the weights stand",
    ("converged", "degrading"): "check the data and the log: the loss rises at standing weights",
    ("converged", "stable"): "stop: weights and loss both stand",
    ("slowing", "improving"): "go on: the loss improves while the moves shrink",
    ("slowing", "degrading"): "keep the earlier checkpoint: the loss rises while moves shrink",
    ("slowing", "stable"): "stop, or raise the learning rate: moves shrink at a flat loss",
    ("stable", "improving"): "go on: the loss improves and the weights keep moving",
    ("stable", "degrading"): "stop and go back: the loss rises while the weights keep moving",
    ("stable", "stable"): "change something: the weights keep moving at a flat loss",
}


class Judged(NamedTuple):
    """A status, and the rule with the numbers that made it."""

    status: Status
    why: str


def judged(motion: Motion, limits: Mapping[str, float]) -> Judged:
    """Return the first status that applies: diverging, oscillating, converged, else stable.

    Shrinking moves may be the work of an annealed learning rate: where it is not known,
    `converged` is only `slowing`.
    """
    found = _diverging(motion, limits) or _oscillating(motion, limits)
    if found is not None:
        return found
    arrived = _stands(motion) or _arrives(motion, limits)
    if arrived is None:
        return Judged("stable", "none of the rules for diverging, oscillating, converged applies")
    if motion.clock.has_rates:
        return Judged("converged", arrived)
    return Judged("slowing", f"{arrived}; not called converged: the learning rate is not known")


def action(status: Status, loss: str | None) -> str:
    """Say what to do where the loss is known, what to look at where it is not."""
    return _WITH_LOSS.get((status, loss or ""), _LOOK[status])


def _diverging(motion: Motion, limits: Mapping[str, float]) -> Judged | None:
    if motion.newly_nonfinite > 0:
        return Judged("diverging", f"{motion.newly_nonfinite} values became NaN or infinite")
    first, last, p = motion.speeds[0], motion.speeds[-1], motion.rise.p
    ratio = last / first if first else float("inf")
    rises = motion.rise.s > 0 and p < limits["alpha"] and ratio >= limits["rise"]
    return Judged("diverging", f"moves rise {ratio:.3g}-fold, p={p:.3g}") if rises else None


def _oscillating(motion: Motion, limits: Mapping[str, float]) -> Judged | None:
    cosine = motion.cosine
    if cosine is None or cosine.high is None or cosine.high >= limits["oscillation"]:
        return None
    return Judged("oscillating", f"the interval of cos ends at {cosine.high:.3g}")


def _stands(motion: Motion) -> str | None:
    """Is it noise about a point: cos of -1/2 and no displacement with time?"""
    if _covers(motion.cosine, NOISE) and _covers(motion.exponent, 0.0):
        return "the intervals cover what noise about a point has: cos -1/2, exponent 0"
    return None


def _arrives(motion: Motion, limits: Mapping[str, float]) -> str | None:
    left, whole = motion.remaining, motion.last_norm
    if left is None or not left < limits["remaining"] * whole:
        return None
    return f"moves shrink; what remains is {left / whole:.2g} of the weights' norm"


def _covers(known: Known | None, value: float) -> bool:
    if known is None or known.low is None or known.high is None:
        return False
    return known.low <= value <= known.high
