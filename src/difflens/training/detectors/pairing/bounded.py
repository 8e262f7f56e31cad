"""The outputs of a regression that something at the end keeps within bounds its targets leave."""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

import numpy as np

from ...records.runs import Fix, RunFinding
from ..signs.degrees import CLEARLY, MOST, PART, RECENT, SOME, TWICE
from ..signs.harms import Harm, rests, rose
from ..signs.limits import Limits
from ..signs.losses import output_shape
from ..signs.outputs import explained
from ..signs.sight import Sight
from ..signs.wording import above, finding
from .endings import ENDS, LOW, hardly_steps, is_entropy, is_last


class Bounds(NamedTuple):
    """What is last, and between which two numbers it keeps what it gives."""

    final: str
    low: float
    high: float
    shares: bool  # of one, among all outputs of an example

    @property
    def widest(self) -> float:
        """The largest deviation that numbers between the two can have: half of each at an end."""
        return (self.high - self.low) / 2


def bounded(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find the outputs of a regression kept within bounds that its targets leave.

    The loss rests with most of the targets unexplained, though the steps go on. Outputs that may
    be as their targets are (pixels behind a sigmoid) explain the most of them by then.
    """
    loss, bounds = seen.loss, _bounds(seen)
    if bounds is None or is_entropy(loss) or hardly_steps(seen) or rose(loss, CLEARLY) is not None:
        return []
    told = _rests(seen, bounds, limit)
    part, most = explained(seen, bounds.widest), limit["explained"]
    # Outputs that a ReLU cut off for good were to go below zero, however well the rest do.
    most = MOST if bounds.high == inf and _cut_off(seen) else most
    if told is None or part is None or part > most:
        return []
    return finding(
        "loss-pairing",
        "warning",
        f"the outputs pass through {bounds.final}, which keeps them between {bounds.low:g} and "
        f"{bounds.high:g}, they explain {part:.0%} of the targets, and {told.said}",
        {
            "final_module": bounds.final,
            "explained": part,
            "explained_threshold": most,
            "loss_fall": loss.fall,
            "points": loss.n,
        },
        since=int(loss.steps[0]),
        cause="targets that lie beyond those bounds cannot be reached, however long it trains",
        advice=[
            f"take {bounds.final} off the end of the model",
            "or scale the targets into its bounds",
        ],
        signs=[above(1 - part, 1 - most)],
        layers=seen.layers.last,
        fix=Fix("remove_softmax"),
    )


def _bounds(seen: Sight) -> Bounds | None:
    final = str(seen.history.fact("final_module") or "")
    output: Any = seen.history.fact("output")
    if final in ENDS:
        return Bounds(final, *ENDS[final], shares=False) if is_last(seen, final) else None
    if final == "Softmax" and isinstance(output, dict) and output.get("rows_sum_to_one"):
        return Bounds(final, 0.0, 1.0, shares=True)
    return None


def _cut_off(seen: Sight) -> bool:
    """Are some of several outputs zero for every example of a batch?"""
    dead = seen.layers.field("act_dead")
    late = np.zeros(0) if dead is None else dead[-RECENT:, -1]
    late = late[np.isfinite(late)]
    return len(late) > 0 and SOME < float(np.median(late)) < 1


def _rests(seen: Sight, bounds: Bounds, limit: Limits) -> Harm | None:
    """Does the loss rest? Behind a softmax also: it fell by little, and is no error of shares."""
    loss, told = seen.loss, rests(seen.loss, int(limit["bounded_points"]), LOW)
    if told is None or not bounds.shares:
        return told
    outputs = (output_shape(seen.history) or (1,))[-1]
    return told if loss.now > TWICE / outputs and loss.fall < PART else None
