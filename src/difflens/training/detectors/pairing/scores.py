"""Whether a loss without a floor is made of scores that nobody has normalised.

A cross entropy costs what guessing costs at the start, or more, so with its sign turned it begins
at minus that or below. Scores taken for logarithms of probabilities begin at about nothing. From
then on such a loss is an output with a minus, so it lies among the outputs; and it pulls each
output by how often its class is right, however far the outputs have gone. An error with its sign
turned grows with the square of the outputs, and pulls the harder the larger they are.
"""

from __future__ import annotations

from math import exp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..signs.degrees import CLEARLY, HUNDREDFOLD, NEARLY, PART, RECENT, SHORT, TWICE
from ..signs.sight import Sight


def are_scores(seen: Sight) -> bool:
    """Did it begin too near to zero for a negated cross entropy, and go on as outputs do?"""
    loss = seen.loss
    if loss.chance is None or not loss.n or loss.values[0] <= -NEARLY * loss.chance:
        return False
    return _is_output(seen) or _pulls_by_shares(seen) or _grows_as_outputs(seen)


def _is_output(seen: Sight) -> bool:
    """Has the loss been, all along, a number that the outputs of the right classes can be?

    One of k outputs lies at most sqrt(k - 1) deviations from the mean of all of them.
    """
    middle, spread = seen.layers.field("act_mean"), seen.layers.field("act_std")
    values = seen.history.course.scalar("loss")
    if middle is None or spread is None or values is None:
        return False
    with np.errstate(invalid="ignore", over="ignore"):
        off, reach = np.abs(-values - middle[:, -1]), spread[:, -1] * _classes(seen) ** 0.5
    known = np.isfinite(off) & np.isfinite(reach)
    if int(known.sum()) < SHORT or float((off <= reach)[known].mean()) < NEARLY:
        return False
    late = np.flatnonzero(known)[-RECENT:]
    return bool(np.median(middle[late, -1]) > -PART * np.median(values[late]) > 0)


def _pulls_by_shares(seen: Sight) -> bool:
    """Is the gradient of the last bias the shares of the classes in a batch, at every step?

    Shares that sum to one have a norm between 1/sqrt(classes) and one.
    """
    pull = _last_bias(seen)
    known = pull[np.isfinite(pull)] if pull is not None else np.zeros(0)
    if len(known) < SHORT:
        return False
    low, high = (float(each) for each in np.percentile(known, (5, 95)))
    return NEARLY * _classes(seen) ** -0.5 <= low and high <= min(1.0, TWICE * low)


def _last_bias(seen: Sight) -> NDArray[Any] | None:
    """Return the gradient of the bias that is added to the outputs, where there is one."""
    found, layers = seen.history.course.field("grad_l2"), seen.history.course.layers
    if found is None or not seen.layers.matrices:
        return None
    last, classes = layers[seen.layers.matrices[-1]], round(_classes(seen))
    at = [
        i
        for i, each in enumerate(layers)
        if tuple(each.shape) == (classes,) and each.depth == last.depth
    ]
    return found[:, at[0]].astype(np.float64) if len(at) == 1 else None


def _grows_as_outputs(seen: Sight) -> bool:
    """Has it, far from zero, grown with the outputs and not with their square?"""
    spread = seen.layers.field("act_std")
    if spread is None:
        return False
    known = spread[-RECENT:, -1]
    known = known[np.isfinite(known)]
    size = float(np.median(known)) if len(known) else 0.0
    return bool(size > HUNDREDFOLD and -seen.loss.now < size**CLEARLY)


def _classes(seen: Sight) -> float:
    return exp(seen.loss.chance or 0.0)
