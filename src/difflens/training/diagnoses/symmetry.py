"""Units that are all alike: with weights of zero each gets the same gradient, or none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflens.core.policy import Policy, Threshold

from ..detectors.signs.degrees import SEVERAL, SHORT
from ..detectors.signs.harms import Harm, crawls, rests, stuck
from ..detectors.signs.layers import are_clipped, inputs, units
from ..detectors.signs.limits import Limits
from ..detectors.signs.sight import Sight, sight
from ..detectors.signs.starts import scheme
from ..detectors.signs.wording import above, below, finding
from ..history.history import History
from ..records.runs import Fix, RunFinding
from . import diagnosis

THRESHOLDS = {
    "share": Threshold(
        0.5,
        "share of the weight matrices that start at zero: single ones are a "
        "custom (the last of a residual branch, the second of an adapter)",
    ),
    "points": Threshold(5, "points over which the loss must be stuck"),
    "flat": Threshold(
        1.05,
        "largest entry of a matrix's first gradient by the mean of all: random "
        "weights make 3 and more",
    ),
}


@diagnosis(needs=("weight_l2", "loss"), window=5, thresholds=THRESHOLDS)
def symmetry(history: History, policy: Policy) -> Iterator[RunFinding]:
    """Find weight matrices that start at zero and keep their units alike."""
    limit = Limits("symmetry", policy, THRESHOLDS)
    seen = sight(history)
    norms = seen.layers.field("weight_l2")
    told = stuck(seen.loss, limit["points"]) or rests(seen.loss, 60) or crawls(seen.loss, 60)
    if norms is None or seen.points < limit["points"] or len(norms[0]) < 2:
        return
    trained = seen.layers.trained
    columns = [i for i in np.flatnonzero(trained) if norms[0, i] == 0]
    found = [] if columns else _tiled(seen, limit, told)
    if found or told is None:
        yield from found
        return
    if not columns:
        yield from _copied(seen, limit, told) or _alike(seen, limit, told)
        return
    share = len(columns) / max(int(trained.sum()), 1)
    if share < limit["share"]:
        yield from _copied(seen, limit, told)
        return
    still = sum(bool((norms[:, i] == 0).all()) for i in columns)
    names = seen.layers.named(columns)
    yield from finding(
        "symmetry",
        "critical",
        f"{len(names)} weight matrices start at zero, {still} are zero still; {told.said}",
        {
            "zero_matrices": len(names),
            "zero_still": still,
            "share": share,
            "share_threshold": limit["share"],
            "loss_fall": told.figure,
        },
        since=int(seen.steps[0]),
        layers=names,
        cause="all units of a layer compute the same, so they get the same gradient and stay alike",
        advice=["initialise the weights at random (kaiming or xavier); only biases may be zero"],
        signs=[above(share, limit["share"] / 2)],
        fix=Fix("reinitialise", {"scheme": scheme(seen), "layers": names}),
    )


def _tiled(seen: Sight, limit: Limits, told: Harm | None) -> list[RunFinding]:
    """Find matrices whose units were seen to start as the same numbers each.

    No harm is asked for where hidden layers do: that many units are worth one is harm, and a loss
    falls all the same as far as one unit takes it.
    """
    found = seen.history.fact("alike_units")
    named = {str(each) for each in found} if isinstance(found, (list, tuple)) else set()
    trained = seen.layers.named(np.flatnonzero(seen.layers.trained))
    names = [each for each in trained if each in named]
    share = len(names) / max(len(trained), 1)
    if share < limit["share"] and not _gives_nothing_back(seen, names):
        names = _in_a_row(seen, named)  # the others are told apart by what stands behind them
    if not names:
        return []
    told = told or _narrowed(seen, names, trained)
    if told is None:
        return []
    said = (
        f"all units of {names[0]} start as the same numbers, and those of {len(names) - 1} more "
        "matrices"
    )
    cause = "one row was copied to all: units that compute the same get the same gradient"
    advice = ["initialise every unit at random (kaiming or xavier)"]
    return _finding(seen, limit, told, (names, share, said), cause=cause, advice=advice)


def _in_a_row(seen: Sight, named: set[str]) -> list[str]:
    """Return those of the matrices one of which reads what another makes.

    The units between two of them get the same inputs and, back through equal weights, the same
    gradient: they stay one for good, however few such layers there are.
    """
    columns = np.flatnonzero(seen.layers.trained)
    layers = [seen.layers.of(int(each)) for each in columns]
    found = [
        i
        for i in range(len(layers) - 1)
        if {layers[i].name, layers[i + 1].name} <= named
        and units(layers[i]) == inputs(layers[i + 1]) > 1
    ]
    return [layers[i].name for i in sorted({each for i in found for each in (i, i + 1)})]


def _narrowed(seen: Sight, names: list[str], trained: list[str]) -> Harm | None:
    """Tell that hidden layers are one unit wide; outputs alike are told apart by their targets."""
    if not set(names) & set(trained[:-1]):
        return None
    said = "each of these layers is worth a single unit"
    return Harm("alike", int(seen.steps[0]), seen.loss.fall, said)


def _gives_nothing_back(seen: Sight, names: list[str]) -> bool:
    """Do the outputs alone start alike, did so nothing come back at first, and is the loss stuck?

    Slopes of scores have a sum of zero, and through equal weights nothing else passes back. Zeros
    in their place are a custom, and not looked at here.
    """
    gradients = seen.layers.field("grad_l2")
    if gradients is None or names != seen.layers.last or stuck(seen.loss, SHORT) is None:
        return False
    before = gradients[0, :-1][seen.layers.trained[:-1]]
    return bool(len(before) and (before == 0).all())


def _copied(seen: Sight, limit: Limits, told: Harm) -> list[RunFinding]:
    """Find layers side by side that start as copies and get the same gradients."""
    columns = copies(seen)
    share = len(columns) / max(int(seen.layers.trained.sum()), 1)
    if not columns or share < limit["share"]:
        return []
    names = seen.layers.named(columns)
    said = (
        f"{len(names)} matrices have a twin with the same weights and the same gradients, "
        f"{names[0]} among them"
    )
    cause = (
        "layers side by side (experts, heads) start as copies, and what weighs them treats them "
        "alike: they stay one"
    )
    advice = ["initialise each of them at random", "let what weighs them start at random"]
    return _finding(seen, limit, told, (names, share, said), cause=cause, advice=advice)


def _finding(
    seen: Sight,
    limit: Limits,
    told: Harm,
    found: tuple[list[str], float, str],
    *,
    cause: str,
    advice: list[str],
) -> list[RunFinding]:
    """Tell of matrices that start alike: which, what share of all they are, and how it shows."""
    names, share, said = found
    return finding(
        "symmetry",
        "warning" if told.kind == "alike" else "critical",
        f"{said}; {told.said}",
        {
            "matrices": len(names),
            "share": share,
            "share_threshold": limit["share"],
            "loss_fall": told.figure,
        },
        since=int(seen.steps[0]),
        layers=names,
        cause=cause,
        advice=advice,
        signs=[above(share, limit["share"] / 2)],
        fix=Fix("reinitialise", {"scheme": scheme(seen), "layers": names}),
    )


def _alike(seen: Sight, limit: Limits, told: Harm) -> Iterator[RunFinding]:
    """Find matrices all of whose entries get one and the same gradient: units that are alike.

    Between two layers of units that are alike every weight has the same gradient, whatever the
    constant is that they start from.
    """
    largest, usual = seen.layers.field("grad_max_abs"), seen.layers.field("grad_mean_abs")
    if largest is None or usual is None:
        return
    columns = [
        i
        for i in np.flatnonzero(seen.layers.trained)
        if 0 < largest[0, i] < limit["flat"] * usual[0, i]
        and min(seen.layers.of(int(i)).shape or (0,)) > 1
    ]
    if not columns or are_clipped(seen.layers):
        return
    names = seen.layers.named(columns)
    flatness = float(np.max(largest[0, columns] / usual[0, columns]))
    yield from finding(
        "symmetry",
        "critical",
        f"all weights of {names[0]} get the same gradient: its units are alike; {told.said}",
        {
            "matrices": len(names),
            "largest_by_mean": flatness,
            "flat_threshold": limit["flat"],
            "loss_fall": told.figure,
        },
        since=int(seen.steps[0]),
        layers=names,
        cause="weights that start from one constant get the same gradient and stay alike",
        advice=["initialise the weights at random (kaiming or xavier)"],
        signs=[below(flatness - 1, max(limit["flat"] - 1, 1e-9))],
        fix=Fix("reinitialise", {"scheme": scheme(seen), "layers": names}),
    )


# Experts or heads that start as copies stay so where what weighs them treats them alike: each gets
# the gradient of the others. Two matrices drawn at random never have one norm to six digits, nor do
# two that stand one behind the other have one gradient.

_SAME = 1e-5  # of a norm: by this much sums in another order differ
_VARIES = 1e-3  # of a gradient, from point to point: batches differ


def copies(seen: Sight) -> list[int]:
    """Return the columns of matrices that have a twin of the same make, in network order."""
    weights, gradients = seen.layers.field("weight_l2"), seen.layers.field("grad_l2")
    if weights is None or gradients is None or len(weights) < SEVERAL:
        return []
    course = np.concatenate([weights[:SHORT], gradients[:SHORT]]).astype(np.float64)
    pulls = gradients[:SHORT]
    kinds: dict[Any, list[int]] = {}
    for i in np.flatnonzero(seen.layers.trained):
        layer = seen.layers.of(int(i))
        if not np.isfinite(course[:, i]).all() or weights[0, i] <= 0:
            continue
        if np.ptp(pulls[:, i]) > _VARIES * np.max(pulls[:, i]) > 0:
            make = (layer.kind, layer.shape, re.sub(r"\d+", "#", layer.name))
            kinds.setdefault(make, []).append(int(i))
    return sorted(i for group in kinds.values() for i in group if _has_twin(course, i, group))


def _has_twin(course: NDArray[Any], i: int, group: list[int]) -> bool:
    # First by one number each: there may be thousands of experts.
    near = np.array(group)[np.abs(course[0, group] - course[0, i]) <= _SAME * course[0, i]]
    apart = np.abs(course[:, near] - course[:, [i]])
    return int((apart <= _SAME * course[:, [i]]).all(axis=0).sum()) > 1  # itself, and another
