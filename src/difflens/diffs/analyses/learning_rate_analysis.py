"""The learning rate: as saved and logged, as a schedule, and as one step of training shows it."""

from __future__ import annotations

from math import sqrt
from typing import Any, Literal

from difflens.core.policy import Threshold

from ..answer import Answer
from ..diff import Diff
from ..evidence.records import Evidence, Optimizer
from ..methods.changes.energy import pooled, weights
from ..methods.training.logs import RATES, at, column, schedule, steps_of
from ..methods.training.optimiser import Fit, Names, by_moves, by_order, effective_rates, fits
from . import analysis

_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")
_OPTIONS = ("--optimizer-left/--optimizer-right", "--log with learning_rate")


@analysis(
    needs="tensors",
    thresholds={
        "least_r2": Threshold(0.95, "R² below which a fitted learning rate is refused"),
        "schedule_r2": Threshold(0.95, "R² below which a schedule is called unrecognised"),
        "assume_adam": Threshold(False, "asserts that Adam made the change"),
        "beta1": Threshold(0.9, "Adam's β1 in the bound, where no optimiser state says it"),
        "beta2": Threshold(0.999, "Adam's β2 in the bound, where no optimiser state says it"),
    },
    fields={
        "old": "",
        "new": "",
        "lr_estimate": "",
        "update_ratio": "",
        "change": "",
        "weight_decay_estimate": "",
        "lr_lower_bound": "",
        "schedule": "",
        "effective_lr": "",
        "lr_fits": "one a group of parameters",
    },
)
def learning_rate_analysis(diff: Diff, evidence: Evidence, answer: Answer) -> None:
    """Learning rates before and after, their schedule, and what one step shows of them."""
    _rates(answer, evidence)
    _schedule(answer, evidence)
    names = _names(diff, evidence)
    _effective(answer, evidence, names)
    _update_ratio(answer, diff, evidence)
    _estimate(answer, diff, evidence, names)
    _bound(answer, diff, evidence)


def _rates(answer: Answer, evidence: Evidence) -> None:
    (old, old_basis), (new, new_basis) = (_rate(evidence, side) for side in _SIDES)
    change = None if old is None or new is None else new - old
    why = "weights do not tell the rate they were trained with"
    needs = evidence.lacking(*_OPTIONS, instead="the steps of both checkpoints")
    for field, value, basis in (
        ("old", old, old_basis),
        ("new", new, new_basis),
        ("change", change, "new - old"),
    ):
        answer.either(field, value, basis=basis, uncertainty="exact", needs=needs, why=why)


def _rate(evidence: Evidence, side: Literal["left", "right"]) -> tuple[float | None, str]:
    """Read one side's rate: of the largest group of its optimiser, else of the log at its step."""
    state = (evidence.left if side == "left" else evidence.right).optimizer
    groups = [group for group in state.groups if _is_rate(group.get("lr"))] if state else []
    if groups:
        largest = max(groups, key=lambda group: len(group["params"]))
        others = len({group["lr"] for group in groups}) - 1
        more = f" of the largest group; {others} other rates in other groups" if others else ""
        return float(largest["lr"]), f"lr in the {side} optimiser's param_groups{more}"
    found = column(evidence.log, RATES)
    step = steps_of(evidence)[_SIDES.index(side)]
    if found is None or step is None:
        return None, ""
    return at(found[1], step), f"{found[0]} in the log at step {step:g}"


