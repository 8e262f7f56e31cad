"""A model that learns its training data by heart: there it improves, on held-back data it worsens.

Only the held-back loss can tell (methods 11.7): it has to rise, lastingly and by much, after its
best, while the training loss falls on. A gap between the two alone is no fault.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..records import Policy, Threshold
from ..runs import VALIDATION_LOSSES, Fix, RunFinding
from . import diagnosis
from .signs.limits import Limits
from .signs.losses import Losses
from .signs.sight import sight
from .signs.wording import above, finding

if TYPE_CHECKING:
    from ..history.history import History

THRESHOLDS = {
    "rise": Threshold(1.1, "held-back loss over its best"),
    "share": Threshold(
        0.05,
        "the same rise in shares of the first training loss (or of guessing): "
        "what rises from little to little is no harm",
    ),
    "gap": Threshold(5.0, "held-back loss over the training loss"),
    "after": Threshold(3, "held-back values after the best, all of them above it"),
    "fall": Threshold(0.8, "training loss by what it was at the best held-back loss"),
}


@diagnosis(needs=("loss", "val_loss"), window=5, thresholds=THRESHOLDS)
def over_fit(history: History, policy: Policy) -> Iterator[RunFinding]:
    """Find a held-back loss that rises while the training loss falls on."""
    limit = Limits("over-fit", policy, THRESHOLDS)
    loss = sight(history).loss
    found = history.course.first_scalar(VALIDATION_LOSSES)
    if found is None or loss.n < 10:
        return
    held_back = Losses.of(history, found[0])
    if held_back.n < limit["after"] + 2 or held_back.values.min() <= 0:
        return
    best = int(np.argmin(held_back.values))
    after = held_back.values[best + 1 :]
    if len(after) < limit["after"]:
        return
    last = after[-limit["after"] :]
    rise = float(last.min()) / float(held_back.values[best])
    at_best = loss.values[loss.steps <= held_back.steps[best]]
    before = float(np.median(at_best[-loss.width :])) if len(at_best) else loss.start
    # The mean, as the held-back loss is one: of single examples most cost next to nothing.
    now = float(np.mean(loss.values[-loss.width :]))
    gap = float(np.median(last)) / now if now > 0 else float("inf")
    fell = loss.now <= limit["fall"] * before
    share = float(last.min() - held_back.values[best]) / max(abs(loss.reference), 1e-300)
    if rise < limit["rise"] or share < limit["share"] or gap < limit["gap"] or not fell:
        return
    step = int(held_back.steps[best])
    yield finding(
        "over-fit",
        "warning",
        f"{found[0]} rose to {rise:.3g} times its best (step {step}) while the training loss fell "
        f"from {before:.3g} to {loss.now:.3g}",
        {"rise": rise, "rise_threshold": limit["rise"], "rise_share": share,
         "share_threshold": limit["share"], "best_step": step,
         "best": float(held_back.values[best]), "gap": gap, "gap_threshold": limit["gap"],
         "values_after_best": len(after), "training_loss": loss.now},
        since=step,
        cause="the model is large beside the data and nothing holds it back",
        advice=[f"keep the weights of step {step} (stop early)", "add dropout or weight decay",
                "get more data, or augment what there is"],
        signs=[above(rise, 1.0), above(gap, limit["gap"] / 2)],
        fix=Fix("stop_early", {"step": step}),
    )  # fmt: skip
