"""Gradients that outgrow the weights they belong to, or what they were themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from difflens.core.policy import Policy, Threshold

from ..detectors.signs.degrees import FEW, LASTING, LONG, MOST, SHORT
from ..detectors.signs.harms import Harm, broke, crawls, harm, lost, rests, rose, stuck
from ..detectors.signs.layers import initial_scales
from ..detectors.signs.limits import Limits
from ..detectors.signs.rates import hold, is_summed
from ..detectors.signs.recurrence import wrong_memory
from ..detectors.signs.sight import Sight, sight
from ..detectors.signs.starts import (
    LARGE,
    USUAL,
    first_loss_by_outputs,
    gain,
    guesses,
    has_wild_weights,
    of_usual_weights,
    scheme,
    stays_high,
)
from ..detectors.signs.wording import above, finding
from ..detectors.starting.shortcuts import multiplied_shortcuts
from ..detectors.starting.tables import large_tables
from ..history.history import History
from ..records.runs import Fix, RunFinding
from . import diagnosis

THRESHOLDS = {
    "ratio": Threshold(
        50.0, "rms of a gradient over rms of its weights: healthy layers stay below about 1"
    ),
    "first_loss": Threshold(
        20.0,
        "loss before the first update by that of guessing, ln(classes), where the loss "
        "suffers later: sound weights start within about 15 times of it",
    ),
    "felt": Threshold(0.1, "update by weight of the first steps, where the loss tells nothing yet"),
    "outputs": Threshold(100.0, "spread of the first outputs: sound weights make about one"),
    "weights": Threshold(4.0, "median of first weights by kaiming's, where the loss suffers"),
    "one_layer": Threshold(10.0, "first weights of one layer by kaiming's, the same"),
    "table": Threshold(6.0, "first numbers of embeddings: frameworks spread them by one"),
    "shortcut": Threshold(
        1.5, "first gradient of a block by that of the next, alike one: sums keep it at about 1"
    ),
    "targets": Threshold(
        100.0,
        "first loss of a regression by the square of its outputs and one, "
        "where it stands still: targets lie far beyond what comes out",
    ),
    "growth": Threshold(
        30.0, "global gradient norm over its own median before: a rise that batches do not make"
    ),
    "points": Threshold(3, "points for which it must last, unless the loss breaks before"),
    "recurrent_gain": Threshold(
        1.25, "|W_hh|/sqrt(n) of a plain recurrent layer: above 1 its gradients grow with time"
    ),
}

_ADVICE = (
    "initialise with kaiming (ReLU) or xavier (tanh)",
    "scale inputs and targets to about zero mean and unit spread",
    "clip gradients to a norm near that of a healthy step",
    "put normalisation between the layers",
)


@diagnosis(needs=("grad_l2", "weight_l2"), window=3, thresholds=THRESHOLDS, absolute=True)
def exploding(history: History, policy: Policy) -> Iterator[RunFinding]:
    """Find gradients far larger than their weights, or than they were, where the loss suffers."""
    limit = Limits("exploding", policy, THRESHOLDS)
    seen = sight(history)
    start = multiplied_shortcuts(seen, limit) or _outsized(seen, limit)
    found = start or _grown(seen, limit)
    yield from found or large_tables(seen, limit)


def _outsized(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find gradients, or a loss, far too large before the first update."""
    ratios, typical = seen.layers.gradient, seen.layers.typical_gradient
    told = broke(seen.loss) or rose(seen.loss, 1.5)
    if ratios is None or typical is None or (seen.points < limit["points"] and not told):
        return []
    # The first point alone: what comes after the first update may be the update's doing.
    size, guess = float(typical[0]), seen.loss.first_by_chance
    scales = initial_scales(seen.layers)
    wild = has_wild_weights(scales, limit["weights"], limit["one_layer"])
    beyond = first_loss_by_outputs(seen) >= limit["targets"]
    if beyond:
        told = told or stuck(seen.loss, LONG)
    far = guess is not None and guess >= limit["first_loss"]
    if wild:
        told = told or crawls(seen.loss, LASTING) or stays_high(seen, LASTING)
    if far and seen.loss.is_of_outputs:
        told = told or guesses(seen.loss, SHORT) or rests(seen.loss, LASTING)
    large = size >= limit["ratio"] and (told is not None or _is_felt(seen, limit))
    if not large and not (told and (far or wild)):
        return []
    since = int(seen.steps[0])
    return finding(
        "exploding",
        "critical" if told and told.kind != "crawls" else "warning",
        f"before the first update the gradients are {size:.3g} times as large as the weights"
        + (f", and these {float(np.nanmedian(scales)):.3g} times kaiming's" if wild else "")
        + ("" if guess is None else f", the loss {guess:.3g} times that of guessing")
        + (f"; {told.said}" if told else ""),
        {
            "gradient_by_weight": size,
            "ratio_threshold": limit["ratio"],
            "first_loss_by_guessing": guess,
            "first_loss_threshold": limit["first_loss"],
            "weights_by_kaiming": float(np.median(scales)) if len(scales) else None,
        },
        since=since,
        layers=seen.layers.named(_worst(scales, ratios[0])),
        cause="the loss is the sum over a batch, not its mean: steps grow with the batch"
        if is_summed(seen)
        else "the forward pass multiplies its signal layer by layer, or the targets or "
        "inputs are large: too large initial weights, or data that is not scaled",
        advice=["average the loss over the batch (reduction='mean')"]
        if is_summed(seen)
        else _ADVICE,
        signs=[
            above(size, limit["ratio"])
            if large
            else above(guess or 0.0, limit["first_loss"])
            if far
            else above(float(np.nanmedian(scales)), limit["weights"] / 2)
        ],
        fix=_fix_at_start(seen, limit, scales),
    )


