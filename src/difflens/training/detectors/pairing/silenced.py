"""A part of the loss that silences a layer: what it says becomes the same for every example.

A term that pulls a code to a prior, or activations to zero, is at its best where the layer says
nothing. Where it outweighs the rest, the layer's outputs shrink by far more than its weights, and
what lies behind it goes on by biases and by noise: the outputs do not shrink.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...records.runs import Fix, RunFinding
from ..signs.degrees import FEW, HALF, LITTLE, PART, RECENT, TENFOLD
from ..signs.held_back import held_back_loss
from ..signs.limits import Limits
from ..signs.sight import Sight
from ..signs.wording import above, below, finding

_OUTWEIGHED, _EASE = (
    0.25,
    1.7,
)  # of the pull at most, where a term rules; then so much less is asked


class Silenced(NamedTuple):
    """Layers that fell silent, by how much, how far the outputs are above them, and who pulls."""

    layers: list[str]
    left: float
    below_outputs: float
    pull: float  # first gradient of the output layer by the strongest up to these


def silenced(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find layers whose outputs went to nothing while those of the network did not."""
    found = _silenced(seen, limit) if _stands(seen) else None
    if found is None:
        return []
    factor = PART * found.pull  # what a term may pull with that is to hold, not to rule
    return finding(
        "loss-pairing",
        "warning",
        f"what {found.layers[0]} gives shrank to {found.left:.2g} of what it was, its weights "
        f"did not, and the network's outputs are {found.below_outputs:.2g} times as large: "
        "they no longer hang on it",
        {
            "left": found.left,
            "silenced_threshold": limit["silenced"],
            "outputs_by_layer": found.below_outputs,
            "output_by_strongest_gradient": found.pull,
            "pull_threshold": limit["pull"],
        },
        since=int(seen.loss.steps[0]),
        cause="a term of the loss that is least where this layer says nothing (a prior, a "
        "penalty on activations) outweighs the one that needs it",
        advice=[
            f"weigh that term by {factor:.2g} of what it has, or let it grow from zero",
            "print each term of the loss by itself",
            "allow each code some information for nothing (free bits)",
        ],
        signs=[
            below(found.left, limit["silenced"]),
            above(found.below_outputs, limit["silenced_gap"] / 2),
        ],
        layers=found.layers,
        fix=Fix("scale_penalty", {"factor": factor}),
    )


def _stands(seen: Sight) -> bool:
    """Has the held-back loss stood over the latter half, and did the loss begin as usual?"""
    held_back, loss = held_back_loss(seen.history), seen.loss
    if held_back is None or held_back.n < FEW or loss.is_learned or loss.start <= 0:
        return False
    if loss.start > TENFOLD * (loss.chance or loss.start) or loss.now > loss.start:
        return False
    early, late = held_back.late_levels
    return early > 0 and early - late < LITTLE * early


def _silenced(seen: Sight, limit: Limits) -> Silenced | None:
    spread, weights, gradients = (
        seen.history.course.field(name) for name in ("act_std", "weight_l2", "grad_l2")
    )
    if spread is None or weights is None or gradients is None:
        return None
    known = [i for i in range(spread.shape[1]) if np.isfinite(spread[:, i]).sum() > RECENT]
    if len(known) < 2:
        return None
    first = np.nan_to_num(gradients[0], posinf=0.0)
    out, kept = spread[:, known[-1]], _left(spread[:, known[-1]], weights[:, known[-1]])
    found = []
    for i in known[:-1]:
        pull = float(first[known[-1]]) / max(float(first[: i + 1].max()), 1e-30)
        ease = _EASE if pull < _OUTWEIGHED * limit["pull"] else 1.0
        left, gap = _left(spread[:, i], weights[:, i]), _late(out) / _late(spread[:, i])
        # Sizes of layers differ by nature; where a term rules, outputs that stayed say enough.
        gap = max(gap, kept / left) if ease > 1 else gap
        few = seen.loss.n * ease < limit["silenced_points"]
        if few or not left < ease * limit["silenced"] or not gap * ease > limit["silenced_gap"]:
            continue
        found.append((left, gap, i, pull))
    if not found or not all(gradients[-1, i] > 0 for _, _, i, _ in found):
        return None  # no gradient: these are dead
    left, gap, _, pull = min(found)
    names = [seen.history.info.layers[i].name for _, _, i, _ in sorted(found)]
    return Silenced(names, left, gap, pull) if 0 < pull < limit["pull"] else None


def _left(spread: NDArray[Any], weights: NDArray[Any]) -> float:
    """Return what is left of a layer's spread, by its weights; 1 where these changed by much."""
    at = np.flatnonzero(np.isfinite(spread))[:FEW]
    kept = _late(weights) / max(float(np.median(weights[at])), 1e-30)
    if not HALF < kept < 1 / HALF:  # a layer with less was made small itself
        return 1.0
    return _late(spread) / max(float(np.median(spread[at])) * kept, 1e-30)


def _late(values: NDArray[Any]) -> float:
    known = values[np.isfinite(values)][-RECENT:]
    return max(float(np.median(known)), 1e-30) if len(known) else 1e-30
