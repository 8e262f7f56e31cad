"""Classes that training hardly counts: held-back data is answered worse than by guessing at first.

Which classes are frequent is learned before all else. Where training and held-back data agree on
that, no held-back loss is above guessing once the training loss is far below it. Where they do
not, answers are sure and wrong, and get better only as the rare classes are learned at last. What
is learned by heart goes the other way: there the held-back loss rises.
"""

from __future__ import annotations

import numpy as np

from ...runs import Fix, RunFinding
from ..signs.held_back import held_back_loss
from ..signs.limits import Limits
from ..signs.proportions import proportions
from ..signs.sight import Sight
from ..signs.wording import above, finding

_RISE = 1.1  # times the value before: more, and it does not simply fall
_LEAPS = (
    0.5  # of the value before: statistics that a norm keeps settle so fast, no class is learned
)


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
    falls = bool((moves < _RISE).all() and (moves > _LEAPS).all())
    if found.least < limit["neglected_gap"] or first < limit["neglected"] or not falls:
        return []
    if float(np.mean(held_back.values[-3:])) > float(np.mean(held_back.values[:2])):
        return []
    return [
        finding(
            "data",
            "warning",
            f"held-back data cost {first:.2g} times what guessing does at first, and costs "
            f"{found.middle:.3g} times as much as training data all along, though it falls",
            {"first_by_guessing": first, "neglected_threshold": limit["neglected"],
             "held_back_by_training": found.middle, "gap_threshold": limit["neglected_gap"],
             "held_back_fall": found.fall, "looks": found.looks},
            since=int(seen.steps[0]),
            cause="classes that count in held-back data hardly count in training: they are rare "
            "there, or weighed the wrong way round",
            advice=["count the labels of both",
                    "weigh classes by how seldom they are, or draw them evenly",
                    "check that weights of classes are not turned round"],
            signs=[above(first, 1.0), above(found.least, limit["neglected_gap"] / 2)],
            fix=Fix("balance_classes"),
        )
    ]  # fmt: skip
