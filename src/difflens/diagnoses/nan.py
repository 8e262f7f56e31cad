"""Numbers that are none: at which step, in the loss or in which layer first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..records import Policy, Threshold
from ..runs import Fix, RunFinding
from . import diagnosis
from .signs.layers import place
from .signs.limits import Limits
from .signs.sight import sight
from .signs.wording import finding

if TYPE_CHECKING:
    from ..history.history import History

THRESHOLDS = {
    "scaled_share": Threshold(
        0.2,
        "a loss scaler tries larger scales and skips the step that overflows: up to this share "
        "of steps is its trade, not a fault",
    ),
}

_GUESSED = 0.85  # of guessing: weights that are not trained do not score better on average


@diagnosis(needs=(), window=1, thresholds=THRESHOLDS)
def nan(history: History, policy: Policy) -> Iterator[RunFinding]:
    """Find where a loss, a gradient or a weight first was NaN or infinite."""
    limit = Limits("nan", policy, THRESHOLDS)
    loss_step = history.first_nonfinite_scalar.get("loss")
    layer_step, names, weights = _first_layers(history)
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
    yield finding(
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
            "came_from": _kind(history, since),
            **_before(history, since),
        },
        since=since,
        layers=() if everywhere else names,
        cause=_cause(history, since, first, weights),
        advice=_advice(history, since),
        fix=_fix(history, since),
        signs=[1.0 if lasting else share],
    )


def _first_layers(history: History) -> tuple[int | None, list[str], bool]:
    """Give the first step with a non-finite gradient or weight, its layers, and if weights went."""
    seen, fields = history.extremes, history.info.fields
    firsts = np.full(len(history.info.layers), -1, np.int64)
    weights = False
    for field in ("grad_l2", "grad_max_abs", "weight_l2"):
        if field in fields and len(firsts):
            steps = seen.first_nonfinite[fields.index(field)]
            sooner = (steps >= 0) & ((firsts < 0) | (steps < firsts))
            firsts[sooner] = steps[sooner]
            weights = weights or (field == "weight_l2" and bool((steps >= 0).any()))
    hit = np.flatnonzero(firsts >= 0)
    if not len(hit):
        return None, [], False
    first = int(firsts[hit].min())
    layers = history.info.layers
    # A backward pass goes from the last layer to the first: the deepest is where it began.
    at_once = sorted((int(i) for i in hit if firsts[i] == first), key=lambda i: place(layers, i))
    return first, [layers[i].name for i in reversed(at_once)], weights


def _share(history: History) -> float:
    """Give the share of frames in which some gradient was not finite."""
    seen, fields = history.extremes, history.info.fields
    if "grad_l2" not in fields or not len(history.info.layers) or not history.frames:
        return 0.0
    return float(seen.nonfinite[fields.index("grad_l2")].max()) / history.frames


def _is_not_a_number_now(history: History) -> bool:
    loss = history.recent.scalar("loss")
    return loss is not None and len(loss) > 0 and not np.isfinite(loss[-3:]).any()


def _before(history: History, since: int) -> dict[str, Any]:
    loss = sight(history).loss
    before = loss.values[loss.steps < since]
    if not len(before):
        return {}
    return {"loss_before": float(before[-1]), "highest_loss_before": float(before.max()),
            "points_before": len(before)}  # fmt: skip


def _subject(first: str, names: list[str]) -> str:
    if first == "loss" or not names:
        return "the loss"
    return f"the gradient of {names[0]}" if len(names) == 1 else f"a gradient ({len(names)} layers)"


def _cause(history: History, since: int, first: str, weights: bool) -> str:
    sudden = _is_sudden(history, since)
    where = "the loss and all gradients at once" if first == "loss" else "a gradient first"
    after = "; the step was taken, and the weights went with it" if weights else ""
    if sudden:
        return (
            f"out of the blue, in {where}: a bad sample, or an operation out of its range "
            f"(log of 0, division by 0, root of a negative number){after}"
        )
    return f"the loss had grown before: too large numbers became infinite{after}"


def _is_sudden(history: History, since: int) -> bool:
    loss = sight(history).loss
    before = loss.values[loss.steps < since]
    return not len(before) or float(before[-3:].max()) < 10 * max(abs(float(before[0])), 1e-300)


def _kind(history: History, since: int) -> str:
    """Tell where it came from: an operation of the loss, or a sample that went in.

    A bad sample is in the activations already. An operation of the loss leaves them finite, and
    units that are not active keep a finite gradient. So does a target that is missing; but labels
    of classes are whole numbers and cannot be NaN, and a squared error has no operation that is.
    """
    course = history.course
    if _is_squared(history) and _is_sudden(history, since):
        return "sample"
    at = int(np.searchsorted(course.steps, since))
    active = course.field("act_mean")
    if active is not None and at < len(active):
        known = ~course.missing("act_mean")[at]
        if known.any():
            return "operation" if np.isfinite(active[at][known]).all() else "sample"
    hit = course.field("grad_nonfinite")
    if hit is not None and at < len(hit):
        with np.errstate(invalid="ignore"):
            shares = hit[at] / course.counts
        shares = shares[np.isfinite(shares)]
        if len(shares) and shares.max() > 0:
            return "operation" if shares.min() < 1 else "sample"
    loss = course.scalar("loss")
    infinite = loss is not None and at < len(loss) and bool(np.isinf(loss[at]))
    return "operation" if infinite else "sample"


def _is_squared(history: History) -> bool:
    """Is there one output, or did the loss begin below what guessing among classes costs?"""
    output: Any = history.fact("output")
    if not isinstance(output, dict) or not output.get("shape"):
        return False
    loss = sight(history).loss
    return loss.chance is None or (loss.n > 0 and float(loss.values[0]) < _GUESSED * loss.chance)


def _fix(history: History, since: int) -> Fix:
    return Fix("stable_loss" if _kind(history, since) == "operation" else "skip_nonfinite")


def _advice(history: History, since: int) -> list[str]:
    said = [
        f"look at the batch of step {since}: NaN, infinity or an empty target in it",
        "skip steps whose gradients are not finite, before the optimiser takes them",
        "take the stable form: log_softmax and cross entropy on logits, eps inside log and sqrt",
    ]
    return said if _kind(history, since) == "sample" else [said[2], said[1], said[0]]
