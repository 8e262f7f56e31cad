"""Where a number that is none came from: an operation of the loss, or a sample that went in."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np

from ...history.history import History
from .degrees import HALF, SHORT
from .layers import place
from .losses import output_shape
from .sight import sight

_GUESSED = 0.85  # of guessing: weights that are not trained do not score better on average


def first_layers(history: History) -> tuple[int | None, list[str], bool]:
    """Return the first step with a non-finite value, its layers, and whether weights have one."""
    seen, fields = history.extremes, history.info.fields
    firsts = np.full(len(history.info.layers), -1, np.int64)
    weights = False
    for field in ("grad_l2", "grad_max_abs", "weight_l2"):
        if field in fields and len(firsts):
            steps = seen.first_nonfinite[fields.index(field)]
            sooner = (steps >= 0) & ((firsts < 0) | (steps < firsts))
            firsts[sooner] = steps[sooner]
            weights = weights or (field == "weight_l2" and bool((steps >= 0).any()))
    hit = np.flatnonzero(firsts >= 0)
    if not len(hit):
        return None, [], False
    first = int(firsts[hit].min())
    layers = history.info.layers
    # A backward pass goes from the last layer to the first: the deepest is where it began.
    at_once = sorted((int(i) for i in hit if firsts[i] == first), key=lambda i: place(layers, i))
    return first, [layers[i].name for i in reversed(at_once)], weights


def is_sudden(history: History, since: int) -> bool:
    """Did the loss break out of the blue, without having grown before?"""
    loss = sight(history).loss
    before = loss.values[loss.steps < since]
    if not len(before):
        return True
    return float(before[-3:].max()) < SHORT * max(abs(float(before[0])), 1e-300)


def is_overflow(history: History) -> bool:
    """Were single numbers of a gradient the first to go, below a loss that was one?

    What a number format cannot hold are the largest, a few here and there. A slope without an end
    (a root at zero) takes all that is before it along. A bias of one number goes as a whole either
    way, so that shares are those of matrices, where one was hit.
    """
    at = int(np.searchsorted(history.course.steps, first_layers(history)[0] or 0))
    loss, hit = history.course.scalar("loss"), history.course.field("grad_nonfinite")
    if first_layers(history)[0] is None or loss is None or hit is None or at >= len(loss):
        return False
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = np.nan_to_num(hit[at] / history.course.counts)
    forward = bool(np.isfinite(loss[at])) and _is_finite(history, "act_mean", at)
    of_matrices = shares[[len(each.shape) > 1 for each in history.course.layers]]
    largest = float(of_matrices.max(initial=0.0) or shares.max(initial=0.0))
    few = float((shares > 0).mean()) < HALF or _are_infinite(history, at)
    return forward and 0 < largest < HALF and few


def _are_infinite(history: History, at: int) -> bool:
    """Is no gradient NaN? Too large is infinite; beyond a domain it is NaN, soon or at once."""
    norms = history.course.field("grad_l2")
    known = np.zeros(0) if norms is None else norms[at][~history.course.missing("grad_l2")[at]]
    return bool(len(known) and np.isinf(known).any() and not np.isnan(known).any())


def broke_inside(history: History, since: int) -> bool:
    """Did a network that had worked so far give what is no number, before any loss was taken?

    Its operations stand what they were given until then, so that batch was unlike the others: a
    mean over no words.
    """
    at = int(np.searchsorted(history.course.steps, since))
    active = history.course.field("act_mean")
    if at == 0 or active is None or at >= len(active) or not is_sudden(history, since):
        return False
    known = ~history.course.missing("act_mean")
    return bool(
        np.isfinite(active[at - 1][known[at - 1]]).all()
        and not np.isfinite(active[at][known[at]]).all()
    )


def came_from(history: History, since: int) -> str:
    """Tell where it came from: an operation, or a sample that went in.

    A bad sample is in the first activations already. An operation of the loss leaves them finite,
    and units that are not active keep a finite gradient. So does a target that is missing; but
    labels of classes are whole numbers and cannot be NaN, and a squared error has no operation
    that is. Gradients that stay finite below a loss that is not have no bad number in them at all.
    """
    course = history.course
    at = int(np.searchsorted(course.steps, since))
    if _is_of_the_loss_alone(history, at) or (at == 0 and _is_of_the_network(history)):
        return "operation"
    if _is_squared(history) and is_sudden(history, since):
        return "sample"
    active = course.field("act_mean")
    if active is not None and at < len(active):
        known = np.flatnonzero(~course.missing("act_mean")[at])
        if len(known):
            first = min(known, key=lambda i: place(course.layers, int(i)))
            return "operation" if np.isfinite(active[at][first]) else "sample"
    if at == 0 and _are_numbers(history, "output"):
        return "operation"
    hit = course.field("grad_nonfinite")
    if hit is not None and at < len(hit):
        with np.errstate(invalid="ignore"):
            shares = hit[at] / course.counts
        shares = shares[np.isfinite(shares)]
        if len(shares) and shares.max() > 0:
            return "operation" if shares.min() < 1 else "sample"
    loss = course.scalar("loss")
    infinite = loss is not None and at < len(loss) and bool(np.isinf(loss[at]))
    return "operation" if infinite else "sample"


def _is_of_the_loss_alone(history: History, at: int) -> bool:
    """Is the loss no number while all below it is? The logarithm of -1 has a slope."""
    loss, hit = history.course.scalar("loss"), history.course.field("grad_nonfinite")
    if loss is None or hit is None or at >= len(loss) or not sight(history).loss.n:
        return False
    below = all(_is_finite(history, name, at) for name in ("grad_l2", "act_mean"))
    return bool(below and np.isnan(loss[at]) and hit.shape[1] and not np.nan_to_num(hit[at]).any())


def _is_finite(history: History, name: str, at: int) -> bool:
    """Is what was recorded of a field at a point all numbers?"""
    values = history.course.field(name)
    if values is None:
        return True
    return bool(np.isfinite(values[at][~history.course.missing(name)[at]]).all())


def _is_of_the_network(history: History) -> bool:
    """Did numbers go into the very first pass, and come out as none?"""
    if not isinstance(history.fact("output"), dict) or _are_numbers(history, "output"):
        return False
    return _are_numbers(history, "input")


def _are_numbers(history: History, name: str) -> bool:
    """Were the very first inputs or outputs all numbers?"""
    seen: Any = history.fact(name)
    ends = [seen.get("min"), seen.get("max")] if isinstance(seen, dict) else []
    return bool(ends) and all(isinstance(each, (int, float)) and isfinite(each) for each in ends)


def _is_squared(history: History) -> bool:
    """Is there one output, or did the loss begin below what guessing among classes costs?

    A loss that was below zero once has a logarithm in it.
    """
    loss = sight(history).loss
    if not output_shape(history) or (loss.values < 0).any():
        return False
    return loss.chance is None or (loss.n > 0 and float(loss.values[0]) < _GUESSED * loss.chance)


def broke_in_the_loss(history: History) -> bool:
    """Did an operation of the loss make what is no number, out of outputs that were some?"""
    steps = [history.first_nonfinite_scalar.get("loss"), first_layers(history)[0]]
    known = [each for each in steps if each is not None]
    if not known:
        return False
    return is_sudden(history, min(known)) and came_from(history, min(known)) == "operation"
