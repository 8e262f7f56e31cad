"""Numbers that are none: at which step, in the loss or in which layer first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from difflens.core.policy import Policy, Threshold

from ..detectors.signs.degrees import SHORT
from ..detectors.signs.limits import Limits
from ..detectors.signs.nonfinite import (
    broke_inside,
    came_from,
    first_layers,
    is_overflow,
    is_sudden,
)
from ..detectors.signs.sight import sight
from ..detectors.signs.wording import finding
from ..history.history import History
from ..records.runs import Fix, RunFinding
from . import diagnosis

THRESHOLDS = {
    "scaled_share": Threshold(
        0.2,
        "a loss scaler tries larger scales and skips the step that overflows: up to this share "
        "of steps is its trade, not a fault",
    )
}


@diagnosis(needs=(), window=1, thresholds=THRESHOLDS)
def nan(history: History, policy: Policy) -> Iterator[RunFinding]:
    """Find where a loss, a gradient or a weight first was NaN or infinite."""
    limit = Limits("nan", policy, THRESHOLDS)
    loss_step = history.first_nonfinite_scalar.get("loss")
    layer_step, names, weights = first_layers(history)
    if loss_step is None and layer_step is None:
        return
    share = _share(history)
    scaled = history.course.scalar("loss_scale") is not None
    if scaled and loss_step is None and not weights and share <= limit["scaled_share"]:
        return
    since = min(each for each in (loss_step, layer_step) if each is not None)
    first = "loss" if loss_step == since else "gradient"
    lasting = weights or _is_not_a_number_now(history)
    everywhere = len(names) == len(history.info.layers)
    yield from finding(
        "nan",
        "critical" if lasting else "warning",
        f"{_subject(first, names)} is not a finite number since step {since}"
        if lasting
        else f"{_subject(first, names)} was not a finite number at step {since}, and is one again",
        {
            "first_step": since,
            "first_in": first,
            "loss_step": loss_step,
            "gradient_step": layer_step,
            "share_of_frames": share,
            "layers_hit": len(names),
            "weights_hit": weights,
            "came_from": came_from(history, since),
            **_before(history, since),
        },
        since=since,
        layers=() if everywhere else names,
        cause=_cause(history, since, first, weights),
        advice=_advice(history, since),
        fix=_fix(history, since),
        signs=[1.0 if lasting else share],
    )


def _share(history: History) -> float:
    """Return the share of frames in which some gradient was not finite."""
    seen, fields = history.extremes, history.info.fields
    if "grad_l2" not in fields or not len(history.info.layers) or not history.read_steps:
        return 0.0
    return float(seen.nonfinite[fields.index("grad_l2")].max()) / history.read_steps


def _is_not_a_number_now(history: History) -> bool:
    loss = history.recent_scalars.scalar("loss")
    return loss is not None and len(loss) > 0 and not np.isfinite(loss[-3:]).any()


def _before(history: History, since: int) -> dict[str, Any]:
    loss = sight(history).loss
    before = loss.values[loss.steps < since]
    if not len(before):
        return {}
    return {
        "loss_before": float(before[-1]),
        "highest_loss_before": float(before.max()),
        "points_before": len(before),
    }


def _subject(first: str, names: list[str]) -> str:
    if first == "loss" or not names:
        return "the loss"
    return f"the gradient of {names[0]}" if len(names) == 1 else f"a gradient ({len(names)} layers)"


def _cause(history: History, since: int, first: str, weights: bool) -> str:
    sudden = is_sudden(history, since)
    where = "the loss and all gradients at once" if first == "loss" else "a gradient first"
    after = "; the step was taken, and the weights went with it" if weights else ""
    if is_overflow(history):
        return f"some numbers of a gradient are larger than their format can hold{after}"
    if sudden:
        return (
            f"out of the blue, in {where}: a bad sample, or an operation out of its range "
            f"(log of 0, division by 0, root of a negative number){after}"
        )
    return f"the loss had grown before: too large numbers became infinite{after}"


def _fix(history: History, since: int) -> Fix:
    if is_overflow(history):
        return Fix("scale_loss", {"factor": 1.0})
    if _is_of_the_batch(history, since):
        kept = _is_kept(history)
        return Fix("rewind_and_skip", {"step": since}) if kept else Fix("skip_nonfinite")
    given: Any = history.fact("input")
    spread = given.get("features_std_max") if isinstance(given, dict) else None
    if since == history.first_step and (spread or 0.0) > SHORT:
        return Fix("scale_inputs")  # nothing was learned yet: what went in was too large
    return Fix("stable_loss")


def _advice(history: History, since: int) -> list[str]:
    said = [
        f"look at the batch of step {since}: NaN, infinity or an empty target in it",
        "skip steps whose gradients are not finite, before the optimiser takes them",
        "take the stable form: log_softmax and cross entropy on logits, eps inside log and sqrt",
    ]
    if is_overflow(history):
        return ["take the scale of the loss out, or bfloat16 in the place of float16", said[1]]
    if _is_kept(history):
        said[1] = "leave it out before the forward pass: batch norms keep it in their statistics"
    return said if _is_of_the_batch(history, since) else [said[2], said[1], said[0]]


def _is_kept(history: History) -> bool:
    """Do batch norms put what goes through them into statistics, whether a step follows or not?"""
    return any("BatchNorm" in layer.kind for layer in history.info.layers)


def _is_of_the_batch(history: History, since: int) -> bool:
    return came_from(history, since) == "sample" or broke_inside(history, since)
