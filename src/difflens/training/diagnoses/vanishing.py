"""Gradients that fade on their way to the first layers, or back through time.

Layers are compared by r = rms(g)/rms(w), never by raw norms. That gradients are small is no fault
by itself: a trained network has small ones everywhere, so the loss must be stuck as well.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from difflens.core.policy import Policy, Threshold

from ..detectors.remembering.attention import sharp_attention
from ..detectors.remembering.memory import fading_memory
from ..detectors.signs.decay import certainty, collapsed, decay_that_wins, weaker_penalty
from ..detectors.signs.degrees import HALF, HARDLY, LASTING, PART
from ..detectors.signs.fading import (
    FIRST,
    are_dead,
    factor_a_layer,
    faded,
    has_sigmoids,
    is_blocked,
    is_faint_at_the_end,
    is_work_of_steps,
    sizes_of,
    tiny,
    wall,
)
from ..detectors.signs.gates import asking
from ..detectors.signs.harms import Harm, crawls, rests, stood, stuck
from ..detectors.signs.inputs import TOO_SMALL, input_size
from ..detectors.signs.layers import are_clipped
from ..detectors.signs.limits import Limits
from ..detectors.signs.outputs import explains_nothing
from ..detectors.signs.passing import why
from ..detectors.signs.rates import has_ended
from ..detectors.signs.sight import Sight, sight
from ..detectors.signs.silence import starved
from ..detectors.signs.standing import stood_held_back
from ..detectors.signs.wording import above, below, finding
from ..history.history import History
from ..records.runs import Fix, RunFinding
from . import diagnosis

THRESHOLDS = {
    "ratio": Threshold(
        1e-3, "r of the faintest layers by that of the strongest layer: healthy nets stay within 30"
    ),
    "faint": Threshold(
        1e-5,
        "r of the middle layer by the size of the loss: below, nothing "
        "of the loss reaches the weights, whatever the depth",
    ),
    "first_ratio": Threshold(
        2e-3, "the same ratio before the first update, where the loss rests: healthy 0.01 and more"
    ),
    "first_faint": Threshold(
        2e-4, "r of the middle layer by the loss before the first update: healthy 0.001 and more"
    ),
    "sigmoid_ratio": Threshold(
        0.025, "the same where sigmoids pass on a quarter at most: three of them make 0.016"
    ),
    "sigmoid_points": Threshold(40, "points for which sigmoids may wake up by themselves"),
    "tiny": Threshold(
        0.2, "first weights by kaiming's, without normalisation: frameworks start at 0.4 and more"
    ),
    "rest_points": Threshold(60, "points before a loss that fell can be called resting"),
    "stood_points": Threshold(30, "points for which a loss that fell later must have stood still"),
    "stood_share": Threshold(0.1, "share of the run for which it must have"),
    "points": Threshold(12, "points over which the loss must be stuck before a word is said"),
    "recurrent_gain": Threshold(
        0.55,
        "|W_hh|/sqrt(n) of a plain recurrent layer: 0.55^10 is a four-hundredth; frameworks start "
        "at 0.577 and more, which learns what is near",
    ),
    "recurrent_points": Threshold(40, "the same for fading in time, which shows later"),
}
_SOUND_DECAY = 1e-4


@diagnosis(needs=("grad_l2", "weight_l2", "loss"), window=12, thresholds=THRESHOLDS)
def vanishing(history: History, policy: Policy) -> Iterator[RunFinding]:
    """Find gradients that fade towards the input, or in time, while the loss is stuck."""
    limit = Limits("vanishing", policy, THRESHOLDS)
    seen = sight(history)
    least = max(limit["stood_points"], limit["stood_share"] * seen.loss.n)
    told = stuck(seen.loss, limit["points"]) or stood(seen.loss, least)
    told = told or stood_held_back(seen, least)
    # A first loss far above guessing falls to it by the last bias alone.
    told = told or explains_nothing(seen, limit["rest_points"], HARDLY)
    size = input_size(seen)
    if seen.is_warming_up or (size is not None and size < TOO_SMALL):
        return  # where next to nothing goes in, nothing can fade
    if are_clipped(seen.layers) or has_ended(seen):
        return  # a bound, or the end of a schedule, keeps the steps small
    found = _blocked(seen, limit)
    if not found and told is not None:
        found = (
            _decayed(seen, told)
            or _with_depth(seen, limit, told)
            or fading_memory(seen, limit, told)
        )
    rest = told or rests(seen.loss, limit["rest_points"])
    if not found and rest is not None and (rest.figure < HALF or _passes_nothing(seen)):
        found = _decayed(seen, rest)
    if not found and rest is not None:
        found = _with_depth(seen, limit, rest._replace(kind=FIRST))
    suffers = rest or crawls(seen.loss, limit["rest_points"])
    if not found and suffers is not None:
        found = sharp_attention(seen, suffers)
    yield from found


def _passes_nothing(seen: Sight) -> bool:
    """Did every matrix lose four fifths, the last one too? One that stays passes much on."""
    weights = seen.layers.weights
    if weights is None or collapsed(seen) is None:
        return False
    return bool((weights[-1] < PART * weights[0])[seen.layers.trained].all())


def _decayed(seen: Sight, told: Harm) -> list[RunFinding]:
    """Find weights that decay takes away faster than gradients build them."""
    decay, left = decay_that_wins(seen), collapsed(seen)
    if decay is None and left is None:
        return []
    under = "" if decay is None else f" under a decay of {decay:.3g}"
    return finding(
        "vanishing",
        "critical" if seen.loss.n >= LASTING else "warning",
        f"the weights lost more than half of their size{under}; {told.said}",
        {"weight_decay": decay, "left": left, "loss_fall": told.figure},
        since=told.since,
        layers=seen.layers.named(np.flatnonzero(seen.layers.trained)),
        cause="weight decay, or a penalty in the loss, takes more from the weights than "
        "gradients give them, until nothing passes through",
        advice=[
            "lower the weight decay to 0.01 (AdamW) or 0.0001 (SGD)",
            "lower the weight of penalties in the loss",
        ],
        signs=[certainty(seen)],
        fix=weaker_penalty(seen)
        if decay is None
        else Fix("regularise", {"weight_decay": _SOUND_DECAY}),
    )


def _with_depth(seen: Sight, limit: Limits, told: Harm) -> list[RunFinding]:
    """Find gradients that fade from layer to layer, towards the input."""
    layers, columns = seen.layers, np.flatnonzero(seen.layers.trained)
    sizes = sizes_of(seen, told, columns)
    if sizes is None:
        return []
    first = told.kind == FIRST
    strongest = int(np.argmax(sizes))
    # The slope of a cross entropy is at most one, that of a squared error the root of it.
    slope = min(seen.loss.size, seen.loss.size**0.5)
    least = limit["first_faint" if first else "faint"] * slope
    ratios, middle = sizes / sizes[strongest], float(np.median(sizes))
    most = _least_ratio(seen, limit, first)
    because = why(seen, columns)
    beside = [*because.gates, *asking(layers, columns)]
    faint = faded(ratios, strongest, most, beside=beside)
    if middle < least and not is_faint_at_the_end(seen, slope):
        faint = np.flatnonzero(sizes < least).tolist()
    if not faint and first:
        faint = tiny(seen, limit["tiny"], columns)
    if not faint or are_dead(seen, columns, sizes):
        return []
    if not first and is_work_of_steps(seen, columns, faint, most):
        return []  # told by what the loss suffers from these steps
    faintest = float(ratios[faint].min())
    if limit["ratio"] <= faintest and seen.loss.n < limit["sigmoid_points"] and not first:
        return []
    # The first of those that are faint alike: what fades is lost on the way to the input.
    order = sorted(faint, key=lambda i: (round(float(np.log10(max(ratios[i], 1e-30))) / 2), i))
    ahead = because.gates or wall(ratios, faint, strongest, beside=beside)
    order = ahead + [i for i in order if i not in ahead]
    return finding(
        "vanishing",
        "critical" if seen.loss.n >= LASTING and told.kind == "stuck" else "warning",
        f"gradients fade to {faintest:.1g} of their size from "
        f"{layers.named([columns[strongest]])[0]} to "
        f"{layers.named([columns[order[0]]])[0]} ({len(faint)} of {len(columns)} layers); "
        f"{told.said}",
        {
            "faintest_by_strongest": faintest,
            "ratio_threshold": most,
            "faint_layers": len(faint),
            "layers": len(columns),
            "factor_a_layer": factor_a_layer(sizes, strongest),
            "loss_fall": told.figure,
        },
        since=told.since,
        layers=because.norms or layers.named(columns[order]),
        cause=f"each layer passes on a part of the gradient only: {because.cause}, and a deep "
        "stack multiplies the parts",
        advice=because.advice,
        signs=[max(below(faintest, most), below(middle, least))],
        fix=because.fix,
    )


def _blocked(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find matrices none of which gets any gradient, while the last layer does.

    No harm is asked for: outputs that do not depend on inputs are harm.
    """
    columns = np.flatnonzero(seen.layers.trained)
    if seen.points < limit["points"] or not is_blocked(seen, columns):
        return []
    because = why(seen, columns)
    if starved(seen) and not because.norms:
        return []  # units that are dead, and told there
    return finding(
        "vanishing",
        "critical" if seen.loss.n >= LASTING else "warning",
        f"the gradients of {len(columns) - 1} matrices before the last are exactly zero: "
        "nothing passes through them, and the outputs do not depend on the inputs",
        {"faintest_by_strongest": 0.0, "faint_layers": len(columns) - 1, "points": seen.points},
        since=int(seen.steps[0]),
        layers=because.norms or seen.layers.named(columns[:-1]),
        cause=f"a layer multiplies what it gets by zero: {because.cause}",
        advice=because.advice,
        signs=[above(seen.points, limit["points"] / 2)],
        fix=because.fix,
    )


def _least_ratio(seen: Sight, limit: Limits, first: bool) -> float:
    """Return the ratio below which a layer is faint: sigmoids fade by their nature, and slowly."""
    if first:
        return float(limit["first_ratio"])
    return float(limit["sigmoid_ratio" if has_sigmoids(seen) else "ratio"])