def _is_felt(seen: Sight, limit: Limits) -> bool:
    """Do large gradients make large steps? Adam divides them by their size, clipping cuts them.

    A loss in other units, a thousand times as large, does Adam no harm. Weights that start too
    large do, whatever the optimiser, and so does all else that makes outputs large.
    """
    if (seen.loss.spread or 0.0) >= limit["outputs"] and not _is_passed_on(seen):
        return True
    updates, scales = seen.layers.typical_update, initial_scales(seen.layers)
    if len(scales) and float(np.nanmedian(scales)) > LARGE:
        return True
    return updates is not None and bool(np.nan_to_num(updates[:3]).max() >= limit["felt"])


def _is_passed_on(seen: Sight) -> bool:
    """Are large outputs those of large inputs, and do first steps bring the loss down at once?"""
    whole, values = gain(seen), seen.loss.values
    falls = len(values) > 1 and values[1 : 1 + FEW].max() < MOST * values[0]
    return bool(falls and whole is not None and whole < USUAL)


def _worst(scales: Any, ratios: Any) -> Any:
    """Order layers by how far their weights are too large, or where none is, by gradient."""
    sizes = np.nan_to_num(ratios, posinf=1e30)
    if len(scales) and np.nanmax(scales) > LARGE * np.nanmedian(scales):
        sizes = np.nan_to_num(scales)
    return np.argsort(-sizes, kind="stable")[:10]


def _fix_at_start(seen: Sight, limit: Limits, scales: Any) -> Fix:
    memory = wrong_memory(seen.history, lambda gain: gain > limit["recurrent_gain"])
    if memory is not None:
        return memory.fix
    given: Any = seen.history.fact("input")
    if isinstance(given, dict) and (given.get("features_std_max") or 0) > 10:
        return Fix("scale_inputs")
    if is_summed(seen):
        return Fix("scale_lr", {"factor": float(f"{1 / (seen.batch or 1):.2g}")})
    fix = of_usual_weights(seen) if len(scales) and np.nanmax(scales) < LARGE else None
    return fix or Fix("reinitialise", {"scheme": scheme(seen), "layers": []})


