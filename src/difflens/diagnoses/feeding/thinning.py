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
# A share p that is dropped puts noise of p/(1-p) times the signal's power into every unit.
_DROWNED = 2.0
_ORDINARY = 1.0  # half is dropped
_BLURRED = 0.4  # three tenths are


def thinned(seen: Sight) -> list[RunFinding]:
    """Find a loss that is high beside dropout that drowns, or as only noise in training makes it.

    Where dropout was recorded it is known, and what is ordinary is no fault; else a training loss
    that was above guessing when the held-back loss was below it tells.
    """
    return _drowned(seen) or _inferred(seen)


def _drowned(seen: Sight) -> list[RunFinding]:
    noise, told = _noise(seen), crawls(seen.loss, _POINTS)
    if told is None or not is_drowned(seen):
        return []
    dropped = noise / (1 + noise)
    return [
        finding(
            "plateau",
            "warning",
            f"{told.said}, and dropout takes {dropped:.0%} of what passes",
            {"dropout": dropped, "noise_by_signal": noise, "noise_threshold": _DROWNED,
             "harm": told.said},
            since=told.since,
            cause="dropout leaves too little (the share to keep given as the share to drop?)",
            advice=[f"lower dropout to {_USUAL:g}, and check which share the argument means"],
            signs=[above(noise, _DROWNED / 2)],
            fix=Fix("lower_dropout", {"value": _USUAL}),
        )
    ]  # fmt: skip


def _noise(seen: Sight) -> float:
    """Give the power of the noise that recorded dropout makes, by that of the signal."""
    dropped = seen.history.fact("dropout")
    if not isinstance(dropped, (int, float)) or not 0 <= dropped < 1:
        return 0.0
    return dropped / (1 - dropped)


def _inferred(seen: Sight) -> list[RunFinding]:
    found = _held_apart(seen)
    told = crawls(seen.loss, _POINTS)
    loss = seen.loss
    if found is None or told is None or loss.chance is None or loss.now < _HIGH * loss.chance:
        return []
    if 0 < _noise(seen) <= _ORDINARY:
        return []  # it is known what parts the two, and that training stands as much
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


def is_drowned(seen: Sight) -> bool:
    """Does recorded dropout put more noise into the network than it leaves of the signal?"""
    return _noise(seen) >= _DROWNED


def is_blurred(seen: Sight) -> bool:
    """Does recorded dropout put so much noise into training that its loss is higher by that?"""
    return _noise(seen) >= _BLURRED


def patience(seen: Sight) -> float:
    """Say how many times as long learning may take: of what passes, dropout leaves 1 - p."""
    return 1 + _noise(seen)


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
