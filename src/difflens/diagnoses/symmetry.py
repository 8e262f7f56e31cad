"""Units that are all alike: with weights of zero each gets the same gradient, or none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..records import Policy, Threshold
from ..runs import Fix, RunFinding
from . import diagnosis
from .signs.limits import Limits
from .signs.losses import stuck
from .signs.sight import sight
from .signs.wording import above, finding

if TYPE_CHECKING:
    from ..history.history import History

THRESHOLDS = {
    "share": Threshold(0.5, "share of the weight matrices that start at zero: single ones are a "
                       "custom (the last of a residual branch, the second of an adapter)"),
    "points": Threshold(5, "points over which the loss must be stuck"),
}  # fmt: skip


@diagnosis(needs=("weight_l2", "loss"), window=5, thresholds=THRESHOLDS)
def symmetry(history: History, policy: Policy) -> Iterator[RunFinding]:
    """Find weight matrices that start at zero and keep their units alike."""
    limit = Limits("symmetry", policy, THRESHOLDS)
    seen = sight(history)
    norms = seen.layers.field("weight_l2")
    told = stuck(seen.loss, limit["points"])
    if norms is None or told is None or seen.points < limit["points"] or len(norms[0]) < 2:
        return
    trained = seen.layers.trained
    columns = [i for i in np.flatnonzero(trained) if norms[0, i] == 0]
    share = len(columns) / max(int(trained.sum()), 1)
    if share < limit["share"]:
        return
    still = sum(bool((norms[:, i] == 0).all()) for i in columns)
    names = seen.layers.named(columns)
    yield finding(
        "symmetry",
        "critical",
        f"{len(names)} weight matrices start at zero, {still} are zero still; {told.said}",
        {"zero_matrices": len(names), "zero_still": still, "share": share,
         "share_threshold": limit["share"], "loss_fall": told.figure},
        since=int(seen.steps[0]),
        layers=names,
        cause="all units of a layer compute the same, so they get the same gradient and stay alike",
        advice=["initialise the weights at random (kaiming or xavier); only biases may be zero"],
        signs=[above(share, limit["share"] / 2)],
        fix=Fix("reinitialise", {"scheme": "kaiming", "layers": names}),
    )  # fmt: skip
