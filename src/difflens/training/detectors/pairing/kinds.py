"""A training loss that is of another kind than the held-back loss, and does not serve it.

Both are of one network and of the same kind of examples, so computed alike they begin about equal.
One that is out of all proportion from the first look on is computed otherwise. That alone is no
fault: sums, penalties and second parts of a loss do it in sound runs, whose held-back loss falls.
"""

from __future__ import annotations

import numpy as np

from ...records.runs import Fix, RunFinding
from ..signs.degrees import CLEARLY, HARDLY, LITTLE, MOST, PART, SEVERAL, SHORT, SOME, THRICE, TWICE
from ..signs.harms import rests
from ..signs.held_back import held_back_loss
from ..signs.limits import Limits
from ..signs.losses import Losses
from ..signs.proportions import Proportions, is_a_sum, proportions
from ..signs.sight import Sight
from ..signs.wording import above, finding


def two_kinds(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find a held-back loss that gets nothing from training on a loss of another kind."""
    loss, held_back = seen.loss, held_back_loss(seen.history)
    if held_back is None or loss.n < limit["kinds_points"] or loss.is_learned:
        return []
    if _is_of_another_sign(loss, held_back, limit):
        rose = f"the held-back loss, of another kind, rose to {held_back.values[-1]:.3g}"
        said = f"the training loss fell below zero, to {loss.now:.3g}, and {rose}"
        return _finding(seen, None, said, limit)
    found = proportions(loss, held_back)
    if found is None or found.looks < limit["kinds_looks"] or not _steps_are_sound(seen):
        return []
    told = _collapsed(loss, held_back, found, limit) or _runs_away(loss, held_back)
    told = told or _rests_below(seen, found, limit)
    return [] if told is None else _finding(seen, found, told, limit)


def _is_of_another_sign(loss: Losses, held_back: Losses, limit: Limits) -> bool:
    """Did training pass below zero while the held-back loss rose from far above its start?"""
    if held_back.n < limit["kinds_looks"] or loss.start <= 0 or loss.now >= 0:
        return False
    values = held_back.values
    return bool(values.min() > THRICE * loss.start and values[-1] > values[0])


def _collapsed(loss: Losses, held_back: Losses, found: Proportions, limit: Limits) -> str | None:
    """Say so where the training loss goes to nothing and the held-back loss stands far above it.

    A cross entropy that begins at guessing is left to other rules: there a held-back loss that
    high can be of the same kind, and is of other data.
    """
    first, values = float(held_back.values[0]), held_back.values
    if loss.chance is not None and 0.7 * loss.chance <= loss.start <= 10 * loss.chance:
        return None
    if found.least < limit["kinds_gap"] or first < THRICE * loss.size:
        return None
    moved = float(values.max() - values.min()) / first
    fell = 1 - loss.now / max(found.training[0], 1e-300)
    if found.fall > limit["kinds_fall"] or moved > LITTLE or fell < limit["kinds_left"]:
        return None
    return (
        f"the training loss fell to {loss.now:.3g}, and the held-back loss, of another kind, "
        f"stands at {float(values[-1]):.4g} since it is measured"
    )


def _runs_away(loss: Losses, held_back: Losses) -> str | None:
    """Say so where held-back data costs ever more while training falls, and not by heart.

    Answers that have nothing to do with squared targets cost twice what these vary by, no more:
    beyond that, what is measured takes the answers for something else (logarithms, say).
    """
    size, first, half = loss.size, float(held_back.values[0]), held_back.n // 2
    if loss.chance is not None or size <= 0 or held_back.n < SEVERAL:
        return None
    late = held_back.values[half:]
    level = float(np.median(late))
    grown = THRICE if first < TWICE * size else THRICE**2  # inputs that are larger cost so at once
    if level < max(THRICE * size, grown * first) or float(late.min()) < CLEARLY * size:
        return None
    if not PART * size < loss.now < MOST * size:
        return None
    return (
        f"the training loss fell to {loss.now:.3g}, and the held-back loss rose from {first:.3g} "
        f"to {level:.3g}, {level / size:.2g} times where training began"
    )


def _rests_below(seen: Sight, found: Proportions, limit: Limits) -> str | None:
    """Say so where both losses rest high, the held-back one a small part of the training loss."""
    told = rests(seen.loss, limit["kinds_points"])
    if told is None or found.most > 1 / limit["kinds_times"]:
        return None
    # What falls by some at every look is on its way, and a few looks are not all it will gain.
    if found.fall > limit["kinds_gain"] * min(found.looks / SHORT, 1.0):
        return None
    if is_a_sum(found.middle, seen.history) or found.middle < HARDLY:
        return None
    return (
        f"{told.said}, and the held-back loss, {found.middle:.2g} of it and so of another kind, "
        f"fell by {found.fall:.0%} since it is measured"
    )


def _steps_are_sound(seen: Sight) -> bool:
    """Are steps small beside the weights, and has the loss not risen? Else they are to blame."""
    return not seen.layers.usual_update >= SOME and seen.loss.now <= seen.loss.start


def _finding(seen: Sight, found: Proportions | None, said: str, limit: Limits) -> list[RunFinding]:
    evidence: dict[str, float] = (
        {}
        if found is None
        else {
            "held_back_by_training": found.middle,
            "held_back_fall": found.fall,
            "looks": found.looks,
        }
    )
    far = limit["kinds_gap"] if found is None else max(found.middle, 1 / found.middle)
    return finding(
        "loss-pairing",
        "warning",
        said,
        {
            **evidence,
            "kinds_gap_threshold": limit["kinds_gap"],
            "kinds_times_threshold": limit["kinds_times"],
        },
        since=int(seen.loss.steps[0]),
        cause="what is made small is not what is measured: another loss, which can be had without "
        "what the measured one wants (all answers alike, one label where several are right)",
        advice=[
            "train on the loss that is measured, or measure the one that is trained on",
            "look at the outputs of different examples: are they all the same?",
        ],
        signs=[above(far, limit["kinds_times"])],
        fix=Fix("match_loss"),
    )
