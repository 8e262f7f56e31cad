"""Data that training cannot use: not scaled, in sorted order, or with labels that say nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..records import Policy, Threshold
from ..runs import RunFinding
from . import diagnosis
from .feeding.classes import neglected
from .feeding.elsewhere import elsewhere
from .feeding.forgetting import forgotten
from .feeding.inputs import alike, far_targets, swelled, unscaled
from .feeding.labels import frequent, labels, noisy
from .feeding.onset import begun
from .feeding.order import changed, in_order
from .feeding.thinning import is_drowned
from .signs.inputs import TOO_SMALL
from .signs.leaps import LEAP
from .signs.limits import Limits
from .signs.sight import sight

if TYPE_CHECKING:
    from ..history.history import History

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
    "cleaner": Threshold(0.93, "held-back loss by training loss: below, training data is worse"),
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
    yield from found or elsewhere(seen, limit) or noisy(seen, limit) or frequent(seen, limit)
