"""Labels that teach nothing: steps and gradients are sound, and nothing is learned."""

from __future__ import annotations

import numpy as np

from ...records.runs import RunFinding
from ..signs.decay import decay_that_wins, is_ruled
from ..signs.degrees import CLEARLY, LONG, MOST, PART, SLIGHTLY
from ..signs.harms import Harm, crawls, stuck
from ..signs.held_back import held_back_loss, is_blind, is_by_heart, is_flat, is_on_its_way
from ..signs.layers import initial_scales
from ..signs.limits import Limits
from ..signs.losses import Losses, levels
from ..signs.outputs import explains_nothing
from ..signs.rates import is_torn_by_momentum, points_at_height
from ..signs.recurrence import is_recurrent
from ..signs.sight import Sight
from ..signs.wording import above, below, finding
from .causes import why_nothing_is_learned
from .thinning import patience

_REPLACED = 1.0  # update by weight of such a step, and weights by kaiming's
_WORSE = -0.1  # share by which a held-back loss falls: below, it rose, and does not rest


def labels(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find a loss that no sound step and no gradient brings down."""
    loss, held_back = seen.loss, held_back_loss(seen.history)
    blind, flat = is_blind(held_back, loss, limit), is_flat(held_back, limit)
    most = limit["blind_fall" if blind else "fall"]
    pace = _healthy_pace(seen, limit)
    if pace is None or seen.is_warming_up or decay_that_wins(seen) is not None or is_ruled(seen):
        return []
    if is_on_its_way(held_back, loss) or _was_taught(held_back, loss):
        return []
    # What is learned by heart is learned: neither a saddle nor a first plateau excuses it.
    heart = blind and is_by_heart(held_back, loss, limit)
    if seen.is_waking and seen.layers.path < limit["path"] and not heart:
        return []
    told = (
        stuck(loss, _least(seen, limit, blind or flat, heart), most) if loss.fall < most else None
    )
    fastest = _fastest_fall(loss)
    falls = not (blind or flat) and (fastest is None or fastest > limit["pace"])
    # A loss that is all but gone within a hundred steps is of few examples: that is over-fitting.
    falls = falls or (fastest or 0.0) > limit["blind_fall"]
    if falls or (held_back is not None and held_back.n >= 3 and held_back.fall > limit["fall"]):
        told = None
    least = _least(seen, limit, True, heart)
    told = told or explains_nothing(seen, least, limit["explained"])
    if told is None:
        return []
    why = why_nothing_is_learned(seen)
    return finding(
        "data",
        "warning",
        f"steps are of a usual size ({pace:.1g} of the weights) and gradients reach every "
        f"layer, yet nothing is learned: {told.said}",
        {
            "loss_fall": loss.fall,
            "fall_threshold": most,
            "update_by_weight": pace,
            "points": loss.n,
            "fastest_fall_a_100_steps": fastest,
            "pace_threshold": limit["pace"],
            "validation_fall": None if held_back is None else held_back.fall,
            "chance": loss.chance,
            "never_below_chance": blind,
        },
        since=_untaught_since(loss, told),
        cause=why.cause,
        advice=why.advice,
        signs=[below(max(loss.fall, 0.0), most)],
        fix=why.fix,
    )


def _was_taught(held_back: Losses | None, loss: Losses) -> bool:
    """Was held-back data ever answered far better than by guessing? Then labels say something."""
    if held_back is None or not held_back.n or loss.chance is None:
        return False
    begins = 0.7 * loss.chance <= loss.start <= 10 * loss.chance
    return begins and float(held_back.values.min()) < MOST * loss.chance


def _untaught_since(loss: Losses, told: Harm) -> int:
    """Return the step since which nothing is learned.

    Labels that say nothing leave a loss about where it began. One that is far above that, and was
    below it before, was thrown there, and did not begin to teach nothing with the run.
    """
    course = levels(loss.values, loss.width)
    taught = np.flatnonzero(course < MOST * loss.start)
    if loss.now < CLEARLY * loss.start or not len(taught):
        return told.since
    return int(loss.steps[taught[-1] + loss.width - 1])


def frequent(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find a loss that fell a little below guessing and then, held-back data too, no further.

    What answers without looking at its inputs ends there: it knows which labels are frequent. The
    held-back loss has no noise of batches, so it shows that nothing moves any more.
    """
    loss, held_back = seen.loss, held_back_loss(seen.history)
    if loss.chance is None or held_back is None or held_back.n < 2 * limit["blind_values"]:
        return []
    least = _least_of(seen, limit)
    told = crawls(loss, int(1.5 * least)) if 0 <= loss.fall < 1 - limit["noisy"] else None
    early, now = held_back.late_levels
    fell = 1 - now / max(early, 1e-300)
    lowest = float(held_back.values.min()) / loss.chance
    # Who knows which labels are frequent does better than guessing, of held-back data too.
    if told is None or not _WORSE < fell <= limit["flat"] or not limit["noisy"] <= lowest < 1:
        return []
    late = float(np.median(held_back.values[-int(limit["blind_values"]) :]))
    if late > SLIGHTLY * float(held_back.values.min()):
        return []  # it was better, and lost that again
    if _healthy_pace(seen, limit) is None or seen.is_warming_up:
        return []
    if seen.is_waking and seen.layers.path < limit["path"]:
        return []
    return finding(
        "data",
        "warning",
        f"the loss rests at {loss.now:.4g}, {loss.fall:.0%} below guessing, and the held-back "
        f"loss moved by {fell:.1%} over the latter half",
        {
            "loss_fall": loss.fall,
            "late_fall": fell,
            "flat_threshold": limit["flat"],
            "held_back_by_guessing": lowest,
            "noisy_threshold": limit["noisy"],
        },
        since=told.since,
        cause="the answers hardly depend on the inputs, and know which labels are frequent: "
        "the inputs say nothing of the labels, or do not get through",
        advice=[
            "look at some examples with their labels, as the model gets them",
            "fit a single batch: where that fails, look at the model",
        ],
        signs=[above(lowest, limit["noisy"])],
        fix=why_nothing_is_learned(seen).fix,
    )


def _least(seen: Sight, limit: Limits, blind: bool, heart: bool) -> int:
    """Say how many points must pass before labels are doubted."""
    young = seen.layers.path < limit["path"] and not heart
    if is_recurrent(seen.history) and young:
        return int(limit["recurrent_points"])
    points = int(limit["blind_points" if blind else "points"])
    if is_recurrent(seen.history) and not heart:
        points = max(points, int(limit["far_points"]))
    return _of_examples(points, seen, limit)


def _least_of(seen: Sight, limit: Limits) -> int:
    """Say how many points must pass before a loss that rests is doubted."""
    if not is_recurrent(seen.history):
        return _of_examples(int(limit["points"]), seen, limit)
    young = seen.layers.path < limit["path"]
    return _of_examples(int(limit["recurrent_points" if young else "points"]), seen, limit)


def _of_examples(points: int, seen: Sight, limit: Limits) -> int:
    """Return these points, or more where batches are small, or dropout leaves little of them."""
    least = max(points, int(limit["examples"]) // seen.batch) if seen.batch else points
    return int(least * patience(seen))


def _healthy_pace(seen: Sight, limit: Limits) -> float | None:
    """Return the usual update by weight where steps and gradients are sound in every layer."""
    typical, gradients = seen.layers.typical_update, seen.layers.recent(seen.layers.gradient)
    if typical is None or gradients is None or not np.isfinite(typical).any():
        return None
    if _are_replaced(seen) or is_torn_by_momentum(seen):
        return None
    if seen.points > LONG > points_at_height(seen):  # fewer teach nothing, whatever labels are
        return None  # a schedule let the steps die before anything could be learned
    pace = float(np.nanmedian(typical))
    pulls = gradients[np.isfinite(gradients) & seen.layers.trained]
    # Decay moves weights that get no gradient at all.
    reached = len(pulls) and pulls.min() >= 1e-3 * pulls.max() > 0
    return pace if reached and limit["slowest"] <= pace <= limit["fastest"] else None


def _are_replaced(seen: Sight) -> bool:
    """Did first steps leave nothing of weights of a usual size? What comes after is small by that.

    Weights that start at next to nothing grow in their first steps, and that is no harm.
    """
    typical, scales = seen.layers.typical_update, initial_scales(seen.layers)
    if typical is None or not len(scales) or float(np.nanmedian(scales)) < PART:
        return False
    return float(np.nan_to_num(typical[:3]).max(initial=0.0)) >= _REPLACED


def _fastest_fall(loss: Losses) -> float | None:
    """Return the fastest fall that the noise allows, in shares of the start per 100 steps."""
    from difflens.stats.trend import theil_sen

    half = loss.n // 2
    slope = theil_sen(loss.steps[half:].astype(float), loss.values[half:] / loss.size)
    return None if slope is None or slope.low is None else -100 * slope.low
