"""Layers with a rate of their own that is far above that of all others: a group gone wrong."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...records.runs import Fix, RunFinding
from ..signs.degrees import HARDLY, LASTING, PART, SOME, TENFOLD
from ..signs.harms import Harm, rests, worsened
from ..signs.limits import Limits
from ..signs.rates import AIM, hold, lighter, momentum
from ..signs.sight import Sight
from ..signs.wording import above, finding
from .overshoot import swings


class Group(NamedTuple):
    """Columns of the layers that were thrown, the farthest first, and the part by which."""

    columns: list[int]
    size: float


def thrown(seen: Sight, torn: float) -> Group | None:
    """Return the layers whose first step tore them, while those of all others were a tenth of that.

    Asked where rates are known to differ: with one rate for all, weights that start small are as
    far from the rest. The first step is asked: what one layer is thrown to makes the gradients of
    all others large.
    """
    updates = seen.layers.update
    if seen.history.info.optimizer.get("several_rates") is not True or updates is None:
        return None
    columns = np.flatnonzero(seen.layers.trained)
    first = np.nan_to_num(updates[0, columns]) if len(updates) else np.zeros(0)
    size = float(first.max(initial=0.0))
    large = first >= SOME  # first steps that belong to the same group
    if size < torn or large.all() or float(first[~large].max()) > size / TENFOLD:
        return None
    order = np.argsort(-first, kind="stable")
    return Group([int(columns[i]) for i in order if large[i]], size)


def thrown_apart(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find a group of layers whose own rate tore them, where the loss does not recover.

    What steps killed or saturated stays so: whatever it looks like later (dead units, faint
    gradients, a loss that crawls), the rate of these layers was the cause.
    """
    group = thrown(seen, limit["torn"])
    told = None if group is None else _suffers(seen, limit)
    if group is None or told is None:
        return []
    names = seen.layers.named(group.columns)
    factor = _halfway(seen, group.size)
    return finding(
        "lr-high",
        "critical",
        f"the first step changed {names[0]} by {group.size:.2g} of its size, ten times as much "
        f"as other layers and more; {told.said}",
        {
            "update_by_weight": group.size,
            "update_threshold": limit["torn"],
            "layers_apart": len(names),
            "harm": told.said,
            "harm_step": told.since,
        },
        since=int(seen.steps[0]),
        layers=names,
        cause="a group of the optimiser has a learning rate far above that of all others",
        advice=[
            "give these layers the rate of all others",
            f"multiply the learning rate by about {factor:.1g} where they must differ",
        ],
        signs=[above(group.size, limit["torn"])],
        fix=hold(seen) or lighter(seen) or Fix("scale_lr", {"factor": factor}),
    )


def _suffers(seen: Sight, limit: Limits) -> Harm | None:
    """Is the loss stuck, at rest high up, swinging, or back where it was?"""
    loss = seen.loss
    told = swings(loss, limit) or worsened(loss)
    return told or rests(loss, LASTING)  # behind torn weights no saddle is waited for


def _halfway(seen: Sight, size: float) -> float:
    """Return a factor for all rates: no single one suits both, so the one halfway between them.

    Halfway is meant in decades: between the rate as it is, which suits the others, and the one that
    makes the first step of these layers, with its momentum, a sound one. A step that leaves nothing
    of the weights is as large as any.
    """
    sound = AIM * max(1 - momentum(seen), 0.01) / min(size, 1.0)
    return float(f"{np.clip(sound**0.5, HARDLY, PART):.2g}")
