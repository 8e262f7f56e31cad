"""What two models learned beside their base, how that clashes, and whether one is a blend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import acos, isfinite, sin, sqrt
from statistics import median
from typing import Any, NamedTuple

from difflens.core.dtypes import ROUNDING
from difflens.core.policy import Threshold

from ..answer import Answer
from ..diff import Diff
from ..evidence.records import Evidence
from ..methods.merging import Ancestry, Sums, Three, added, sums
from . import analysis


@analysis(
    thresholds={
        "density": Threshold(
            0.2, "part of each task vector that trimming keeps, by magnitude (TIES)"
        ),
        "merge_r2": Threshold(0.999, "R² above which the right model lies between others"),
        "stable": Threshold(0.01, "spread of coefficients over tensors below which they are one"),
    },
    fields={
        "cosine": "<t1, t2> / (‖t1‖ ‖t2‖), t1 = left - base, t2 = right - base",
        "sign_conflict": "entries of opposite sign, of those where both are not zero",
        "overlap": "entries kept by trimming of both, of all",
        "elected_sign_agreement": "part of sum |t| after trimming that has the sign of the sum",
        "norms": "‖t1‖ and ‖t2‖, and both relative to ‖base‖",
        "overlap_conflict": "of these, with opposite signs",
        "zero_share": "entries of each task vector that are exactly zero",
        "merge": "least squares of t2 on t1, and the nearest point of the arc from base to left",
        "blend": "least squares of RIGHT on LEFT and every --checkpoint, weights that add up to"
        " one",
        "elements": "numbers that are finite in all three models",
        "null": "independent task vectors: overlap, and sd of cosine (0) and sign conflict (0.5)",
        "excess": "measured less what independent task vectors would give",
        "tensors": "one entry a tensor",
    },
)
def task_vectors(diff: Diff, evidence: Evidence, answer: Answer) -> None:
    """What each model learned beside the base, how these clash, and whether one is a merge."""
    _say_blend(answer, evidence)
    ready = diff.has_values and bool(diff.pairs)
    if not ready or not evidence.base or not all(each.has_values for each in evidence.base):
        needs = "--base" if ready else "tensor values"
        why = "a task vector is the way from a common base" if ready else "no value was read"
        answer.lack_rest(needs=needs, why=why, status=None if diff.pairs else "not_applicable")
    else:
        _say(answer, Ancestry(*evidence.base))


def _say(answer: Answer, ancestry: Ancestry) -> None:
    threes = ancestry.threes()
    taken = [(three, sums(ancestry, three, answer["density"])) for three in threes]
    whole = added([Sums(), *(each for _, each in taken)])
    fits = {
        three.name: found for three, each in taken if (found := fit(each, _noise(ancestry, three)))
    }
    values = _figures(whole)
    values["merge"] = _merge(answer, list(fits.values()))
    values["tensors"] = [_entry(three, each, fits.get(three.name)) for three, each in taken] or None
    for field, value in values.items():
        answer.either(
            field,
            value,
            needs="two models that both moved away from the base",
            why="no parameter of all three models moved in both, or none finitely",
        )
    missing = len(ancestry.to_left.deltas) - len(threes)
    if missing > 0:
        answer.assume(f"{missing} tensors are not float parameters of one shape in all three")
    answer.assume("trimming is done tensor by tensor; the base is taken to be the common ancestor")


def _figures(whole: Sums) -> dict[str, Any]:
    """Return what holds over all tensors; None if there is nothing to divide by."""
    n, size = whole.elements, sqrt(whole.left) * sqrt(whole.right)
    known = size > 0 and isfinite(size)
    shares = (whole.left_kept / n, whole.right_kept / n) if n else (0.0, 0.0)
    by_chance = shares[0] * shares[1]
    conflict = whole.conflicts / whole.both if whole.both else None
    cosine = max(-1.0, min(1.0, whole.dot / size)) if known else None
    overlap = whole.overlap / n if known else None
    return {
        "cosine": cosine,
        "norms": _norms(whole) if n and isfinite(size) else None,
        "sign_conflict": conflict,
        "overlap": overlap,
        "overlap_conflict": whole.overlap_conflicts / whole.overlap if whole.overlap else None,
        "elected_sign_agreement": whole.elected_mass / whole.kept_mass if whole.kept_mass else None,
        "zero_share": {"left": whole.left_zeros / n, "right": whole.right_zeros / n} if n else None,
        "elements": n,
        "null": {
            "cosine_sd": 1 / sqrt(n),
            "sign_conflict_sd": 0.5 / sqrt(whole.both),
            "overlap": by_chance,
            "overlap_sd": sqrt(by_chance * (1 - by_chance) / n),
            "n": n,
        }
        if known and whole.both
        else None,
        "excess": {
            "cosine": cosine,
            "sign_conflict": conflict - 0.5,
            "overlap": overlap - by_chance,
            "n": n,
        }
        if cosine is not None and conflict is not None and overlap is not None
        else None,
    }


def _norms(whole: Sums) -> dict[str, float | None]:
    base = sqrt(whole.base)
    return {
        "left": sqrt(whole.left),
        "right": sqrt(whole.right),
        "left_relative": sqrt(whole.left) / base if base else None,
        "right_relative": sqrt(whole.right) / base if base else None,
    }


def _merge(answer: Answer, fits: list[Fit]) -> dict[str, Any] | None:
    """Say where the right model lies: on the line, on the arc, or on neither."""
    if not fits:
        return None
    coefficients = [each.coefficient for each in fits]
    arcs = [each.arc for each in fits if each.arc is not None]
    r2 = min(each.r2 for each in fits)
    arc_r2 = min((0.0 if each.arc_r2 is None else each.arc_r2) for each in fits)
    spread = max(coefficients) - min(coefficients)
    return {
        "kind": _kind(r2, arc_r2, answer["merge_r2"]),
        "coefficient": median(coefficients),
        "coefficient_spread": spread,
        "is_one_coefficient": spread <= answer["stable"],
        "r2": r2,
        "slerp_t": median(arcs) if arcs else None,
        "slerp_r2": arc_r2,
        "tensors": len(fits),
    }


def _kind(r2: float, arc_r2: float, limit: float) -> str:
    """Name the curve it lies on; where both fit, the one that leaves a tenth of the other."""
    if max(r2, arc_r2) <= limit:
        return "none"
    if 1 - r2 <= (1 - arc_r2) / 10 and r2 > arc_r2:
        return "linear"
    if 1 - arc_r2 <= (1 - r2) / 10 and arc_r2 > r2:
        return "slerp"
    return "linear_or_slerp"


def _entry(three: Three, each: Sums, found: Fit | None) -> dict[str, Any]:
    size = sqrt(each.left) * sqrt(each.right)
    return {
        "name": three.name,
        "cosine": each.dot / size if size > 0 and isfinite(size) else None,
        "sign_conflict": each.conflicts / each.both if each.both else None,
        "overlap": each.overlap / each.elements if size > 0 else None,
        "coefficient": found.coefficient if found else None,
        "r2": found.r2 if found else None,
        "slerp_t": found.arc if found else None,
        "slerp_r2": found.arc_r2 if found else None,
    }


def _noise(ancestry: Ancestry, three: Three) -> float:
    """The relative mean square error that storing the right model makes: at most ulp² / 12."""
    dtype = ancestry.to_right.values("right", three.right).info.dtype
    unit = 2.0 ** -ROUNDING[dtype][1] if dtype in ROUNDING else 0.0
    return float(unit * unit / 12)


def _say_blend(answer: Answer, evidence: Evidence) -> None:
    trajectory = evidence.trajectory
    found = blend(trajectory.distances) if trajectory and len(trajectory.points) > 2 else None
    value = None
    if found and trajectory and all(map(isfinite, found.weights)):
        value = {
            "points": list(trajectory.points[:-1]),
            "weights": found.weights,
            "r2": found.r2,
            "least_r2": found.least_r2,
            "is_linear_merge": found.least_r2 > answer["merge_r2"],
        }
    answer.either(
        "blend",
        value,
        needs="--checkpoint for each model that RIGHT may be a merge of, beside LEFT",
        why="the models it may be made of were not handed in, or nothing moved",
    )


# Linear: right - base = c (left - base), c = <t1, t2> / ‖t1‖², R² = 1 - ‖t2 - c t1‖² / ‖t2‖². Arc
# (SLERP, Shoemake 1985): right = sin(t w) / sin w left + sin((1 - t) w) / sin w base, with w the
# angle between base and left.

_HIDDEN = 0.1  # where rounding could hide more than a tenth of a move, nothing is said of it


class Fit(NamedTuple):
    """The place of one tensor of the right model between base and left."""

    coefficient: float
    r2: float
    arc: float | None  # t of the nearest point of the arc
    arc_r2: float | None


def fit(sums: Sums, rounding: float) -> Fit | None:
    """Place one tensor; None if nothing moved, or rounding hides too much of it.

    `rounding` is the relative mean square error of the coarsest storage.
    """
    if sums.left == 0 and sums.right == 0:
        return None
    if sums.right == 0:
        return Fit(0.0, 1.0, 0.0, 1.0)
    norm = sums.base + 2 * sums.base_right + sums.right
    noise = rounding * max(0.0, norm)
    if not all(map(isfinite, sums)) or noise > _HIDDEN * sums.right:
        return None
    if sums.left == 0:
        return Fit(0.0, 0.0, None, None)
    c = sums.dot / sums.left
    r2 = _r2(sums.right - sums.dot * c, noise, sums.right)
    t = _nearest(sums)
    arc_r2 = None if t is None else _r2(_apart(sums, t), noise, sums.right)
    return Fit(c, r2, t, arc_r2)


def _r2(apart: float, noise: float, whole: float) -> float:
    return min(1.0, 1 - max(0.0, apart - noise) / whole)


def _nearest(sums: Sums) -> float | None:
    from scipy.optimize import minimize_scalar

    if _angle(sums) is None:
        return None
    found = minimize_scalar(
        lambda t: _apart(sums, t), bounds=(-0.5, 1.5), method="bounded", options={"xatol": 1e-9}
    )
    return float(found.x)


def _angle(sums: Sums) -> float | None:
    left = sums.base + 2 * sums.base_left + sums.left
    size = sqrt(sums.base) * sqrt(max(0.0, left))
    if size == 0:
        return None
    angle = acos(max(-1.0, min(1.0, (sums.base + sums.base_left) / size)))
    return angle if sin(angle) > 1e-9 else None


def _apart(sums: Sums, t: float) -> float:
    """‖right - arc(t)‖², by differences from the base so that nothing large cancels."""
    angle = _angle(sums) or 0.0
    a, b = sin(t * angle) / sin(angle), sin((1 - t) * angle) / sin(angle)
    e = 1 - a - b
    squares = e * e * sums.base + sums.right + a * a * sums.left
    crossed = e * sums.base_right - e * a * sums.base_left - a * sums.dot
    return max(0.0, squares + 2 * crossed)


class Blend(NamedTuple):
    """Weights of several models that add up to one, and how much of the move they explain."""

    weights: list[float]
    r2: float
    least_r2: float  # of the tensor they explain least


def blend(distances: Mapping[str, Sequence[Sequence[float]]]) -> Blend | None:
    """Find the weights of all points but the last that come nearest to it.

    `distances[name][i][j]` is ‖W_i - W_j‖²; with the first point as origin, <W_i - W_0, W_j - W_0>
    = (d_0i + d_0j - d_ij) / 2, which is all that least squares needs.
    """
    import numpy as np

    grams = [_gram(np.array(each, np.float64)) for each in distances.values()]
    if not grams:
        return None
    whole = sum(grams[1:], grams[0])
    target = whole[-1, -1]
    if len(whole) < 2 or not np.isfinite(whole).all() or target <= 0:
        return None
    found = np.linalg.lstsq(whole[:-1, :-1], whole[:-1, -1], rcond=None)[0]
    least = min(_explained(gram, found) for gram in grams)
    weights = [1 - float(found.sum()), *found.tolist()]
    return Blend(weights, _explained(whole, found), least)


def _gram(apart: Any) -> Any:
    return (apart[0, 1:, None] + apart[None, 0, 1:] - apart[1:, 1:]) / 2


def _explained(gram: Any, weights: Any) -> float:
    whole = float(gram[-1, -1])
    rest = whole - 2 * float(weights @ gram[:-1, -1]) + float(weights @ gram[:-1, :-1] @ weights)
    return 1 - max(0.0, rest) / whole if whole > 0 else float(rest <= 0)
