"""Layers that are meant to learn and do not move: not stepped, not handed over, cut off."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from difflens.core.policy import Policy, Threshold

from ..detectors.looping.arriving import is_lost, none_arrives
from ..detectors.looping.released import released
from ..detectors.signs.layers import median, place
from ..detectors.signs.limits import Limits
from ..detectors.signs.sight import Sight, sight
from ..detectors.signs.silence import starved
from ..detectors.signs.wording import above, finding
from ..history.history import History
from ..records.runs import Fix, RunFinding
from . import diagnosis

THRESHOLDS = {
    "points": Threshold(5, "points with a positive learning rate over which nothing moved"),
    "stopped_points": Threshold(
        30,
        "points without a call of step(), after which it is told of a "
        "run that moved before: gradients are gathered over fewer",
    ),
    "moving": Threshold(1e-4, "update by weight of a layer that moves"),
    "still": Threshold(1e-6, "median update by weight of a layer that stands still in effect"),
    "apart": Threshold(1e-3, "the same by that of the layer that moves most"),
    "still_points": Threshold(20, "points before that is told of"),
    "share": Threshold(0.01, "share of all parameters that stand still: below, it is told as info"),
}


_SAME = 1e-6  # of its size: weights that nothing moves are the same to the last bit


@diagnosis(needs=(), window=5, thresholds=THRESHOLDS)
def not_training(history: History, policy: Policy) -> Iterator[RunFinding]:
    """Find trainable layers that no step moves, and say which link is missing."""
    limit = Limits("not-training", policy, THRESHOLDS)
    seen = sight(history)
    updates = history.course.field("update_l2")
    active = _active(seen)
    if int(active.sum()) < limit["points"]:
        return
    if _is_nothing_meant(history):
        yield from _nothing_to_train(seen, limit)
        return
    if updates is None:
        # Of parameters that are in no optimiser, nothing is recorded.
        if _is_never_stepped(history) or _is_held_by_none(history):
            yield from _nothing_moves(seen, limit, active)
        return
    layers = history.info.layers
    meant = [i for i, layer in enumerate(layers) if layer.trainable]
    # An update that is NaN is one: the weights are lost, and `nan` tells where.
    recorded = ~history.course.missing("update_l2")[active]
    moved = (recorded & (updates[active] != 0)).any(axis=0) | _went(history, active)
    still = [i for i in meant if not moved[i]]
    if len(still) < len(meant) and is_lost(seen):
        yield from none_arrives(seen, _in_order(seen))
        return
    if not still:
        gone = [*released(seen, limit, updates)] or [*_stopped(seen, limit, updates)]
        yield from gone or _hardly_moves(seen, limit)
        return
    if len(still) == len(meant):
        yield from _nothing_moves(seen, limit, active)
        return
    # A rate next to zero also leaves some weights exactly where they are: it is rounded off.
    yield from [*_some_stand_still(seen, limit, still, active)] or _hardly_moves(seen, limit)


def _went(history: History, active: Any) -> Any:
    """Tell which weights are of another size at one point than at another.

    Where gradients are gathered over several steps, those recorded may be the ones without an
    update, and weights have gone between them all the same.
    """
    weights = history.course.field("weight_l2")
    if weights is None or history.fact("estimated_weights"):
        return np.zeros(len(history.info.layers), bool)
    sizes = np.where(np.isfinite(weights[active]), weights[active], np.nan)
    known = ~np.isnan(sizes).all(axis=0)
    gone = np.zeros(sizes.shape[1], bool)
    low, high = np.nanmin(sizes[:, known], axis=0), np.nanmax(sizes[:, known], axis=0)
    gone[known] = high - low > _SAME * high
    return gone


def _stopped(seen: Sight, limit: Limits, updates: Any) -> Iterator[RunFinding]:
    """Find the step from which on the optimiser was not called any more."""
    calls = seen.history.course.scalar("optimizer_steps")
    if calls is None:
        return
    recorded = ~seen.history.course.missing("update_l2")
    moved = (recorded & (updates != 0)).any(axis=1) | ~(calls == 0) | ~_active(seen)
    last = int(np.flatnonzero(moved)[-1]) if moved.any() else -1
    if seen.points - 1 - last >= limit["stopped_points"]:
        after = np.arange(seen.points) > last
        yield from _nothing_moves(seen, limit, after)


def _is_never_stepped(history: History) -> bool:
    calls = history.course.scalar("optimizer_steps")
    return calls is not None and bool((calls[np.isfinite(calls)] == 0).all())


def _is_held_by_none(history: History) -> bool:
    """Does the optimiser hold not one of the parameters that are meant to learn?"""
    meant = [layer for layer in history.info.layers if layer.trainable]
    return bool(meant) and all(layer.optimised is False for layer in meant)


def _is_nothing_meant(history: History) -> bool:
    """Is no parameter meant to learn, did none ever move, and was no step taken?

    A log of losses has no layers either; it does not tell of steps.
    """
    if any(layer.trainable for layer in history.info.layers) or not _is_never_stepped(history):
        return False
    updates = history.course.field("update_l2")
    every = np.ones(len(history.course), bool)
    still = updates is None or not np.nan_to_num(updates).any()
    return still and not _went(history, every).any()


def _nothing_to_train(seen: Sight, limit: Limits) -> Iterator[RunFinding]:
    layers = len(seen.history.info.layers)
    frozen = "its 1 layer is frozen" if layers == 1 else f"all {layers} layers are frozen"
    yield from finding(
        "not-training",
        "critical",
        f"there is nothing to train: {frozen if layers else 'the model has no parameters'}",
        {"points": seen.points, "points_threshold": limit["points"], "layers": layers},
        since=int(seen.steps[0]),
        layers=_in_order(seen),
        cause="requires_grad is False for every parameter"
        if layers
        else "the model that is watched holds no parameter",
        advice=["set requires_grad to True for the layers that are meant to learn"]
        if layers
        else ["give the monitor the model whose parameters are trained"],
        signs=[above(seen.points, limit["points"] / 2)],
    )


def _active(seen: Sight) -> Any:
    """Tell at which points a step could have moved something: learning rate above zero."""
    rates = seen.lr
    return np.ones(seen.points, bool) if rates is None else ~(rates <= 0)


def _nothing_moves(seen: Sight, limit: Limits, active: Any) -> Iterator[RunFinding]:
    """Find a run in which no weight moves at all, and say why."""
    calls = seen.history.course.scalar("optimizer_steps")
    gradients = seen.history.course.field("grad_l2")
    n = int(active.sum())
    called = None if calls is None else float(np.nansum(calls[active]))
    if called and gradients is not None and not np.nan_to_num(gradients).any():
        yield from none_arrives(seen, _in_order(seen))
        return
    held = bool(called) and all(
        each.optimised for each in seen.history.info.layers if each.trainable
    )
    yield from finding(
        "not-training",
        "critical",
        f"no weight has moved in {n} points"
        + (": optimizer.step() was not called" if called == 0 else ""),
        {
            "points": n,
            "points_threshold": limit["points"],
            "optimizer_steps": called,
            "layers_moved": 0,
        },
        since=int(seen.steps[np.flatnonzero(active)[0]]),
        layers=_in_order(seen),
        cause="the optimiser never takes a step"
        if not called
        else "the gradients are cleared between backward() and step()"
        if held
        else "the optimiser steps, but holds other parameters than the model's",
        advice=["call optimizer.step() after backward()"]
        if not called
        else ["call zero_grad() before backward() or after step()"]
        if held
        else ["build the optimiser from model.parameters(), after the model was moved or wrapped"],
        signs=[above(n, limit["points"] / 2)],
        fix=Fix("call_step")
        if not called
        else Fix("call_zero_grad")
        if held
        else Fix("add_to_optimizer", {"layers": []}),
    )


def _hardly_moves(seen: Sight, limit: Limits) -> Iterator[RunFinding]:
    """Find layers that get gradients as others do and are moved a thousand times less.

    Adam divides gradients by their size, SGD does not: in neither case does a layer whose gradient
    is not small beside its weights move by a millionth of itself, unless its rate is next to zero.
    """
    paces, pulls = seen.layers.update, seen.layers.gradient
    if paces is None or pulls is None or seen.points < limit["still_points"]:
        return
    with np.errstate(invalid="ignore"):
        pace, pull = median(paces, axis=0), median(pulls, axis=0)
        # From the start: a layer may stand still later that steps threw away before.
        first = median(paces[: int(limit["still_points"])], axis=0)
        pace = np.maximum(pace, first)
    known = seen.layers.trained & np.isfinite(pace) & np.isfinite(pull)
    if not known.any():
        return
    fastest, strongest = float(pace[known].max()), float(pull[known].max())
    still = known & (pace < limit["still"]) & (pace < limit["apart"] * fastest)
    still &= (pull > 0.01 * strongest) & (fastest > limit["moving"])
    chosen = [seen.layers.matrices[int(i)] for i in np.flatnonzero(still)]
    if chosen:
        yield from _finding(seen, limit, chosen, "add_to_optimizer")


def _in_order(seen: Sight) -> list[str]:
    layers = seen.history.info.layers
    order = sorted(range(len(layers)), key=lambda i: place(layers, i))
    return [layers[i].name for i in order if layers[i].trainable]


def _some_stand_still(
    seen: Sight, limit: Limits, still: list[int], active: Any
) -> Iterator[RunFinding]:
    layers = seen.history.info.layers
    gradients = seen.history.course.field("grad_l2")
    missing = seen.history.course.missing("grad_l2")
    outside = [i for i in still if layers[i].optimised is False]
    cut = [i for i in still if i not in outside and missing[active][:, i].all()]
    if gradients is not None:
        cut += [
            i
            for i in still
            if i not in outside and i not in cut and _is_cut(seen, i, gradients[active][:, i])
        ]
        if not missing.all():
            outside += [
                i
                for i in still
                if i not in cut and i not in outside and _is_idle(seen, i, gradients[active][:, i])
            ]
    for chosen, code in ((outside, "add_to_optimizer"), (cut, "remove_detach")):
        if chosen:
            yield from _finding(seen, limit, sorted(chosen, key=lambda i: place(layers, i)), code)


def _is_cut(seen: Sight, i: int, gradient: Any) -> bool:
    """Is its gradient exactly zero although units are alive everywhere?"""
    if np.nan_to_num(gradient, nan=1.0).any() or starved(seen):
        return False  # no graph is cut where nothing is active
    share = seen.layers.dead
    if share is None or np.isnan(share[:, i]).all():
        return False
    # A dead layer anywhere silences those before it and, with zeros, the one behind it.
    worst = np.nan_to_num(median(share[-10:], axis=0)).max()
    return bool(worst < 0.5)


def _is_idle(seen: Sight, i: int, gradient: Any) -> bool:
    """Does a gradient arrive that any optimiser would feel, and still nothing moves?"""
    layer = seen.history.info.layers[i]
    weights = seen.history.course.field("weight_l2")
    if layer.optimised is True or weights is None:
        return False
    size = np.nanmedian(gradient) if not np.isnan(gradient).all() else 0.0
    return bool(size > 1e-4 * max(float(np.nan_to_num(weights[-1, i])), 1e-12))


def _finding(seen: Sight, limit: Limits, chosen: list[int], code: str) -> list[RunFinding]:
    """Say that these layers do not train, for the reason that the code names."""
    layers = seen.history.info.layers
    whole = sum(layer.count for layer in layers if layer.trainable) or len(layers)
    part = sum(layers[i].count for i in chosen) or len(chosen)
    share = part / whole
    names = [layers[i].name for i in chosen]
    forgotten = code == "add_to_optimizer"
    shut = forgotten and _let_nothing_pass(seen, chosen)
    # What stands nearest to the cut is the first to look at.
    ordered = names if forgotten else names[::-1]
    return finding(
        "not-training",
        ("critical" if share > 0.2 else "warning") if share >= limit["share"] else "info",
        f"{len(names)} layers with {share:.0%} of the parameters never move: "
        + ("they were not handed to the optimiser" if forgotten else "no gradient reaches them"),
        {
            "still_layers": len(names),
            "share_of_parameters": share,
            "share_threshold": limit["share"],
            "points": seen.points,
            "optimised": not forgotten,
        },
        since=int(seen.steps[0]),
        layers=ordered,
        cause="norms that the optimiser does not hold start with gains of zero: nothing passes"
        if shut
        else "the optimiser was built from other parameters than these"
        if forgotten
        else "the graph is cut behind them (detach, no_grad, .data, numpy), or they are not used",
        advice=["start the gains of norms at one, and give them to the optimiser"]
        if shut
        else [
            "give the optimiser all parameters",
            "where they are frozen on purpose, say so with requires_grad_(False)",
        ]
        if forgotten
        else [
            "take the detach() or no_grad() out of the forward pass",
            "where they are frozen on purpose, say so with requires_grad_(False)",
        ],
        signs=[above(share, limit["share"])],
        fix=Fix("reinitialise", {"scheme": "kaiming", "layers": names})
        if shut
        else Fix(code, {"layers": names}),
    )


def _let_nothing_pass(seen: Sight, chosen: list[int]) -> bool:
    """Are there norms among them, and is every gradient of a matrix known, and exactly zero?

    Norms make numbers of size one, so that is the work of their gains, which the optimiser, given
    them now, would have to lift from zero. Of matrices that it does not hold either, no gradient
    is recorded: that tells nothing of what passes.
    """
    gradients = seen.layers.field("grad_l2")
    norms = any("norm" in seen.history.info.layers[i].kind.lower() for i in chosen)
    if not norms or gradients is None:
        return False
    known = ~seen.history.course.missing("grad_l2")[:, seen.layers.matrices]
    return bool(known.any() and not np.nan_to_num(gradients[known]).any())
