"""Data that training cannot use: not scaled, in sorted order, or with labels that say nothing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from difflens.core.policy import Policy, Threshold

from ..detectors.feeding.forgetting import forgotten
from ..detectors.feeding.inputs import alike, far_targets, swelled, unscaled
from ..detectors.feeding.labels import frequent, labels
from ..detectors.feeding.onset import begun
from ..detectors.feeding.order import changed, in_order
from ..detectors.feeding.thinning import is_drowned
from ..detectors.signs.degrees import HALF, SEVERAL, SLIGHTLY
from ..detectors.signs.held_back import (
    Behind,
    has_followed,
    has_soured,
    has_stayed,
    held_back_loss,
    is_outsize,
    left_behind,
    worse_than_guessing,
)
from ..detectors.signs.inputs import TOO_SMALL
from ..detectors.signs.leaps import LEAP
from ..detectors.signs.limits import Limits
from ..detectors.signs.losses import Losses
from ..detectors.signs.proportions import proportions
from ..detectors.signs.sight import Sight, sight
from ..detectors.signs.wording import above, finding
from ..history.history import History
from ..records.runs import Fix, RunFinding
from . import diagnosis

THRESHOLDS = {
    "scale": Threshold(10.0, "spread or mean of the inputs: one is what initial weights expect"),
    "least_scale": Threshold(TOO_SMALL, "the same of inputs that are too small to be seen"),
    "alike_points": Threshold(10, "points without learning, where all examples are alike"),
    "points": Threshold(100, "points without learning after which labels are doubted"),
    "examples": Threshold(3200, "examples that must have been seen by then: small batches teach "
                          "little in a step"),
    "recurrent_points": Threshold(400, "the same for recurrent networks, whose first plateau "
                                  "is often long"),
    "path": Threshold(2.0, "way that weights went, in sizes of themselves, after which neither "
                      "these nor a saddle excuse anything: healthy ones left theirs at 1.7"),
    "far_points": Threshold(150, "points for which even then recurrent networks are left alone"),
    "memory_gradient": Threshold(0.03, "gradient of a memory's faintest matrix by that of the "
                                 "last layer: healthy recurrent networks at guessing have 0.1"),
    "blind": Threshold(0.95, "held-back loss by that of guessing: never below it, nothing that "
                       "was learned holds for other data"),
    "blind_gap": Threshold(0.94, "training loss by held-back loss: below, it learns by heart"),
    "blind_values": Threshold(3, "held-back values that must say so"),
    "blind_points": Threshold(50, "points, where held-back values say so"),
    "blind_fall": Threshold(0.7, "share by which the training loss fell, where held-back values "
                            "say so: labels can be learned by heart"),
    "apart": Threshold(3.0, "held-back loss by training loss, where it never followed"),
    "comes": Threshold(0.15, "share by which a held-back loss fell since its first value: more, "
                       "and it follows"),
    "neglected": Threshold(1.3, "first held-back loss by that of guessing, where it falls: more, "
                           "and its classes are others than those of training"),
    "neglected_gap": Threshold(5.0, "held-back by training loss at every look, where it does"),
    "neglected_looks": Threshold(5, "held-back values that must say so"),
    "noisy": Threshold(0.7, "training loss by that of guessing, where held-back data is answered "
                       "better"),
    "flat": Threshold(0.02, "share by which the held-back loss fell since its first value: less, "
                      "and the training loss need not prove that it stands"),
    "fall": Threshold(0.08, "share by which the loss fell: less is no learning"),
    "pace": Threshold(0.05, "fall in shares of the start per 100 steps that must be ruled out"),
    "explained": Threshold(0.12, "share of a regression's targets that its outputs explain: "
                           "healthy runs have 0.7 after twenty steps"),
    "slowest": Threshold(3e-4, "median update by weight: below, the steps are to blame"),
    "fastest": Threshold(0.1, "median update by weight: above, the steps are to blame"),
    "jumps": Threshold(3, "jumps of a sawtooth"),
    "order_points": Threshold(80, "points before an order is told of that makes no teeth"),
    "repeats": Threshold(0.8, "autocorrelation of losses one period apart about their running "
                         "median: healthy runs have 0.5"),
    "neighbours": Threshold(0.25, "the same of neighbouring losses, where they repeat themselves"),
    "spread": Threshold(0.2, "spread of ln(loss) about its running median, where they do"),
    "memory": Threshold(0.6, "autocorrelation of neighbouring losses that suffices without a "
                        "period: shuffled batches have next to none"),
    "swings": Threshold(4, "turns of such a loss by a factor of two"),
    "goes_apart": Threshold(0.5, "spread of ln(held-back by training loss) about its trend: more, "
                            "and held-back data does not go along"),
    "goes_beyond": Threshold(0.3, "spread of how far ln(held-back loss) lies beyond the training "
                             "losses on both sides of it: steps that throw both leave it within"),
    **LEAP,
    "stay": Threshold(12, "points for which a loss must stay out after a leap"),
    "level": Threshold(0.5, "the loss out there by its start"),
    "usual": Threshold(3.0, "largest update before the leap by the usual one: more, and the step "
                       "is to blame"),
    "skew": Threshold(0.85, "skewness of the steps of the loss: rare jumps up, many steps down; "
                      "half as much where the jumps come at a period"),
}  # fmt: skip


@diagnosis(needs=("loss",), window=20, thresholds=THRESHOLDS)
def data(history: History, policy: Policy) -> Iterator[RunFinding]:
    """Find inputs that are not scaled, an order that is sorted, labels that teach nothing."""
    limit = Limits("data", policy, THRESHOLDS)
    seen = sight(history)
    found = alike(seen, limit) or unscaled(seen, limit) or swelled(seen) or in_order(seen, limit)
    found = found or begun(seen, limit) or changed(seen, limit) or far_targets(seen, limit)
    if not found and is_drowned(seen):
        return  # whatever the labels are, hardly any of an example gets through
    found = found or labels(seen, limit) or forgotten(seen, limit) or neglected(seen, limit)
    yield from found or elsewhere(seen, limit) or frequent(seen, limit)


# Which classes are frequent is learned before all else. Where training and held-back data agree on
# that, no held-back loss is above guessing once the training loss is far below it. Where they do
# not, answers are sure and wrong, and get better only as the rare classes are learned at last. What
# is learned by heart goes the other way: there the held-back loss rises.


def neglected(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find a held-back loss that falls from far above guessing, always many times the training."""
    loss, held_back = seen.loss, held_back_loss(seen.history)
    if held_back is None or loss.chance is None or loss.is_learned:
        return []
    if not 0.7 * loss.chance <= loss.start <= 10 * loss.chance:
        return []
    found = proportions(loss, held_back)
    if found is None or found.looks < limit["neglected_looks"]:
        return []
    first = float(held_back.values[0]) / loss.chance
    moves = held_back.values[1:] / held_back.values[:-1]
    falls = bool((moves < SLIGHTLY).all() and (moves > HALF).all())
    if found.least < limit["neglected_gap"] or first < limit["neglected"] or not falls:
        return []
    if float(np.mean(held_back.values[-3:])) > float(np.mean(held_back.values[:2])):
        return []
    return finding(
        "data",
        "warning",
        f"held-back data cost {first:.2g} times what guessing does at first, and costs "
        f"{found.middle:.3g} times as much as training data all along, though it falls",
        {
            "first_by_guessing": first,
            "neglected_threshold": limit["neglected"],
            "held_back_by_training": found.middle,
            "gap_threshold": limit["neglected_gap"],
            "held_back_fall": found.fall,
            "looks": found.looks,
        },
        since=int(seen.steps[0]),
        cause="classes that count in held-back data hardly count in training: they are rare "
        "there, or weighed the wrong way round",
        advice=[
            "count the labels of both",
            "weigh classes by how seldom they are, or draw them evenly",
            "check that weights of classes are not turned round",
        ],
        signs=[above(first, 1.0), above(found.least, limit["neglected_gap"] / 2)],
        fix=Fix("balance_classes"),
    )


