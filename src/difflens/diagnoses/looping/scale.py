"""A first gradient that is far larger than the loss that was reported can have made it."""

from __future__ import annotations

from math import isfinite

from ...runs import Fix, RunFinding
from ..signs.harms import harm
from ..signs.limits import Limits
from ..signs.losses import output_shape
from ..signs.nonfinite import is_overflow
from ..signs.sight import Sight
from ..signs.wording import above, finding


def scaled(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find a first gradient of the outputs that is many times what their loss allows.

    What reaches the bias of the outputs is the mean of the loss's slope, and that is bounded by
    the loss itself: at most sqrt(2) of a cross entropy, 2 sqrt(L) of a squared error. Beyond it,
    backward was called on something else than was reported. Later points are not asked: steps may
    drive a likelihood to the edge of its domain, where its slope has no bound.
    """
    times, told = _times(seen), harm(seen.loss, least=20)
    if times is None or times < limit["scaled"] or told is None:
        return []
    return [
        finding(
            "wiring",
            "critical",
            f"the first gradient of the outputs is {times:.3g} times the most that a loss of "
            f"{float(seen.loss.values[0]):.3g} can have; {told.said}",
            {"times": times, "scaled_threshold": limit["scaled"], "harm": told.said},
            since=int(seen.steps[0]),
            cause="the loss is multiplied (a scale for half precision) and gradients are not "
            "divided again, or are summed over many batches",
            advice=["divide the gradients by the scale of the loss before step(): unscale_()",
                    "call backward() on the loss that is reported"],
            # Divided or not, a scale that the format of gradients cannot hold breaks the run.
            fix=Fix("scale_loss", {"factor": 1.0}) if is_overflow(seen.history)
            else Fix("unscale_gradients"),
            signs=[above(times, limit["scaled"] / 2)],
        )
    ]  # fmt: skip


def _times(seen: Sight) -> float | None:
    """Give the first gradient of the outputs' bias by the most that it should be."""
    gradients, shape = seen.history.course.field("grad_l2"), output_shape(seen.history)
    if gradients is None or not len(gradients) or not shape or not seen.loss.n:
        return None
    if int(seen.loss.steps[0]) != int(seen.steps[0]):
        return None
    found = [float(gradients[0, i]) for i, layer in enumerate(seen.history.info.layers)
             if layer.shape == (shape[-1],) and "norm" not in layer.kind.lower()]  # fmt: skip
    if not found or not isfinite(found[-1]):
        return None
    return found[-1] / (2 * max(1.0, abs(float(seen.loss.values[0]))))
