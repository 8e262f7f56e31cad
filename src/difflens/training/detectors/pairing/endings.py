"""Scores that something at the end of the model keeps within bounds, before the loss gets them."""

from __future__ import annotations

from math import exp, inf, log1p
from typing import Any

from ...records.runs import Fix, RunFinding
from ..signs.harms import rests
from ..signs.limits import Limits
from ..signs.losses import Losses
from ..signs.sight import Sight
from ..signs.wording import above, finding

# Between which two numbers a non-linearity keeps what it gives.
ENDS = {
    "Sigmoid": (0.0, 1.0),
    "Hardsigmoid": (0.0, 1.0),
    "Tanh": (-1.0, 1.0),
    "Hardtanh": (-1.0, 1.0),
    "Softsign": (-1.0, 1.0),
    "ReLU6": (0.0, 6.0),
    "ReLU": (0.0, inf),
}
LOW = 0.1  # of the start: where some classes are lost, the rest can be learned well
_TINY = 1e-4  # of the weights
# What has no weights and leaves scores as large as they are.
_PASSES = tuple(
    """
    pool flatten dropout identity upsample shuffle pad fold softmax
""".split()
)


def squashed(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find scores that are kept within bounds before the cross entropy gets them.

    With outputs between a and b it cannot fall below ln(1 + (classes - 1) e^-(b - a)). Behind a
    ReLU a score that is below zero gets no gradient, so that some classes are never learned.
    """
    final, loss = str(seen.history.fact("final_module") or ""), seen.loss
    # Of what is not known by its name only the loss tells that it bounds anything.
    least = int((1 if final in ENDS else 2) * limit["squashed_points"])
    reach = _reach(seen, final) if is_entropy(loss) else None
    if reach is None or hardly_steps(seen):
        return []
    floor = log1p(round(exp(loss.chance or 0.0) - 1) * exp(-reach))
    told = rests(loss, least, LOW)
    if told is None or float(loss.values.min()) < floor - 1e-3:
        return []
    return finding(
        "loss-pairing",
        "critical" if loss.n >= 2 * least else "warning",
        f"the scores pass through {final} before the loss, and {told.said}",
        {
            "final_module": final,
            "lowest_loss": float(loss.values.min()),
            "floor": floor,
            "loss_fall": loss.fall,
            "points": loss.n,
        },
        since=int(loss.steps[0]),
        cause=f"cross entropy wants scores of any size and sign; {final} takes that from them",
        advice=[
            f"take {final} off the end of the model, and give the loss what is before it",
            "where it is meant (cosines), divide what it gives by a temperature of 0.1",
        ],
        signs=[above(loss.now, LOW * loss.start)],
        layers=seen.layers.last,
        fix=Fix("remove_softmax"),
    )


def of_one(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find a softmax over a single score: that is one, whatever the score, and so is its output."""
    output: Any = seen.history.fact("output")
    if seen.history.fact("final_module") != "Softmax" or not isinstance(output, dict):
        return []
    alone = (output.get("shape") or [0])[-1] == 1
    if not alone or (output.get("min"), output.get("max")) != (1.0, 1.0):
        return []
    if seen.loss.n < limit["points"]:
        return []
    return finding(
        "loss-pairing",
        "critical",
        "the output is a softmax of one score, which is 1 for every input",
        {"final_module": "Softmax", "outputs": 1, "points": seen.loss.n},
        since=int(seen.loss.steps[0]),
        cause="a softmax shares one among all scores: of one score it leaves nothing to learn",
        advice=[
            "take the softmax off the end of the model",
            "for two classes give the loss two scores, or one and a sigmoid",
        ],
        signs=[1.0],
        layers=seen.layers.last,
        fix=Fix("remove_softmax"),
    )


def _reach(seen: Sight, final: str) -> float | None:
    """Return how far two scores of one example can lie apart behind what is last; None if any.

    What has no weights, is no known non-linearity and gives nothing beyond one makes vectors of
    unit length, as cosines are: of these two scores lie sqrt(classes/(classes - 1)) apart, where
    all the others are equal.
    """
    if final in ENDS:
        low, high = ENDS[final]
        return high - low if is_last(seen, final) else None
    classes = round(exp(seen.loss.chance or 0.0))
    known = {layer.kind for layer in seen.history.info.layers}
    passes = any(each in final.lower() for each in _PASSES)
    if not final or final in known or passes or classes < 2 or not _within_one(seen):
        return None
    return float((classes / (classes - 1)) ** 0.5)


def _within_one(seen: Sight) -> bool:
    """Are the first outputs of a size at most one, on both sides of zero?"""
    output: Any = seen.history.fact("output")
    ends = [each for key in ("min", "max") if isinstance(each := output.get(key), (int, float))]
    return len(ends) == 2 and -1 <= ends[0] < 0 < ends[1] <= 1


def is_last(seen: Sight, final: str) -> bool:
    """Do the first outputs keep to the bounds? What is called last may not be the last to work."""
    output: Any = seen.history.fact("output")
    ends = [output.get(key) for key in ("min", "max")] if isinstance(output, dict) else []
    low, high = ENDS[final]
    return all(low <= each <= high for each in ends if isinstance(each, (int, float)))


def hardly_steps(seen: Sight) -> bool:
    """Are the steps so small that any loss would rest?"""
    return seen.layers.usual_update < _TINY


def is_entropy(loss: Losses) -> bool:
    """Does it begin as a cross entropy must: no farther from guessing than outputs lie apart?"""
    if loss.chance is None or loss.spread is None or not loss.n:
        return False
    first = float(loss.values[0])
    return 0.8 * loss.chance <= first <= loss.chance + loss.spread