def _is_rate(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _schedule(answer: Answer, evidence: Evidence) -> None:
    found = column(evidence.log, RATES)
    told = schedule(found[1], answer["schedule_r2"]) if found else None
    points = f"{len(found[1])} points of {found[0]}" if found else "no learning_rate was logged"
    answer.either(
        "schedule",
        told.to_dict() if told else None,
        basis=f"{points}: best of constant, linear, inverse square root, step, cosine after the"
        " warm-up; R² within the log",
        uncertainty="none_available: a description of the log",
        needs=evidence.lacking("--log with learning_rate", instead="a learning_rate in the log"),
        why=points,
    )


def _names(diff: Diff, evidence: Evidence) -> Names:
    state = evidence.right.optimizer
    if state is None:
        return Names({}, "no optimiser state of the right model")
    found = by_order(diff, "right", state)
    return found if found.names or not diff.has_values else by_moves(diff, state)


_MOMENTS = "moments of Adam, with parameters in a known order"


def _effective(answer: Answer, evidence: Evidence, names: Names) -> None:
    state = evidence.right.optimizer
    rates = effective_rates(state, names.names) if state else []
    answer.either(
        "effective_lr",
        [each.to_dict() for each in rates] or None,
        basis=f"median of lr/(sqrt(v) + ε), bias-corrected; parameters by {names.how}",
        uncertainty="none_available: one snapshot",
        needs=evidence.lacking("--optimizer-right", instead=_MOMENTS),
        why=names.how if not names.names else "it holds no moments of Adam",
    )
    if rates:
        answer.assume(f"optimiser indices are named by {names.how}")
        answer.assume("medians are over up to 65536 elements of a tensor, evenly spread")


def _update_ratio(answer: Answer, diff: Diff, evidence: Evidence) -> None:
    norms = pooled(weights(diff)) if diff.has_values else None
    left, right = steps_of(evidence)
    gap = abs(right - left) if left is not None and right is not None else None
    ratio = norms.moved / norms.left if norms and norms.left and norms.moved is not None else None
    value = ratio / gap if ratio is not None and gap else None
    answer.either(
        "update_ratio",
        value,
        basis=f"‖right - left‖ / ‖left‖ / {gap:g} steps" if gap else "",
        uncertainty="exact",
        needs="checkpoints saved at two steps that their names or logs tell",
        why="how many steps lie between them is not known"
        if not gap
        else "norms are not finite, zero, or were not read",
    )
    if value is not None:
        answer.assume("that an update ratio should be 1e-3 a step is folklore: no verdict is drawn")
        if gap and gap > 1:
            answer.assume("steps in different directions cancel: each may be larger than the ratio")


def _estimate(answer: Answer, diff: Diff, evidence: Evidence, names: Names) -> None:
    """Fit one step of AdamW; refuse where more lie between, or the fit leaves too much over."""
    needs = "two checkpoints one step apart"
    if evidence.right.optimizer is None:
        needs += ", and --optimizer-right"
    state = evidence.right.optimizer
    gap = _gap(evidence)
    if state is None or not diff.has_values or gap not in (None, 1):
        why = (
            f"{gap:g} steps lie between: a sum of steps has no one rate"
            if gap not in (None, 1)
            else "it takes tensor values and the moments after the step"
        )
        _refuse(answer, needs, why)
        return
    found, why = _fitted(answer, diff, state, names)
    largest = max(found, key=lambda each: each.elements, default=None)
    if largest is None or largest.r2 < answer["least_r2"]:
        _refuse(
            answer,
            needs,
            why
            if largest is None
            else f"one step explains R² = {largest.r2:.3f} of the change, {answer['least_r2']:g} is"
            " needed: several steps, another optimiser, or coarse rounding",
        )
        return
    sure = f"none_available: exact up to rounding, R² = {largest.r2:.9f}"
    basis = f"least squares of Δ = -lr u - lr wd w over {largest.elements} elements of one step"
    answer.say("lr_estimate", largest.lr, basis=basis, uncertainty=sure)
    answer.either(
        "weight_decay_estimate",
        largest.weight_decay,
        basis=basis,
        uncertainty=sure,
        needs=needs,
        why="all weights were zero before",
    )
    answer.say("lr_fits", [each.to_dict() for each in found])


def _refuse(answer: Answer, needs: str, why: str) -> None:
    for field in ("lr_estimate", "weight_decay_estimate", "lr_fits"):
        answer.lack(field, needs=needs, why=why)


def _gap(evidence: Evidence) -> float | None:
    """Count the steps between: by the optimisers' own counters, else by the checkpoints."""
    counted = [_counted(side.optimizer) for side in (evidence.left, evidence.right)]
    if counted[0] is not None and counted[1] is not None:
        return counted[1] - counted[0]
    left, right = steps_of(evidence)
    return None if left is None or right is None else right - left


def _counted(state: Optimizer | None) -> float | None:
    steps = {moments.get("step") for moments in state.moments.values()} if state else set()
    known = [step for step in steps if isinstance(step, int | float)]
    return float(max(known)) if known else None


def _fitted(answer: Answer, diff: Diff, state: Optimizer, names: Names) -> tuple[list[Fit], str]:
    """Fit by the names there are; where that fails, by those that the moves themselves tell."""
    found = fits(diff, state, names.names)
    if all(each.r2 >= answer["least_r2"] for each in found) and found:
        return found, names.how
    moves = by_moves(diff, state)
    again = fits(diff, state, moves.names)
    if again and min(each.r2 for each in again) >= answer["least_r2"]:
        answer.assume(f"optimiser indices are named by {moves.how}")
        return again, moves.how
    return found or again, names.how


def _bound(answer: Answer, diff: Diff, evidence: Evidence) -> None:
    """Bound the sum of the rates: a step of Adam moves no element further than this many lr."""
    found = weights(diff) if diff.has_values and answer["assume_adam"] else []
    state = evidence.right.optimizer
    betas = (
        next((group["betas"] for group in state.groups if group.get("betas")), None)
        if state
        else None
    )
    first, second = betas or (answer["beta1"], answer["beta2"])
    reach = max(1.0, (1 - first) / sqrt(1 - second))
    far = max((each.max_moved for each in found), default=None)
    answer.either(
        "lr_lower_bound",
        far / reach if far else None,
        basis=f"sum of learning rates >= max|Δ| / {reach:.4g} (Kingma & Ba 2015, 2.1)",
        uncertainty="exact",
        needs="assume_adam = true in [learning_rate_analysis] of --policy"
        if not answer["assume_adam"]
        else "parameters that moved",
        why="only of Adam is it known how far one step can go"
        if not answer["assume_adam"]
        else "no float parameter moved",
    )
    if far:
        answer.assume("asserted: Adam made the change, weight decay aside; a bound, not the rate")
