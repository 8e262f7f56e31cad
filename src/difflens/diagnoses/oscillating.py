"""A loss that swings to and fro without getting anywhere.

Counting how often a series turns was not taken: independent noise turns at two of three points
(methods 11.4), so every healthy run would be called oscillating. Here swings must be wide beside
the level of the loss, and the level must not have come down.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..records import Policy, Threshold
from ..runs import RunFinding
from . import diagnosis
from .signs.limits import Limits
from .signs.rates import lower
from .signs.sight import sight
from .signs.wording import above, finding

if TYPE_CHECKING:
    from ..history.history import History

THRESHOLDS = {
    "swing": Threshold(0.5, "quartile range of the late loss by its median"),
    "level": Threshold(0.5, "median of the late loss by the start: below, it has come down"),
    "noise": Threshold(3.0, "the same range of the losses of single examples, by the root of the "
                       "batch: a squared error of one has 2.7"),
    "points": Threshold(40, "points before a word is said"),
}  # fmt: skip


@diagnosis(needs=("loss",), window=40, thresholds=THRESHOLDS)
def oscillating(history: History, policy: Policy) -> Iterator[RunFinding]:
    """Find a loss that swings widely about a level that does not come down."""
    limit = Limits("oscillating", policy, THRESHOLDS)
    seen = sight(history)
    loss = seen.loss
    if loss.n < limit["points"] or loss.start <= 0 or loss.is_learned or (loss.values < 0).any():
        return  # low losses swing by nature, and what may be negative has no level to swing about
    late = loss.values[-max(loss.n // 2, 30) :]
    low, middle, high = (float(each) for each in np.percentile(late, [25, 50, 75]))
    if middle <= 0:
        return
    swing, level = (high - low) / middle, middle / loss.start
    halves = _falls(late)
    least = max(limit["swing"], limit["noise"] / seen.batch**0.5 if seen.batch else 0.0)
    if swing < least or level < limit["level"] or halves > 0.2:
        return
    yield finding(
        "oscillating",
        "critical" if loss.n >= 2 * limit["points"] else "warning",
        f"the loss swings between {low:.3g} and {high:.3g} and does not come down "
        f"(it started at {loss.start:.3g})",
        {"swing": swing, "swing_threshold": least, "level_by_start": level,
         "level_threshold": limit["level"], "late_fall": halves, "points": len(late)},
        since=int(loss.steps[0]),
        cause="steps overshoot: the learning rate or the momentum is high, or the batch is small",
        advice=["lower the learning rate", "lower the momentum", "take larger batches"],
        signs=[above(swing, least), above(level, limit["level"])],
        fix=lower(seen, 0.1),
    )  # fmt: skip


def _falls(late: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """Give the share by which the late loss fell over its own course."""
    half = len(late) // 2
    early = float(np.median(late[:half]))
    return (early - float(np.median(late[half:]))) / early if early > 0 else 0.0
