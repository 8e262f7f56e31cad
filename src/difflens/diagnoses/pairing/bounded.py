"""The outputs of a regression that something at the end keeps within bounds its targets leave."""

from __future__ import annotations

from math import inf, log
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...runs import Fix, RunFinding
from ..signs.harms import Harm, rests, rose
from ..signs.held_back import held_back_loss
from ..signs.losses import output_shape
from ..signs.outputs import explained
from ..signs.wording import above, finding
from .endings import ENDS, LOW, hardly_steps, is_entropy, is_last

if TYPE_CHECKING:
    from ..signs.limits import Limits
    from ..signs.sight import Sight

_LEAST = 0.3  # share by which a loss behind a softmax fell: less, and it won nothing
_OVER = 1.1  # times what targets within bounds can cost
_WORST = 2.0  # the most that two sets of shares cost, summed over them and squared
_MUTE, _DEAD = 0.8, 0.1  # share explained at most, where so many outputs are zero for a batch
_RECENT = 20  # points
_ROSE = 1.5  # times the start: no bounds make a loss rise
_FAR = 16.0  # times the square of half of the bounds: targets that lie four halves off
_ALIKE = 2.0  # times: both losses are means


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
    if bounds is None or is_entropy(loss) or hardly_steps(seen) or rose(loss, _ROSE) is not None:
        return []
    told = _rests(seen, bounds, limit) or _beyond(seen, bounds, limit)
    part, most = explained(seen, bounds.widest), limit["explained"]
    # Outputs that a ReLU cut off for good were to go below zero, however well the rest do.
    most = _MUTE if bounds.high == inf and _cut_off(seen) else most
    if told is None or part is None or part > most:
        return []
    return [
        finding(
            "loss-pairing",
            "warning",
            f"the outputs pass through {bounds.final}, which keeps them between {bounds.low:g} and "
            f"{bounds.high:g}, they explain {part:.0%} of the targets, and {told.said}",
            {"final_module": bounds.final, "explained": part,
             "explained_threshold": most, "loss_fall": loss.fall, "points": loss.n},
            since=int(loss.steps[0]),
            cause="targets that lie beyond those bounds cannot be reached, however long it trains",
            advice=[f"take {bounds.final} off the end of the model",
                    "or scale the targets into its bounds"],
            signs=[above(1 - part, 1 - most)],
            layers=seen.layers.last,
            fix=Fix("remove_softmax"),
        )
    ]  # fmt: skip


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
    late = np.zeros(0) if dead is None else dead[-_RECENT:, -1]
    late = late[np.isfinite(late)]
    return len(late) > 0 and _DEAD < float(np.median(late)) < 1


def _rests(seen: Sight, bounds: Bounds, limit: Limits) -> Harm | None:
    """Does the loss rest? Behind a softmax also: it fell by little, and is no error of shares."""
    loss, told = seen.loss, rests(seen.loss, int(limit["bounded_points"]), LOW)
    if told is None or not bounds.shares:
        return told
    outputs = (output_shape(seen.history) or (1,))[-1]
    return told if loss.now > _WORST / outputs and loss.fall < _LEAST else None


def _beyond(seen: Sight, bounds: Bounds, limit: Limits) -> Harm | None:
    """Is the loss higher than the middle of the bounds would cost, if targets lay within them?

    That is the square of half their distance, or ln 2 where it is a matter of yes and no. Asked
    of one output for each example, and of both losses: a sum is larger as well.
    """
    loss, held_back = seen.loss, held_back_loss(seen.history)
    if (output_shape(seen.history) or (0,))[-1] != 1 or loss.n < limit["beyond_points"]:
        return None
    if held_back is None or not held_back.n or loss.start > _FAR * bounds.widest**2:
        return None  # a sum, or another unit, as likely as targets so far off
    most, late = _OVER * max(bounds.widest**2, log(2)), float(held_back.values[-1])
    low = min(loss.now, float(np.mean(loss.values[-loss.width :])))
    if min(low, late) < most or not 1 / _ALIKE < late / low < _ALIKE:
        return None
    said = f"the loss is at {loss.now:.4g}, where targets within would cost {most / _OVER:.2g}"
    return Harm("rests", int(loss.steps[0]), loss.fall, said)
