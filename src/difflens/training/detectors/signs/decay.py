"""Whether weight decay takes more from the weights than gradients give them."""

from __future__ import annotations

import numpy as np

from ...records.runs import Fix
from .degrees import ALMOST, CLEARLY, FEW, HALF, NEARLY, PART, SEVERAL, SHORT, THRICE
from .layers import median
from .sight import Sight
from .wording import above, below

OVER = 4.0  # rate times decay
_STRONG = 1e-3  # a decay below it takes a thousandth a step at a rate of one


def decay_that_wins(seen: Sight) -> float | None:
    """Return the weight decay of the optimiser where it took the matrices away.

    Either half of their size is gone, or they shrink while decay pulls several times as hard as
    the gradient: w * decay is added to it, so r = |g|/|w| compares with the decay itself. Where
    decay is decoupled (AdamW) that says nothing, since gradients are scaled there.
    """
    given, weights = seen.history.info.optimizer.get("weight_decay"), seen.layers.weights
    if not isinstance(given, (int, float)) or given < _STRONG or weights is None:
        return None
    if overdone(seen) is not None:
        return float(given)
    trained = weights[:, seen.layers.trained]
    if len(trained) < 2 or not trained.size or not (trained[0] > 0).all() or _is_torn(seen):
        return None
    left = median(trained / trained[0], axis=1)
    if bool(np.nanmin(left) < HALF):  # what decay of a usual strength leaves far behind a whole run
        return float(given)
    return float(given) if left[-1] < NEARLY and _outpulls(seen, float(given)) else None


def collapsed(seen: Sight) -> float | None:
    """Return what is left of the matrices where they lost four fifths, whatever took it.

    A penalty in the loss does what decay does, and no optimiser tells of it. Healthy weights keep
    more than half; those that a huge first step threw up are measured from before it. Where each of
    the first steps made them smaller, these tore nothing (steps across weights make them larger),
    and half is enough: a pull of one size whatever the weights ends where it overshoots zero.
    """
    weights = seen.layers.weights
    if weights is None or len(weights) < SHORT:
        return None
    trained = weights[:, seen.layers.trained]
    if not trained.size or not (trained[0] > 0).all():
        return None
    with np.errstate(all="ignore"):
        left = float(median(trained[-1] / trained[0], axis=0))
    if _is_drawn_in(seen):
        return left if left < HALF else None
    return left if left < PART and not _is_torn(seen) else None


def certainty(seen: Sight) -> float:
    """Say how sure it is that decay won: by what is left of the matrices, or taken a step."""
    weights = seen.layers.weights
    if weights is None or not len(weights):
        return 0.0
    trained = weights[:, seen.layers.trained]
    with np.errstate(all="ignore"):
        left = median(trained / trained[0], axis=1)
    least = float(np.nanmin(left)) if np.isfinite(left).any() else 1.0
    return max(below(least, NEARLY), above(_taken(seen), OVER))


def is_ruled(seen: Sight) -> bool:
    """Is the gradient of every matrix the same share of its weights, while these shrink?

    That is the gradient of their squares: a term of the loss outweighs what data say, whose
    gradients differ from layer to layer and from batch to batch.
    """
    gradients, weights = (seen.history.course.field(name) for name in ("grad_l2", "weight_l2"))
    layers = seen.history.info.layers
    chosen = [
        i
        for i, each in enumerate(layers)
        if each.role == "weight" and each.trainable and len(each.shape) > 1
    ]
    if gradients is None or weights is None or len(weights) < 2 * SHORT or len(chosen) < FEW:
        return False
    with np.errstate(all="ignore"):
        shares = gradients[-SHORT:, chosen] / weights[-SHORT:, chosen]
        left = weights[-1, chosen] / weights[0, chosen]
    if not np.isfinite(shares).all() or not (shares > 0).all() or not np.isfinite(left).all():
        return False
    alike = float(np.median(shares.max(axis=1) / shares.min(axis=1))) < CLEARLY
    return alike and bool(left.max() < NEARLY)


def weaker_penalty(seen: Sight) -> Fix | None:
    """Ask for a penalty so weak that by itself it would halve the weights in several such runs.

    What it takes a step is in proportion to it, so the time in which half was lost tells by how
    much it is too strong.
    """
    weights = seen.layers.weights
    if weights is None or len(weights) < SHORT or collapsed(seen) is None:
        return None
    trained = weights[:, seen.layers.trained]
    halved = np.flatnonzero(median(trained / trained[0], axis=1) < HALF)
    if not len(halved):
        return None
    return penalty_by(seen, np.log(2) / max(int(seen.steps[halved[0]] - seen.steps[0]), 1))


def penalty_by(seen: Sight, pace: float) -> Fix:
    """Ask for the penalty that moves ln |w| by so little a step, where it moved it by `pace`.

    A pace that is negative made the weights grow: the sign is turned with it.
    """
    steps = max(int(seen.steps[-1] - seen.steps[0]), 1)
    return Fix("scale_penalty", {"factor": float(f"{np.log(2) / (SEVERAL * steps * pace):.2g}")})


def overdone(seen: Sight) -> float | None:
    """Return how many times the weights decay takes in a step, where they grow by it for certain.

    w - t w is larger than w beyond t = 2, and beyond nearly 4 where momentum holds it back.
    """
    taken = _taken(seen)
    return taken if taken > OVER else None


def _is_torn(seen: Sight) -> bool:
    """Were the first steps half as large as the weights? What is left then is their work.

    But for what decay itself takes at each step: rate times decay, where both are as strong.
    """
    typical = seen.layers.typical_update
    first = 0.0 if typical is None else float(np.nan_to_num(typical[:3]).max(initial=0.0))
    return first > max(HALF, CLEARLY * _taken(seen))  # the gradient makes no more of it


def _is_drawn_in(seen: Sight) -> bool:
    """Did each of the first steps make most matrices smaller?"""
    after = seen.layers.field("weight_l2")
    if after is None or len(after) <= FEW:
        return False
    sizes = after[: FEW + 1, seen.layers.trained]
    with np.errstate(all="ignore"):
        kept = sizes[1:] / sizes[:-1]
    return bool(sizes.size and (median(kept, axis=1) < ALMOST).all())


def _taken(seen: Sight) -> float:
    """Return what decay takes from the weights in the first step, as a part of them.

    It is known where decay is decoupled (AdamW), or gradients are not scaled (SGD).
    """
    given, rates = seen.history.info.optimizer, seen.lr
    name, decay = str(given.get("name", "")).lower(), given.get("weight_decay")
    known = name == "sgd" or given.get("decoupled_weight_decay", name == "adamw")
    if not known or rates is None or not len(rates) or not isinstance(decay, (int, float)):
        return 0.0
    return float(np.nan_to_num(rates[0])) * float(decay)


def _outpulls(seen: Sight, decay: float) -> bool:
    pull = seen.layers.recent(seen.layers.gradient, SHORT)
    if pull is None or str(seen.history.info.optimizer.get("name", "")).lower() == "adamw":
        return False
    known = pull[seen.layers.trained]
    known = known[np.isfinite(known)]
    return bool(len(known) and decay > THRICE * float(np.median(known)))
