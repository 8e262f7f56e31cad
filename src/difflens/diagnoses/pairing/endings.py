"""Scores that something at the end of the model keeps within bounds, before the loss gets them."""

from __future__ import annotations

from math import exp, inf, log, log1p
from typing import Any

import numpy as np

from ...runs import Fix, RunFinding
from ..signs.harms import Harm, crawls, rests
from ..signs.limits import Limits
from ..signs.losses import Losses
from ..signs.sight import Sight
from ..signs.wording import above, below, finding

# Between which two numbers a non-linearity keeps what it gives.
ENDS = {"Sigmoid": (0.0, 1.0), "Hardsigmoid": (0.0, 1.0), "Tanh": (-1.0, 1.0),
         "Hardtanh": (-1.0, 1.0), "Softsign": (-1.0, 1.0), "ReLU6": (0.0, 6.0),
         "ReLU": (0.0, inf)}  # fmt: skip
LOW = 0.1  # of the start: where some classes are lost, the rest can be learned well
_HIGH_FLOOR = 0.5  # of guessing: bounds that leave so little to win do harm before it is won
_BINARY = 1.3  # times ln 2, what each of several yes-or-no answers costs at the start
_TINY = 1e-4  # of the weights
_FIRST = 3  # points of a gradient, at the start and of late
# What has no weights and leaves scores as large as they are.
_PASSES = ("pool", "flatten", "dropout", "identity", "upsample", "shuffle", "pad", "fold",
           "softmax")  # fmt: skip


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
    if told is None and final in ENDS:
        told = _held_up(loss, floor, reach, limit)
    if told is None or float(loss.values.min()) < floor - 1e-3:
        return []
    return [
        finding(
            "loss-pairing",
            "critical" if loss.n >= 2 * least else "warning",
            f"the scores pass through {final} before the loss, and {told.said}",
            {"final_module": final, "lowest_loss": float(loss.values.min()), "floor": floor,
             "loss_fall": loss.fall, "points": loss.n},
            since=int(loss.steps[0]),
            cause=f"cross entropy wants scores of any size and sign; {final} takes that from them",
            advice=[f"take {final} off the end of the model, and give the loss what is before it",
                    "where it is meant (cosines), divide what it gives by a temperature of 0.1"],
            signs=[above(loss.now, LOW * loss.start)],
            layers=seen.layers.last,
            fix=Fix("remove_softmax"),
        )
    ]  # fmt: skip


def _held_up(loss: Losses, floor: float, reach: float, limit: Limits) -> Harm | None:
    """Is a loss that falls still high, where what is last must hold it up?

    It may fall for long towards a floor that it cannot pass: where the floor is high by itself,
    and no binary loss begins like that, there is nothing to wait for. Behind a ReLU there is no
    floor, but it falls by the classes that are left.
    """
    guessing = loss.chance or 0.0
    if floor > _HIGH_FLOOR * guessing:
        sure = guessing > _BINARY * log(2)
        return crawls(loss, int(limit["floor_points"] if sure else 2 * limit["squashed_points"]))
    return crawls(loss, int(2 * limit["squashed_points"])) if reach == inf else None


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
    return [
        finding(
            "loss-pairing",
            "critical",
            "the output is a softmax of one score, which is 1 for every input",
            {"final_module": "Softmax", "outputs": 1, "points": seen.loss.n},
            since=int(seen.loss.steps[0]),
            cause="a softmax shares one among all scores: of one score it leaves nothing to learn",
            advice=["take the softmax off the end of the model",
                    "for two classes give the loss two scores, or one and a sigmoid"],
            signs=[1.0],
            layers=seen.layers.last,
            fix=Fix("remove_softmax"),
        )
    ]  # fmt: skip


def sunk(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find a sigmoid before a loss that has its own, once every output has sunk to nothing.

    A probability of nothing, taken for a logit, costs ln 2, whatever the label: where most labels
    are no, that is the best there is, and the sigmoid lets no gradient back from there. A sigmoid
    that stands alone costs ln 2 where every output is a half: then answers are a half off, and the
    last layer is pulled as hard as ever.
    """
    final, loss = str(seen.history.fact("final_module") or ""), seen.loss
    if final != "Sigmoid" or loss.n < limit["sunk_points"]:
        return []
    late = loss.values[-int(limit["sunk_points"] / 2) :]
    off = float(np.abs(late / log(2) - 1).max())
    pull = _late_pull(seen)
    if off > limit["sunk_off"] or pull is None or pull > limit["sunk_pull"]:
        return []
    return [
        finding(
            "loss-pairing",
            "warning",
            f"the outputs pass through Sigmoid, the loss stands at {loss.now:.4f}, that of logits "
            f"of zero, and {pull:.1g} is left of the gradient of the last layer",
            {"final_module": final, "off_ln_2": off, "off_threshold": limit["sunk_off"],
             "gradient_left": pull, "pull_threshold": limit["sunk_pull"], "points": loss.n},
            since=int(loss.steps[0]),
            cause="a loss that applies the sigmoid itself gets what has been through one already, "
            "and all outputs have sunk to zero, where a sigmoid passes no gradient",
            advice=["take the sigmoid off the end of the model, and give the loss logits"],
            signs=[below(pull, limit["sunk_pull"]), above(loss.n, limit["sunk_points"] / 2)],
            layers=seen.layers.last,
            fix=Fix("remove_softmax"),
        )
    ]  # fmt: skip


def _late_pull(seen: Sight) -> float | None:
    """Give what is left of the first gradient of the last layer, of its bias too if it has one.

    A bias is asked as well: units that died before it leave its own gradient as it was.
    """
    found, layers = seen.history.course.field("grad_l2"), seen.history.course.layers
    if found is None or not seen.layers.matrices:
        return None
    last = layers[seen.layers.matrices[-1]].depth
    at = [i for i, each in enumerate(layers) if each.depth == last] if last is not None else []
    at = at or [seen.layers.matrices[-1]]
    chosen = found[:, at].astype(np.float64)
    first, late = chosen[:_FIRST].max(axis=0), np.median(chosen[-_FIRST:], axis=0)
    if not np.isfinite(late).all() or not (first > 0).all():
        return None
    return float((late / first).max())


def _reach(seen: Sight, final: str) -> float | None:
    """Give how far two scores of one example can lie apart behind what is last; None if any.

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
    typical = seen.layers.typical_update
    known = np.zeros(0) if typical is None else typical[np.isfinite(typical)]
    return len(known) > 0 and float(np.median(known)) < _TINY


def is_entropy(loss: Losses) -> bool:
    """Does it begin as a cross entropy must: no farther from guessing than outputs lie apart?"""
    if loss.chance is None or loss.spread is None or not loss.n:
        return False
    first = float(loss.values[0])
    return 0.8 * loss.chance <= first <= loss.chance + loss.spread
