"""A loss that does not fit the output: probabilities where logits belong, or the wrong sign."""

from __future__ import annotations

from collections.abc import Iterator
from math import e, exp, log, log1p
from typing import Any

import numpy as np

from difflens.core.policy import Policy, Threshold

from ..detectors.feeding.causes import Cause
from ..detectors.pairing.bounded import bounded
from ..detectors.pairing.contrast import no_contrast
from ..detectors.pairing.endings import of_one, squashed
from ..detectors.pairing.heavier import heavier
from ..detectors.pairing.kinds import two_kinds
from ..detectors.pairing.scores import are_scores
from ..detectors.pairing.shapes import SWING, every_target
from ..detectors.pairing.silenced import silenced
from ..detectors.signs.degrees import CLEARLY, RECENT, SEVERAL, SHORT, THRICE
from ..detectors.signs.harms import stuck
from ..detectors.signs.held_back import held_back_loss
from ..detectors.signs.limits import Limits
from ..detectors.signs.losses import Losses
from ..detectors.signs.proportions import is_mirrored
from ..detectors.signs.sight import Sight, sight
from ..detectors.signs.wording import above, finding
from ..history.history import History
from ..records.runs import ACCURACIES, VALIDATION_ACCURACIES, Fix, RunFinding
from . import diagnosis

THRESHOLDS = {
    "points": Threshold(10, "points all of which must lie between the two bounds"),
    "start": Threshold(0.01, "distance of the first loss from ln(classes), as a share of it: "
                       "probabilities taken for logits hardly differ"),
    "late_points": Threshold(60, "points between the bounds that suffice by themselves"),
    "squashed_points": Threshold(40, "points before scores behind a non-linearity are told of"),
    "bounded_points": Threshold(80, "points before bounded outputs of a regression are told of"),
    "explained": Threshold(0.5, "share of the targets that such outputs explain by then"),
    "depth": Threshold(3.0, "how many times its first size a negative loss must reach"),
    "kinds_points": Threshold(60, "points before training and held-back loss are held against "
                              "one another"),
    "kinds_looks": Threshold(3, "held-back values that must agree"),
    "kinds_gap": Threshold(10.0, "held-back by training loss at every look: more, and it is of "
                           "another kind"),
    "kinds_fall": Threshold(0.02, "share by which such a held-back loss fell since its first "
                            "value: less, and it stands"),
    "kinds_left": Threshold(0.5, "share by which the training loss fell meanwhile"),
    "kinds_times": Threshold(2.5, "training by held-back loss at every look: more, and it is of "
                             "another kind; healthy runs with a noise or penalty have 1.3"),
    "kinds_gain": Threshold(0.15, "share by which such a held-back loss fell since its first "
                            "value, where both rest: healthy runs have a third and more"),
    "shapes_points": Threshold(40, "points before a column held against a row is told of"),
    "shapes_explained": Threshold(0.02, "share of the targets that outputs explain which became "
                                  "one number"),
    "shapes_left": Threshold(0.4, "spread of such outputs by what it first was"),
    "shapes_swing": Threshold(SWING, "deviation of ln(gradient) from batch to batch: one number "
                              "that passes through zero makes 1.1, many directions 0.2"),
    "shapes_alike": Threshold(0.95, "correlation of it between layers, at the middle"),
    "contrast": Threshold(0.003, "distance of a loss from the logarithm of the examples in a "
                          "batch, as a share of it, over the latter half of the run"),
    "silenced_points": Threshold(80, "points before a layer that fell silent is told of"),
    "silenced": Threshold(0.12, "spread of a layer's outputs by what it first was and by its "
                          "weights: healthy layers keep 0.4"),
    "silenced_gap": Threshold(10.0, "spread of the network's outputs by that of such a layer"),
    "pull": Threshold(0.2, "first gradient of the output layer by the strongest of those up to "
                      "such a layer: less, and another term than the outputs' pulls there"),
}  # fmt: skip
_ALL_OF_IT = Cause(
    "the sign of the loss is wrong: training makes the errors larger",
    ["drop the minus (or return the negative log-likelihood, not the log-likelihood)"],
    Fix("negate_loss"),
)
_A_TERM = Cause(
    "a part of the loss has the wrong sign, and no floor",
    ["check the sign of each term of the loss"],
    Fix("check_signs"),
)
_SCORES = Cause(
    "scores are taken for logarithms of probabilities: the loss is the score of the right answer "
    "with a minus, and nothing holds it",
    ["put a log-softmax before the loss, or take the cross entropy, which has its own"],
    Fix("normalise_scores"),
)


