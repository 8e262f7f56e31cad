"""Sequences that are forgotten before they are answered: a memory reads on past what counts.

A recurrent network may rest at guessing for a while before it learns. Where its memory gets next
to none of the gradient that the output gets, it rests for another reason: between what counts and
the answer lie so many steps that nothing comes back. Padding that is read like all the rest is
the usual cause.
"""

from __future__ import annotations

import numpy as np

from ...records.runs import Fix, RunFinding
from ..signs.degrees import SEVERAL
from ..signs.held_back import held_back_loss
from ..signs.limits import Limits
from ..signs.recurrence import RECURRENT
from ..signs.sight import Sight
from ..signs.silence import starved
from ..signs.wording import above, below, finding

_NEAR = (0.97, 1.05)  # of guessing


def forgotten(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find a recurrent network at guessing whose memory hardly gets a gradient."""
    part, loss = _reaches_memory(seen), seen.loss
    if part is None or part > limit["memory_gradient"] or loss.n < limit["far_points"]:
        return []
    if not _guesses(seen) or seen.is_warming_up or not _steps(seen, limit):
        return []
    if starved(seen):
        return []  # what stands before the memory is dead, and told there
    return finding(
        "data",
        "warning",
        f"the loss stays at {loss.now:.4g}, that of guessing, held-back data too, and the "
        f"memory gets {part:.1g} of the gradient that the output gets",
        {
            "memory_by_output": part,
            "memory_gradient_threshold": limit["memory_gradient"],
            "points": loss.n,
            "chance": loss.chance,
        },
        since=int(loss.steps[0]),
        layers=_memory(seen),
        cause="what counts lies too far back: padding behind each sequence is read as if it "
        "were part of it, or sequences are longer than such a memory lasts",
        advice=[
            "follow one example: which places are read, and from which is it answered?",
            "mask or pack the padding, or answer from the last place that is full",
            "shorten the sequences, or attend to all places",
        ],
        signs=[below(part, limit["memory_gradient"]), above(loss.n, limit["far_points"] / 2)],
        fix=Fix("follow_example"),
    )


def _reaches_memory(seen: Sight) -> float | None:
    """Return the gradient of the memory's faintest matrix by that of the last layer."""
    gradients = seen.layers.recent(seen.layers.gradient)
    if gradients is None or not len(gradients):
        return None
    kinds = [seen.layers.of(i).kind for i in range(len(gradients))]
    memory = [g for g, kind in zip(gradients, kinds, strict=True) if kind in RECURRENT]
    if not memory or kinds[-1] in RECURRENT or not 0 < gradients[-1] < np.inf:
        return None
    return float(min(memory) / gradients[-1])


def _memory(seen: Sight) -> list[str]:
    """Name the matrices of the memory, the faintest first."""
    gradients = seen.layers.recent(seen.layers.gradient)
    if gradients is None:
        return []
    faintest = np.argsort(np.nan_to_num(gradients), kind="stable")
    return seen.layers.named([int(i) for i in faintest if seen.layers.of(i).kind in RECURRENT])


def _guesses(seen: Sight) -> bool:
    """Is it at guessing now, and was held-back data at every look?"""
    loss, held_back = seen.loss, held_back_loss(seen.history)
    if loss.chance is None or held_back is None or held_back.n < SEVERAL:
        return False
    low, high = (each * loss.chance for each in _NEAR)
    values = held_back.values
    return low <= loss.now <= high and bool((values >= low).all() and (values <= high).all())


def _steps(seen: Sight, limit: Limits) -> bool:
    """Are its steps of a usual size?"""
    return limit["slowest"] <= seen.layers.usual_update <= limit["fastest"]
