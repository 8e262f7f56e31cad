"""Whether a network starts sound: the size of its first weights, and what they make of a signal."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...records.runs import Fix
from .degrees import NEARLY, PART, THRICE
from .harms import Harm
from .layers import models_activations
from .losses import Losses
from .rates import lower, mean_square, to_sound_steps
from .sight import Sight

USUAL = 10.0  # size of first outputs: scaled data through sound weights make about one
LARGE = 2.0  # of the scale of kaiming: weights beyond it were made too large


def has_wild_weights(scales: NDArray[Any], most: float, one: float) -> bool:
    """Are first weights, by kaiming's, far too large: most of them, or one layer by far?"""
    if not len(scales) or np.isnan(scales).all():
        return False
    return float(np.nanmax(scales)) >= one or float(np.nanmedian(scales)) >= most


def scheme(seen: Sight) -> str:
    """Name the start that fits what stands behind the weights.

    ReLU takes half of what passes, and kaiming makes up for it. Behind tanh, GELU or attention
    its weights are too large by the root of two a layer, and xavier's are not. Behind a norm or a
    sum a non-linearity belongs to no layer, and is known of the model alone.
    """
    kinds = {layer.activation for layer in seen.history.info.layers} - {""}
    kinds = kinds or set(models_activations(seen.history))
    return "kaiming" if "ReLU" in kinds or not kinds else "xavier"


def first_loss_by_outputs(seen: Sight) -> float:
    """Return the first loss of a regression by what scaled targets would cost with such outputs."""
    outputs = mean_square(seen)
    if outputs is None or seen.loss.chance is not None or not seen.loss.n:
        return 0.0
    return float(seen.loss.values[0]) / (1 + outputs)


def guesses(loss: Losses, least: int) -> Harm | None:
    """Did a loss that began far above guessing come down to it, and no further?

    By its start it fell far, and shows nothing that harm is measured by: that start is the fault.
    """
    if loss.n < least or loss.chance is None or not loss.is_of_outputs:
        return None
    late = loss.values[-max(loss.n // 2, 1) :]
    if not NEARLY * loss.chance <= float(np.median(late)) <= loss.chance / NEARLY:
        return None
    said = f"the loss came down from {loss.start:.4g} to {loss.now:.4g}, which is guessing"
    return Harm("stuck", int(loss.steps[0]), loss.fall, said)


def makes_its_loss(seen: Sight) -> bool:
    """Is a regression's first loss that of large outputs, which no large inputs made?"""
    outputs, whole = mean_square(seen), gain(seen)
    if outputs is None or outputs < USUAL**2 or (whole is not None and whole < USUAL):
        return False
    return seen.loss.chance is None and first_loss_by_outputs(seen) <= THRICE


def stays_high(seen: Sight, least: int) -> Harm | None:
    """Is a regression's loss, made by its outputs at first, no small part of one after many points?

    To guess the mean of scaled targets costs one; beside a first loss of thousands that is nothing.
    """
    loss = seen.loss
    if loss.n < least or loss.now < PART or not makes_its_loss(seen):
        return None
    said = f"the loss is at {loss.now:.4g} after {loss.n} points (it started at {loss.start:.4g})"
    return Harm("crawls", int(loss.steps[0]), loss.fall, said)


def gain(seen: Sight) -> float | None:
    """Return how many times as large as its inputs the network makes its first outputs."""
    given: Any = seen.history.fact("input")
    spread = given.get("std") if isinstance(given, dict) else None
    outputs = mean_square(seen)
    if outputs is None or not isinstance(spread, (int, float)) or not spread > 0:
        return None
    return float(outputs**0.5 / spread)


def gain_a_layer(seen: Sight) -> float | None:
    """Return by how much a layer makes its signal larger, from the sizes of inputs and outputs.

    The weights tell it where the first step left some of them; where it swamped them, this does.
    """
    whole, trained = gain(seen), np.flatnonzero(seen.layers.trained)
    depth = len({seen.layers.of(int(i)).depth for i in trained})
    return None if whole is None or not depth else float(whole ** (1 / depth))


def of_usual_weights(seen: Sight) -> Fix | None:
    """Return what helps if no layer was made too large, as far as the first step shows it.

    Either targets are large, or what comes behind the loss is, with a sound way forward; or there
    is too much in a row, and only a norm between helps.
    """
    if seen.loss.chance is None:
        return None if makes_its_loss(seen) else Fix("scale_targets")
    each, outputs = gain_a_layer(seen), mean_square(seen)
    if outputs is not None and outputs < USUAL**2:
        return lower(seen, to_sound_steps(seen))
    if each is None or each >= LARGE or seen.history.fact("norm_layers"):
        return None
    return Fix("add_normalisation", {"kind": "batch" if _has_filters(seen) else "layer"})


def _has_filters(seen: Sight) -> bool:
    return any("conv" in layer.kind.lower() for layer in seen.history.info.layers)