@diagnosis(needs=("loss",), window=10, thresholds=THRESHOLDS, absolute=True)
def loss_pairing(history: History, policy: Policy) -> Iterator[RunFinding]:
    """Find probabilities handed to a loss that wants logits, and a loss of the wrong sign."""
    limit = Limits("loss-pairing", policy, THRESHOLDS)
    seen = sight(history)
    found = [*_probabilities(seen, limit)] or of_one(seen, limit) or squashed(seen, limit)
    found = found or bounded(seen, limit)
    found = found or every_target(seen, limit) or no_contrast(seen, limit) or heavier(seen)
    yield from found or two_kinds(seen, limit) or silenced(seen, limit)
    yield from _negated(seen, limit)


def _probabilities(seen: Sight, limit: Limits) -> Iterator[RunFinding]:
    output: Any = seen.history.fact("output")
    final = str(seen.history.fact("final_module") or "")
    if not isinstance(output, dict) or seen.loss.n < limit["points"]:
        return
    shape = output.get("shape") or [0]
    classes = int(shape[-1] or 0)
    if output.get("rows_sum_to_one") and classes > 1 and final != "LogSoftmax":
        low, high = bounds(classes)
        usual = abs(seen.loss.start - log(classes)) <= limit["start"] * log(classes)
    elif final == "Sigmoid" and stuck(seen.loss, limit["late_points"]):
        low, high, usual = log1p(exp(-1)), log1p(e), False
    else:
        return
    values = seen.loss.values
    inside = bool((values >= low - 1e-3).all() and (values <= high + 1e-3).all())
    if not inside or not (usual or seen.loss.n >= limit["late_points"]):
        return
    yield from finding(
        "loss-pairing",
        "critical" if seen.loss.n >= limit["late_points"] else "warning",
        f"the output is made of probabilities ({final or 'rows sum to one'}), and the loss stays "
        f"between {low:.3f} and {high:.3f}, as cross entropy of probabilities must",
        {
            "lowest_loss": float(values.min()),
            "highest_loss": float(values.max()),
            "lower_bound": low,
            "upper_bound": high,
            "classes": classes,
            "points": seen.loss.n,
            "final_module": final,
        },
        since=int(seen.loss.steps[0]),
        cause=f"a loss that applies the {'sigmoid' if final == 'Sigmoid' else 'softmax'} itself "
        "gets what has been through one already",
        advice=["take the softmax (or sigmoid) off the end of the model, and give the loss logits"],
        signs=[above(seen.loss.n, limit["points"] / 2)],
        layers=seen.layers.last,
        fix=Fix("remove_softmax"),
    )


def bounds(classes: int) -> tuple[float, float]:
    """Return the least and largest cross entropy of probabilities taken for logits.

    With the right class at p = 1 it is ln(e + classes - 1) - 1, at p = 0 one more.
    """
    highest = log(e + classes - 1)
    return highest - 1, highest


