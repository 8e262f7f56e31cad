"""How gradients fade from layer to layer, measured by the weights they belong to."""

from __future__ import annotations

from typing import Any

import numpy as np

from .degrees import FEW, HARDLY, MOST, SHORT, SOME, TENFOLD
from .gates import are_sigmoids_alone, gates
from .harms import Harm
from .layers import initial_scales, median, models_activations, place
from .losses import standstill
from .sight import Sight
from .silence import is_silent

BOUNDED = ("Sigmoid", "Tanh", "Softsign", "Hardsigmoid", "Hardtanh", "LogSigmoid")
_SLOPE = 1e-3  # of the slope that a loss of such a size can have: batches leave a tenth and more
_NOTHING = 1e-30  # all that is smaller counts alike
FIRST = "first"  # the kind of harm by which gradients before the first update are judged


def sizes_of(seen: Sight, told: Harm, columns: Any) -> Any:
    """Return r of each trained matrix while the loss stood still; None if it cannot be told."""
    gradient, points = seen.layers.gradient, 30
    if gradient is not None and (told.kind == FIRST or has_sigmoids(seen)):
        gradient = gradient[:1]  # before the first update: later the first layers catch up
    elif told.kind == "stood" and gradient is not None:
        gradient, points = gradient[: max(standstill(seen.loss) // 2, 5)], seen.points
    recent = seen.layers.recent(gradient, points)
    if recent is None or len(columns) < FEW:
        return None
    sizes = recent[columns]
    return sizes if np.isfinite(sizes).all() and sizes.max() > 0 else None


def is_blocked(seen: Sight, columns: Any) -> bool:
    """Is every gradient before the last matrix exactly zero at every point, though outputs get one?

    The outputs do not depend on the inputs then: what stands between multiplies by zero.
    """
    found = seen.layers.field("grad_l2")
    if found is None or len(found) < SHORT or len(columns) < FEW or is_silent(seen):
        return False
    return bool((found[:, columns[:-1]] == 0).all())


def faded(ratios: Any, strongest: int, most: float, *, beside: list[int]) -> list[int]:
    """Return the places before the strongest layer whose gradient is faint, as those before it are.

    What fades is lost on the way to the input: a layer that is faint while one nearer to the input
    is not stands in a branch of its own, and so does a gate.
    """
    way = [i for i in range(strongest) if i not in beside]
    loud = [i for i in way if ratios[i] >= TENFOLD * most]  # a layer that gets its gradient
    return [i for i in way if ratios[i] < most and not (loud and loud[0] < i)]


def wall(ratios: Any, faint: list[int], strongest: int, *, beside: list[int]) -> list[int]:
    """Return the place of the one layer that lets nothing back; None if all let their part back.

    The gradient of a layer has passed its own non-linearity and none before it. So where most is
    lost between two neighbours, the one nearer to the input is saturated, and those before it
    only get what it lets through.
    """
    way = [i for i in range(strongest + 1) if i not in beside]
    last = max(faint, default=-1)
    behind = [i for i in way if i > last]
    if last not in way or not behind:
        return []
    sizes = np.log10(np.maximum(ratios, _NOTHING))
    at_once, whole = sizes[behind[0]] - sizes[last], sizes[strongest] - sizes[faint].min()
    return [last] if at_once > MOST * whole else []


def is_work_of_steps(seen: Sight, columns: Any, places: list[int], most: float) -> bool:
    """Did these layers get gradients like others at first, and were first steps large somewhere?

    What depth takes from gradients it takes before the first update. Where steps threw weights
    to where little passes back, these are the fault.
    """
    gradient, updates = seen.layers.gradient, seen.layers.update
    if gradient is None or updates is None or not places:
        return False
    first = gradient[0, columns]
    steps = np.nan_to_num(updates[:FEW][:, columns])
    # Those of adaptive optimisers are alike and go one way at first: what they add up to counts.
    went = float(steps.sum(axis=0).max(initial=0.0))
    if not np.isfinite(first).all() or not first.max() > 0 or went < SOME:
        return False
    return bool((first[places] >= TENFOLD * most * first.max()).all())


def tiny(seen: Sight, least: float, columns: Any) -> list[int]:
    """Return the matrices that start far too small, if most do and no norm corrects it."""
    scales = initial_scales(seen.layers)
    if not len(scales) or seen.history.fact("norm_layers"):
        return []
    small = scales[columns] < least
    return np.flatnonzero(small).tolist() if small.mean() > 0.5 else []


def has_sigmoids(seen: Sight) -> bool:
    """Are there at least three layers of sigmoids, and are they no gates?"""
    columns = np.flatnonzero(seen.layers.trained)
    if are_sigmoids_alone(seen.layers, columns):
        return True
    if gates(seen.layers, columns):
        return False
    kinds = [layer.activation for layer in seen.history.info.layers if layer.role != "bias"]
    if not any(kinds) and len(columns) > FEW:
        return are_the_models(seen)
    return sum("igmoid" in kind for kind in kinds) >= FEW


def are_the_models(seen: Sight) -> bool:
    """Are sigmoids all non-linearities of the model?

    Behind a norm, a pool or a sum one belongs to no layer, and is known of the model alone.
    """
    known = models_activations(seen.history)
    return bool(known) and all("igmoid" in each for each in known)


def is_faint_at_the_end(seen: Sight, slope: float) -> bool:
    """Is the gradient of the outputs' bias faint itself? Then nothing is lost on the way.

    That bias gets the mean slope of the loss, whatever stands before it. Where that is next to
    nothing (a temperature, a tiny weight), every layer gets little, and steps are small.
    """
    gradients, layers = seen.history.course.field("grad_l2"), seen.history.info.layers
    biases = [
        i
        for i, layer in enumerate(layers)
        if layer.role == "bias" and layer.trainable and "norm" not in layer.kind.lower()
    ]
    if gradients is None or not len(gradients) or not biases:
        return False
    last = max(biases, key=lambda i: place(layers, i))
    ends = max(np.flatnonzero(seen.layers.trained), default=None)
    if ends is None or place(layers, last)[0] < place(layers, seen.layers.matrices[int(ends)])[0]:
        return False
    return bool(0 < float(median(gradients[:SHORT, last], axis=0)) < _SLOPE * slope)


def loses_slopes(seen: Sight) -> bool:
    """Did the first bias get a hundredth of the slope that the last one got, before weights moved?

    Where weights are small a signal fades on its way in as gradients do on their way back, so that
    the gradients of weights, which are the product of both, are as faint in every layer. Biases get
    the slope alone.
    """
    gradients, layers = seen.history.course.field("grad_l2"), seen.history.info.layers
    biases = [
        i
        for i, layer in enumerate(layers)
        if layer.role == "bias"
        and layer.trainable
        and layer.count
        and "norm" not in layer.kind.lower()
    ]
    if gradients is None or not len(gradients) or len(biases) < FEW:
        return False
    biases.sort(key=lambda i: place(layers, i))
    first, last = (
        float(median(gradients[:SHORT, i], axis=0)) / layers[i].count ** 0.5
        for i in (biases[0], biases[-1])
    )
    return bool(0 < first < HARDLY * last)  # healthy stacks pass on a tenth and more


def are_dead(seen: Sight, columns: Any, sizes: Any) -> bool:
    """Are the silent layers cut off by dead units behind them, not by fading?"""
    return (
        bool((sizes == 0).any())
        and not any(seen.layers.of(int(column)).activation in BOUNDED for column in columns)
        and bool((np.sort(sizes[sizes > 0])[:1] > 1e-4 * sizes.max()).all())
    )


def factor_a_layer(sizes: Any, strongest: int) -> float | None:
    """Return the factor from one layer to the one before it: exp of the slope of ln r by depth."""
    upto = sizes[: strongest + 1]
    kept = upto > 0
    if kept.sum() < 3:
        return None
    return float(np.exp(np.polyfit(np.arange(len(upto))[kept], np.log(upto[kept]), 1)[0]))
