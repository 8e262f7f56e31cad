"""A learning rate that is too low: steps so small that nothing happens."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from difflens.core.policy import Policy, Threshold

from ..detectors.signs.harms import stuck
from ..detectors.signs.limits import Limits
from ..detectors.signs.raising import end_warm_up, raised
from ..detectors.signs.sight import sight
from ..detectors.signs.wording import below, finding
from ..history.history import History
from ..records.runs import Fix, RunFinding
from . import diagnosis

THRESHOLDS = {
    "update": Threshold(
        2e-5, "update by weight of the layer that moves most: at this pace 1 % takes 500 steps"
    ),
    "crept": Threshold(
        5.0, "times `update`, after `crept_points`: healthy runs take ten times as much"
    ),
    "crept_points": Threshold(20, "points after which steps below `crept` are told of"),
    "gradient": Threshold(1e-4, "gradient by weight below which gradients vanish instead"),
    "decay": Threshold(0.05, "learning rate by its highest: below, the schedule is to blame"),
    "points": Threshold(10, "points over which it must last"),
}

_MOST = 1e6  # times the rate, where the steps of all matrices are lost in the format of numbers


@diagnosis(needs=("update_l2", "weight_l2", "loss"), window=10, thresholds=THRESHOLDS)
def lr_low(history: History, policy: Policy) -> Iterator[RunFinding]:
    """Find updates that are tiny in every layer though gradients are not, and a stuck loss."""
    limit = Limits("lr-low", policy, THRESHOLDS)
    seen = sight(history)
    updates = seen.layers.recent(seen.layers.update)
    gradients = seen.layers.recent(seen.layers.gradient)
    told = stuck(seen.loss, limit["points"])
    if updates is None or gradients is None or told is None or seen.may_be_slow:
        return
    chosen = seen.layers.trained & np.isfinite(updates) & np.isfinite(gradients)
    if not chosen.any():
        return
    fastest, pull = float(updates[chosen].max()), float(np.median(gradients[chosen]))
    crept = limit["crept"] if seen.loss.n >= limit["crept_points"] else 1.0
    bound = crept * limit["update"]
    if not 0 < fastest < bound or pull < limit["gradient"]:
        return
    rates = seen.lr
    known = np.zeros(0) if rates is None else rates[np.isfinite(rates)]
    rate = float(known[-1]) if len(known) else None
    if rate is not None and rate < limit["decay"] * float(known.max()):
        return  # a schedule took it down: that is told as a plateau
    factor = raised(seen) or _MOST
    order = np.argsort(updates, kind="stable")
    yield from finding(
        "lr-low",
        "critical" if seen.loss.n >= 60 else "warning",
        f"no layer moves by more than {fastest:.1g} of its size in a step; {told.said}",
        {
            "update_by_weight": fastest,
            "update_threshold": bound,
            "gradient_by_weight": pull,
            "loss_fall": told.figure,
            "lr": rate,
        },
        since=told.since,
        layers=[name for i, name in zip(order, seen.layers.named(order), strict=True) if chosen[i]],
        cause="gradients arrive, and the learning rate makes next to nothing of them",
        advice=[
            f"multiply the learning rate by about {factor:g}",
            "aim at first updates near a hundredth of the weights",
        ],
        signs=[below(fastest, bound)],
        fix=end_warm_up(seen) or Fix("scale_lr", {"factor": factor}),
    )