def elsewhere(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find held-back data that never followed: what is learned here does not hold there."""
    loss, held_back = seen.loss, held_back_loss(seen.history)
    if held_back is None or has_followed(loss, held_back) or loss.n < limit["blind_points"]:
        return []
    found = _behind(loss, held_back, limit)
    if found is None or loss.fall < limit["blind_fall"] or has_soured(loss, held_back):
        return []
    if has_stayed(loss, held_back) or _sours(loss, held_back):
        return []  # it was about where training began: what was learned was learned by heart
    outsize = is_outsize(loss, held_back)
    return finding(
        "data",
        "warning",
        f"the training loss fell to {loss.now:.3g}, and the held-back loss never followed: it "
        f"is at {found.level:.3g}",
        {
            "held_back": found.level,
            "gap": found.gap,
            "apart_threshold": limit["apart"],
            "best_held_back": float(held_back.values.min()),
            "loss_fall": loss.fall,
            "outsize": outsize,
        },
        since=int(held_back.steps[0]),
        cause="held-back data is not of the kind that is trained on: scaled otherwise"
        + (
            ", by how much it costs"
            if outsize
            else ", other classes, other labels, or one batch that is trained on for ever"
        ),
        advice=[
            "send both through the same preparation, with the same numbers",
            "check that every batch is a new one, and that all classes are in it",
            "look at examples of both with their labels",
        ],
        signs=[above(found.gap, limit["apart"])],
        fix=Fix("scale_inputs" if outsize else "check_labels"),
    )


def _sours(loss: Losses, held_back: Losses) -> bool:
    """Was it about guessing at the first look, and worse at each since? That came by training."""
    values = held_back.values
    began = len(values) >= SEVERAL and values[0] < SLIGHTLY * abs(loss.reference)
    return bool(began and (np.diff(values) > 0).all() and not is_outsize(loss, held_back))


def _behind(loss: Losses, held_back: Losses, limit: Limits) -> Behind | None:
    # One that comes down all along is followed in its own way: a contrast among more examples.
    comes = held_back.values.min() < (1 - limit["comes"]) * held_back.values[0]
    found = None if comes else left_behind(loss, held_back, limit["apart"], 0.0)
    return found or worse_than_guessing(loss, held_back, limit["apart"]) or _worse(loss, held_back)


def _worse(loss: Losses, held_back: Losses) -> Behind | None:
    """Return the height of a held-back loss that began far from the training loss and got worse."""
    half = held_back.n // 2
    if held_back.n < SEVERAL or not is_outsize(loss, held_back) or loss.now <= 0:
        return None
    early, late = (float(each.min()) for each in (held_back.values[:half], held_back.values[half:]))
    return Behind(late, late / loss.now, late / loss.size) if late > SLIGHTLY * early else None
