"""Whether a row of checkpoints settles, wanders, oscillates or runs away."""

from __future__ import annotations

from math import factorial, fsum

from ..answers import Answer
from ..diffs import Diff
from ..evidences import Evidence, Trajectory
from ..measure.scan import Scan
from ..records import MOVED, Envelope, Policy, Threshold
from . import analysis
from .changes.energy import is_float
from .training.distances import SEED, Known
from .training.motion import FIT, Motion, motion
from .training.trends import Movement, movement, progress_column
from .training.verdicts import action, judged

NAME = "convergence_analysis"
THRESHOLDS = {
    "alpha": Threshold(0.05, "chance of calling noise a rise of the moves"),
    "rise": Threshold(2.0, "last move over first from which a sure rise is called diverging"),
    "oscillation": Threshold(-0.75, "cosine of successive moves below which they oscillate"),
    "remaining": Threshold(1e-3, "part of ‖W‖ that may remain to go for converged"),
    "metric": Threshold(None, "the column of the log that tells the loss; by default by its name"),
    "stable_margin": Threshold(0.01, "part of its value a loss may drift and still be stable"),
}
_FIELDS = (
    "status", "stability", "stability_basis", "action", "cos_successive", "msd_exponent",
    "update_norms", "remaining_distance", "decay_rate", "lr_confounded", "loss_trend",
)  # fmt: skip
_NEEDS = "--checkpoint"


@analysis(needs=[Scan], thresholds=THRESHOLDS)
def convergence_analysis(diff: Diff, evidence: Evidence, policy: Policy) -> Envelope:
    """Whether the weights of a run settle, from how its checkpoints move."""
    answer = Answer(NAME, policy, THRESHOLDS)
    path = evidence.trajectory
    if not diff.deltas:
        _lack_all(answer, "tensors", "neither model holds any")
        return answer.envelope("not_applicable")
    if path is None or len(path.points) < 3:
        _two_points(answer, diff)
        return answer.envelope()
    moves = motion(path, evidence.log)
    if moves is None:
        why = "no parameter that all checkpoints hold moved between any two of them"
        _lack_all(answer, "checkpoints that differ", why)
        return answer.envelope()
    loss = _loss(answer, evidence, policy, path)
    _verdict(answer, moves, loss)
    _stability(answer, moves)
    _figures(answer, moves, path)
    _say_loss(answer, loss)
    _caveats(answer, moves)
    answer.seeded(SEED)
    return answer.envelope()


def _lack_all(answer: Answer, needs: str, why: str, *, but: tuple[str, ...] = ()) -> None:
    for field in _FIELDS:
        if field not in but:
            answer.lack(field, needs=needs, why=why)


def _two_points(answer: Answer, diff: Diff) -> None:
    """Say how evenly the tensors moved: all that one move can tell of stability."""
    why = "two checkpoints are one move, which neither slows nor turns"
    changes = _relative_changes(diff) if diff.has_values else []
    told = ("stability", "stability_basis") if len(changes) > 1 else ()
    _lack_all(answer, _NEEDS, why, but=told)
    if told:
        basis = f"variance of ‖d‖ / ‖left‖ over {len(changes)} parameters that moved"
        sure = "none_available: one pair of checkpoints"
        answer.say("stability", _variance(changes), basis=basis, uncertainty=sure)
        answer.say("stability_basis", "across_tensors", basis="there is one move")


def _relative_changes(diff: Diff) -> list[float]:
    """Give ‖d‖ / ‖left‖ of the parameters that moved."""
    scans = (scan for delta, scan in diff.measured(Scan)
             if delta.kind in MOVED and is_float(delta))  # fmt: skip
    return [each for scan in scans if (each := scan.relative_l2) is not None]


def _variance(values: list[float]) -> float:
    mean = fsum(values) / len(values)
    return fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _loss(answer: Answer, evidence: Evidence, policy: Policy, path: Trajectory) -> Movement | None:
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
    answer.say("action", next_step, basis="a table of (status, loss_trend)")
    if found.status == "diverging":
        evidence = {"last_over_first": _over(moves.speeds[-1], moves.speeds[0]),
                    "p": moves.rise.p, "newly_nonfinite": float(moves.newly_nonfinite)}  # fmt: skip
        answer.find("", f"the weights run away: {found.why}", evidence, "high")


def _over(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _stability(answer: Answer, moves: Motion) -> None:
    mean = fsum(moves.speeds) / len(moves.speeds)
    unit = _unit(moves)
    answer.say("stability", _variance([each / mean for each in moves.speeds]),
               basis=f"variance of u / mean(u) over {len(moves.speeds)} moves, u = {unit}",
               uncertainty="none_available: one run")  # fmt: skip
    answer.say("stability_basis", "across_intervals", basis="moves between checkpoints")


def _unit(moves: Motion) -> str:
    ticks = moves.clock
    below = (
        "sum of learning rates" if ticks.has_rates else "step" if ticks.has_steps else "interval"
    )
    return f"‖move‖ / {below}"


def _figures(answer: Answer, moves: Motion, path: Trajectory) -> None:
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
    answer.say("update_norms", table, basis=f"‖move‖ pooled over tensors; speed = {unit}",
               uncertainty="exact")  # fmt: skip
    answer.either("remaining_distance", moves.remaining,
                  basis="‖last move‖ r / (1 - r), r = decay_rate: if moves go on shrinking so",
                  uncertainty="none_available: an extrapolation",
                  needs="checkpoints whose moves shrink",
                  why="moves that do not shrink have no end to extrapolate to")  # fmt: skip
    answer.say("lr_confounded", not moves.clock.has_rates,
               basis="are moves not weighed by a learning rate that may shrink?")  # fmt: skip


def _known(answer: Answer, field: str, known: Known | None, why: str, basis: str) -> None:
    answer.either(field, None if known is None else known.value, basis=basis,
                  uncertainty=known.interval if known else None, needs=_NEEDS, why=why)  # fmt: skip


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