def _grown(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find a gradient norm that left its own past behind, where the loss suffers too."""
    norms = seen.history.course.global_norm()
    if norms is None or len(norms) < 8:
        return []
    # The best level is asked over the first half too: a norm may have been huge from the start.
    finite = np.isfinite(norms)
    values, steps = norms[finite], seen.steps[finite]
    if len(values) < 8:
        return []
    usual = float(np.median(values[: max(len(values) // 4, 5)]))
    width = int(limit["points"])
    lasting = np.lib.stride_tricks.sliding_window_view(values, width).min(axis=1)
    over = np.flatnonzero(lasting > limit["growth"] * usual) if usual > 0 else np.zeros(0, int)
    told = _harm_after(seen, steps, over)
    if not len(over):
        return []
    if told is None:
        return _still_felt_by_none(seen, limit, steps, lasting, usual)
    at = int(over[0])
    growth = float(lasting.max()) / usual
    return finding(
        "exploding",
        "critical",
        f"the gradient norm grew {growth:.3g}-fold since step {int(steps[at])}; {told.said}",
        {
            "growth": growth,
            "growth_threshold": limit["growth"],
            "usual_norm": usual,
            "highest_norm": float(values.max()),
            "harm": told.said,
        },
        since=int(steps[at]),
        layers=seen.layers.named(_fastest(seen, at)),
        cause="updates made the gradients larger, which made the updates larger",
        advice=[
            "clip gradients to the norm of the steps before",
            "lower the learning rate",
            "warm the learning rate up",
        ],
        signs=[above(growth, limit["growth"])],
        fix=hold(seen) or Fix("clip_gradients", {"max_norm": usual}),
    )


def _still_felt_by_none(
    seen: Sight, limit: Limits, steps: Any, lasting: Any, usual: float
) -> list[RunFinding]:
    """Warn of norms that are up there to the end, far beyond weights, where no loss suffers yet.

    Adam divides gradients by their size, so that the loss may go on falling for a while. Gradients
    that wake up from next to nothing grow as much, and stay small beside their weights.
    """
    growth = lasting / usual
    low = np.flatnonzero(growth <= limit["growth"])
    ratios, at = seen.layers.typical_gradient, int(low[-1]) + 1 if len(low) else 0
    if at >= len(growth) or ratios is None or harm(seen.loss) is not None:
        return []
    size = float(np.fmin.reduce(ratios[-int(limit["points"]) :]))
    if not size >= limit["ratio"]:
        return []
    times = float(growth[-1])
    return finding(
        "exploding",
        "warning",
        f"the gradient norm grew {times:.3g}-fold since step {int(steps[at])} and stays there, "
        f"{size:.3g} times as large as the weights; the loss has not suffered yet",
        {
            "growth": times,
            "growth_threshold": limit["growth"],
            "gradient_by_weight": size,
            "ratio_threshold": limit["ratio"],
        },
        since=int(steps[at]),
        layers=seen.layers.named(_fastest(seen, at)),
        cause="updates made the gradients larger; an optimiser that divides them by their size "
        "hides it from the loss for a while",
        advice=["clip gradients to the norm of the steps before", "lower the learning rate"],
        signs=[above(times, limit["growth"]), above(size, limit["ratio"])],
        fix=hold(seen) or Fix("clip_gradients", {"max_norm": usual}),
    )


def _harm_after(seen: Sight, steps: Any, over: Any) -> Harm | None:
    if not len(over):
        return None
    # Norms shrink as a run gets done: beside late ones those of its first steps seem to have grown.
    told = broke(seen.loss) or lost(seen.loss, 1.5)
    return told if told and told.since >= int(steps[over[0]]) - 20 else None


def _fastest(seen: Sight, at: int) -> Any:
    """Order the matrices by how much their gradient grew, the fastest first."""
    ratios = seen.layers.gradient
    if ratios is None:
        return []
    before = np.nanmedian(np.where(np.isfinite(ratios[: at + 1]), ratios[: at + 1], 0.0), axis=0)
    after = np.nanmax(np.where(np.isfinite(ratios[at:]), ratios[at:], 0.0), axis=0)
    return np.argsort(-after / np.maximum(before, 1e-30), kind="stable")[:10]
