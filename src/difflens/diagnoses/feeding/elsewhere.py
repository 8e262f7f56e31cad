"""Held-back data that is of another kind than what is trained on: what is learned does not hold."""

from __future__ import annotations

import numpy as np

from ...runs import Fix, RunFinding
from ..signs.held_back import (
    Behind,
    has_followed,
    has_soured,
    has_stayed,
    held_back_loss,
    is_outsize,
    left_behind,
    worse_than_guessing,
)
from ..signs.limits import Limits
from ..signs.losses import Losses
from ..signs.sight import Sight
from ..signs.wording import above, finding

_WORSE = 1.1  # best of the latter half by best of the first: it gets worse, in whatever units
_LOOKS, _RISING = 6, 4


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
    return [
        finding(
            "data",
            "warning",
            f"the training loss fell to {loss.now:.3g}, and the held-back loss never followed: it "
            f"is at {found.level:.3g}",
            {"held_back": found.level, "gap": found.gap, "apart_threshold": limit["apart"],
             "best_held_back": float(held_back.values.min()), "loss_fall": loss.fall,
             "outsize": outsize},
            since=int(held_back.steps[0]),
            cause="held-back data is not of the kind that is trained on: scaled otherwise"
            + (", by how much it costs" if outsize else ", other classes, other labels, or one "
               "batch that is trained on for ever"),
            advice=["send both through the same preparation, with the same numbers",
                    "check that every batch is a new one, and that all classes are in it",
                    "look at examples of both with their labels"],
            signs=[above(found.gap, limit["apart"])],
            fix=Fix("scale_inputs" if outsize else "check_labels"),
        )
    ]  # fmt: skip


def _sours(loss: Losses, held_back: Losses) -> bool:
    """Was it about guessing at the first look, and worse at each since? That came by training."""
    values = held_back.values
    began = len(values) >= _RISING and values[0] < _WORSE * abs(loss.reference)
    return bool(began and (np.diff(values) > 0).all() and not is_outsize(loss, held_back))


def _behind(loss: Losses, held_back: Losses, limit: Limits) -> Behind | None:
    # One that comes down all along is followed in its own way: a contrast among more examples.
    comes = held_back.values.min() < (1 - limit["comes"]) * held_back.values[0]
    found = None if comes else left_behind(loss, held_back, limit["apart"], 0.0)
    return found or worse_than_guessing(loss, held_back, limit["apart"]) or _worse(loss, held_back)


def _worse(loss: Losses, held_back: Losses) -> Behind | None:
    """Give how high a held-back loss is that was never near where training began, and got worse."""
    half = held_back.n // 2
    if held_back.n < _LOOKS or not is_outsize(loss, held_back) or loss.now <= 0:
        return None
    early, late = (float(each.min()) for each in (held_back.values[:half], held_back.values[half:]))
    return Behind(late, late / loss.now, late / loss.size) if late > _WORSE * early else None
