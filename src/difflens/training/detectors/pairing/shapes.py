"""A column held against a row: a loss that broadcasts compares each answer with every target.

Its mean is var(outputs) + var(targets) + (mean output - mean target)^2: least where every output
is the mean of the targets, so outputs that differed become one number. From then on all examples
pull the same way, by how far the targets of the batch lie off that number. So the gradients of all
layers are one number times what is fixed, and pass through zero together. Where each answer has a
target of its own, be it a wrong one, a batch pulls in as many directions as it has examples, and
the size of their sum hardly changes from batch to batch.
"""

from __future__ import annotations

from math import isfinite
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...records.runs import Fix, RunFinding
from ..signs.degrees import (
    CLEARLY,
    FIVEFOLD,
    HALF,
    LONG,
    PART,
    RECENT,
    SEVERAL,
    SHORT,
    SOME,
    TENFOLD,
)
from ..signs.harms import rose
from ..signs.inputs import input_size
from ..signs.limits import Limits
from ..signs.losses import levels, output_shape
from ..signs.outputs import explained
from ..signs.rates import points_at_height
from ..signs.sight import Sight
from ..signs.wording import above, below, finding

SWING = 0.45  # of ln |g| from batch to batch: one direction makes 1.1, two 0.6, and many 0.2
_LAYERS = 2  # a single one gets what its inputs are on average, which may be nothing


class Swing(NamedTuple):
    """By how much the gradients of all layers swing together, and how alike they do."""

    size: float  # of ln |g| from batch to batch, of the middle layer, at least
    alike: float  # correlation of a layer with that one, at the middle


def every_target(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find outputs that became one number, with gradients that are all one number too."""
    loss = seen.loss
    if loss.n < limit["shapes_points"] or not _may_broadcast(seen) or not _has_taught(seen):
        return []
    if _has_explained(seen) or _was_thrown(seen) or rose(loss, 1.5) is not None:
        return []
    part, left, swing = explained(seen), _left(seen, limit), _swing(seen)
    if part is None or left is None or swing is None or part > limit["shapes_explained"]:
        return []
    if left > limit["shapes_left"]:
        return []
    least = max(limit["shapes_swing"], CLEARLY * _noise(np.log(loss.values[loss.n // 2 :])))
    if swing.alike < limit["shapes_alike"] or swing.size < least:
        return []
    return finding(
        "loss-pairing",
        "warning",
        f"the outputs became one number ({part:.1%} of the targets explained), and the "
        f"gradients of all layers go up and down together, by a factor of "
        f"{float(np.exp(swing.size)):.2g} from batch to batch",
        {
            "explained": part,
            "explained_threshold": limit["shapes_explained"],
            "outputs_left": left,
            "left_threshold": limit["shapes_left"],
            "swing": swing.size,
            "swing_threshold": limit["shapes_swing"],
            "alike": swing.alike,
            "alike_threshold": limit["shapes_alike"],
        },
        since=int(loss.steps[0]),
        cause="a column and a row broadcast in the loss, so that each answer is held against "
        "every target: the best answer to all of them is their mean",
        advice=[
            "check that outputs and targets have one shape before the loss",
            "look at some examples with their targets",
        ],
        signs=[
            above(swing.size, limit["shapes_swing"] / 2),
            below(part, limit["shapes_explained"]),
        ],
        fix=Fix("match_shapes"),
    )


def _has_taught(seen: Sight) -> bool:
    """Was the rate there for long enough? One that rises yet, or soon is gone, teaches nothing."""
    return not seen.is_warming_up and points_at_height(seen) >= LONG


def pull_apart(seen: Sight) -> bool:
    """Do the examples of a batch pull each its own way, as far as gradients tell?"""
    swing = _swing(seen) if _may_broadcast(seen) else None
    return swing is not None and swing.size < SWING


def _may_broadcast(seen: Sight) -> bool:
    """Is it one number for each of many examples, of inputs that differ by their own size?"""
    shape, size = output_shape(seen.history), input_size(seen)
    several = len(shape) > 1 and shape[0] >= RECENT and int(seen.layers.trained.sum()) >= _LAYERS
    usual = size is None or size < TENFOLD
    return several and shape[-1] == 1 and usual and bool((seen.loss.values > 0).all())


def _has_explained(seen: Sight) -> bool:
    """Did outputs fit once? Then each was held against its own target, and those have changed."""
    spread, values = seen.layers.field("act_std"), seen.history.course.scalar("loss")
    if spread is None or values is None:
        return False
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        variance = spread[:, -1].astype(np.float64) ** 2
        shares = variance / (variance + values)
    course = levels(shares[np.isfinite(shares)], SHORT)
    return len(course) > 0 and float(course.max()) > PART


def _was_thrown(seen: Sight) -> bool:
    """Were the first steps so large that units saturated? Then outputs are alike by their doing."""
    typical = seen.layers.typical_update
    first = np.zeros(0) if typical is None else typical[:SEVERAL][np.isfinite(typical[:SEVERAL])]
    return len(first) > 0 and float(np.median(first)) > SOME


def _left(seen: Sight, limit: Limits) -> float | None:
    """Return what is left of the spread of the first outputs; None if the weights went first.

    Where decay takes the weights, outputs shrink with their product. A loss that broadcasts makes
    them alike while the weights are all but what they were; what becomes of these later counts not.
    """
    spread, weights, first = seen.layers.field("act_std"), seen.layers.weights, seen.loss.spread
    if spread is None or weights is None or not first or not isfinite(first):
        return None
    left = spread[:, -1].astype(np.float64) / (first / FIVEFOLD)
    gone = np.flatnonzero(left <= limit["shapes_left"])
    late = left[-RECENT:][np.isfinite(left[-RECENT:])]
    if not len(gone) or not len(late):
        return None
    trained = weights[:, seen.layers.trained]
    if not (trained[0] > 0).all():
        return None
    soon = min(int(gone[0]) + SHORT, len(trained) - 1)
    kept = float(np.prod(np.minimum(trained[soon] / trained[0], 1.0)))
    return float(np.median(late)) if kept > HALF else None


def _swing(seen: Sight) -> Swing | None:
    """Measure it over the latter half; None if a layer gets no gradient at all."""
    found = seen.layers.field("grad_l2")
    if found is None:
        return None
    late = found[len(found) // 2 :, seen.layers.trained].astype(np.float64)
    if not np.isfinite(late).all() or not (late > 0).all():
        return None
    sizes = np.log(late)
    middle = np.median(sizes - np.median(sizes, axis=0), axis=1)
    if not middle.std() > 0 or not (sizes.std(axis=0) > 0).all():
        return None
    alike = [float(np.corrcoef(each, middle)[0, 1]) for each in sizes.T]
    # Of few points a deviation is known to about one part in their root.
    size = _noise(middle) * (1 - len(middle) ** -0.5)
    return Swing(size, float(np.median(alike)))


def _noise(values: NDArray[Any]) -> float:
    """Return the deviation of one value, by how it differs from the next: no trend counts."""
    return float(np.diff(values).std()) / 2**0.5
