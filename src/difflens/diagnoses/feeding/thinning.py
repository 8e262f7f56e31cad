"""Noise that training puts into the network itself, so strong that hardly anything gets through.

Whatever the labels are, training can do as well as guessing: it makes its outputs small. A
training loss above guessing, while held-back data, answered by the same weights, costs less than
guessing, is no matter of labels then: in training mode the network computes something else.
Dropout does that, and so do norms of too few examples.
"""

from __future__ import annotations

from ...runs import Fix, RunFinding
from ..signs.harms import crawls
from ..signs.held_back import held_back_loss
from ..signs.proportions import Proportions, proportions
from ..signs.sight import Sight
from ..signs.wording import above, below, finding

_POINTS, _LOOKS = 150, 5
_HIGH = 0.6  # of guessing: where the training loss still is
_ABOVE, _BELOW = 1.02, 0.97  # of guessing: training and held-back loss at one look
_BETTER = 0.95  # held-back by training loss, at the middle of all looks
_HOT = 2.0  # times guessing: outputs that begin as large explain the first of it by themselves
_USUAL = 0.1  # dropout that training stands


def thinned(seen: Sight) -> list[RunFinding]:
    """Find a training loss that was above guessing when the held-back loss was below it."""
    found = _held_apart(seen)
    told = crawls(seen.loss, _POINTS)
    loss = seen.loss
    if found is None or told is None or loss.chance is None or loss.now < _HIGH * loss.chance:
        return []
    return [
        finding(
            "plateau",
            "warning",
            f"{told.said}; held-back data costs {found.middle:.2f} of that, and cost less than "
            "guessing when training data still cost more",
            {"held_back_by_training": found.middle, "better_threshold": _BETTER,
             "loss_by_guessing": loss.now / loss.chance, "high_threshold": _HIGH,
             "looks": found.looks},
            since=told.since,
            cause="what the network computes in training is mostly noise: dropout that leaves too "
            "little (the share to keep given as the share to drop?), or norms of too few examples",
            advice=[f"lower dropout to {_USUAL:g}, and check which share the argument means",
                    "take augmentation back", "where there are batch norms, enlarge the batch"],
            signs=[below(found.middle, 1.0), above(loss.now / loss.chance, _HIGH)],
            fix=Fix("lower_dropout", {"value": _USUAL}),
        )
    ]  # fmt: skip


def is_thinned(seen: Sight) -> bool:
    """Is it the network that is noisy, and not what it is given?"""
    return _held_apart(seen) is not None


def _held_apart(seen: Sight) -> Proportions | None:
    loss, held_back = seen.loss, held_back_loss(seen.history)
    if held_back is None or loss.chance is None or held_back.n < _LOOKS:
        return None
    if not 0.7 * loss.chance <= loss.start <= _HOT * loss.chance:
        return None
    found = proportions(loss, held_back)
    if found is None or found.middle > _BETTER or found.most > 1:
        return None
    crossed = (found.training >= _ABOVE * loss.chance) & (held_back.values <= _BELOW * loss.chance)
    # One that is above guessing at every look is a loss of another kind.
    return found if crossed.any() and found.training[-1] < loss.chance else None