def _negated(seen: Sight, limit: Limits) -> Iterator[RunFinding]:
    """Find a loss that is negative and falls ever faster, from the start or from some step on."""
    loss = _below_zero(seen.loss)
    if loss.n < limit["points"] or loss.start >= 0 or loss.now >= loss.start:
        return
    turned = loss.n < seen.loss.n
    # Where it turned, all that it was before is the measure: losses that may be negative pass
    # through zero slowly and then slow down.
    size = float(np.abs(seen.loss.values[: seen.loss.n - loss.n]).max()) if turned else -loss.start
    # A cross entropy that is negated begins near that of guessing; what begins near zero is a
    # reward, and may become several times as large.
    size = max(size, loss.chance or 0.0)
    depth = -loss.now / max(size, 1e-300)
    mirrored = is_mirrored(loss, held_back_loss(seen.history))
    worse = _accuracy_falls(seen) or mirrored
    # What is known to be an output has no floor, however slowly it falls, and no other size.
    scores = not mirrored and are_scores(seen)
    least = limit["depth"] * (THRICE if _turned_early(loss, seen.loss) and not scores else 1)
    if depth < least and not worse:
        return
    halves = _speed(loss.values)
    if not worse and not scores and (halves is None or halves < 1.0):
        return
    told = _what_is_wrong(seen, loss, scores)
    yield from finding(
        "loss-pairing",
        "critical",
        f"the loss is negative and falls without bound, from {loss.start:.4g} to {loss.now:.4g}"
        + (
            ", while the held-back loss rises as it falls"
            if mirrored
            else ", while the accuracy falls"
            if worse
            else ""
        ),
        {
            "start": loss.start,
            "now": loss.now,
            "depth": depth,
            "depth_threshold": limit["depth"],
            "speed_late_by_early": halves,
            "accuracy_falls": worse and not mirrored,
            "mirrored": mirrored,
        },
        since=int(loss.steps[0]),
        cause=told.cause,
        advice=told.advice,
        signs=[above(depth, limit["depth"] / 2)],
        fix=told.fix,
    )


def _what_is_wrong(seen: Sight, below: Losses, scores: bool) -> Cause:
    if _slid(seen.loss, below):
        return _A_TERM
    return _SCORES if scores else _ALL_OF_IT


def _below_zero(loss: Losses) -> Losses:
    """Return the stretch from which on every value is negative, where none was before it.

    Losses that change their sign by nature (rewards less a baseline) do so from the start, and go
    on doing so; scores taken for log-likelihoods do in the very first steps alone.
    """
    above, below = np.flatnonzero(loss.values >= 0), np.flatnonzero(loss.values < 0)
    since = int(above[-1]) + 1 if len(above) else 0
    if len(below) and below[0] < since and since > SHORT:
        since = loss.n
    return loss._replace(steps=loss.steps[since:], values=loss.values[since:])


def _turned_early(loss: Losses, whole: Losses) -> bool:
    """Did it turn in its first steps? Then what it was before is too little to measure it by."""
    return 0 < whole.n - loss.n < RECENT


def _slid(whole: Losses, below: Losses) -> bool:
    """Did it pass through zero bit by bit, not at one step? A whole that is negated jumps."""
    positive = whole.n - below.n
    before = whole.values[:positive][-SEVERAL:]
    if positive < SHORT or not below.n:
        return False  # what begins near zero (scores taken for likelihoods) passes it at once
    return bool(before[-1] - below.values[0] < CLEARLY * np.median(before))


def _speed(values: Any) -> float | None:
    """Return how fast it falls in the latter half by how fast in the first: above 1, no floor."""
    half = len(values) // 2
    third = max(half // 3, 1)
    early = float(np.median(values[:third]) - np.median(values[half - third : half]))
    late = float(np.median(values[half : half + third]) - np.median(values[-third:]))
    return late / early if early > 0 else None


def _accuracy_falls(seen: Sight) -> bool:
    found = seen.history.course.first_scalar(ACCURACIES + VALIDATION_ACCURACIES)
    if found is None:
        return False
    values = found[1][np.isfinite(found[1])]
    return len(values) >= 4 and bool(np.median(values[-2:]) < 0.8 * np.median(values[:2]))
