"""Tensors whose size changed unlike that of their role, and matrices with a new direction."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from math import exp, inf, isfinite, log, sqrt
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from difflens.measure.gram import Gram, finite
from difflens.measure.matrices import Matrix, chunks, matrix_of
from difflens.models.anatomy.roles import role
from difflens.stats.samples import robust_deviation

from ...answer import Question
from ..changes.energy import Moved, moved_parameters
from ..spectra import outliers
from .anomaly import Anomaly, Detection, band

if TYPE_CHECKING:
    from numpy.typing import NDArray


_NUMBER = re.compile("[0-9]+")
_CHANCE = 4.5  # deviations of ln ratio between two draws of n values that chance never makes


class Sized(NamedTuple):
    """A tensor, ln of its rms ratio, that of its like, how far it is from them, and their number.

    `usual` is the median of the others of the same name but for numbers, else that of all others;
    0 where they are fewer than two.
    """

    moved: Moved
    log_ratio: float
    z: float | None
    peers: int
    usual: float


def weight_explosion(asked: Question) -> Detection:
    """A tensor at least twice as large, unlike others of its role."""
    found = []
    sized = _sized(asked)
    for each in sized:
        severity = band(exp(min(each.log_ratio, 700.0)), asked.answer["ratio_steps"])
        if severity and _stands_out(each, asked):
            text = f"rms grew {exp(min(each.log_ratio, 700.0)):.3g} times"
            found.append(
                Anomaly("weight_explosion", each.moved.name, text, _numbers(each), severity)
            )
    return Detection("weight_explosion", len(sized), tuple(found))


def weight_collapse(asked: Question) -> Detection:
    """A tensor at most half as large, unlike others of its role; or one value only, newly."""
    found, sized = [], _sized(asked)
    for moved in moved_parameters(asked.diff):
        flat = _flattened(moved)
        if flat:
            found.append(flat)
    flattened = {each.where for each in found}
    for each in sized:
        severity = band(exp(min(-each.log_ratio, 700.0)), asked.answer["ratio_steps"])
        if severity and each.moved.name not in flattened and _stands_out(each, asked):
            text = f"rms shrank {exp(min(-each.log_ratio, 700.0)):.3g} times"
            found.append(
                Anomaly("weight_collapse", each.moved.name, text, _numbers(each), severity)
            )
    return Detection("weight_collapse", len(moved_parameters(asked.diff)), tuple(found))


def _sized(asked: Question) -> list[Sized]:
    """Hold ln(rms right / rms left) against the role's: z = 0.6745 (x - median) / MAD.

    Iglewicz & Hoaglin (1993), "How to Detect and Handle Outliers". Identical tensors are no like:
    what nobody touched says nothing of how far a change goes.
    """
    groups: dict[tuple[str, bool], list[tuple[Moved, float]]] = defaultdict(list)
    for moved in moved_parameters(asked.diff):
        before, after = moved.scan.left_square_sum, moved.scan.right_square_sum
        if min(before, after) > 0 and isfinite(before) and isfinite(after):
            is_vector = len(moved.scan.shape) < 2  # biases begin near zero, and grow
            groups[role(moved.name), is_vector].append((moved, log(after / before) / 2))
    return [each for group in groups.values() for each in _scored(group)]


def _scored(group: list[tuple[Moved, float]]) -> Iterable[Sized]:
    values = [value for _, value in group]
    middle = median(values)
    spread = float(robust_deviation(values, middle))
    alike: dict[str, list[float]] = defaultdict(list)
    for moved, value in group:
        alike[_pattern(moved)].append(value)
    for moved, value in group:
        away = abs(value - middle)
        z = away / spread if spread else (inf if away else 0.0)
        others = alike[_pattern(moved)] if len(alike[_pattern(moved)]) > 2 else values
        yield Sized(moved, value, z, len(group), _median_of_others(others, value))


def _pattern(moved: Moved) -> str:
    return _NUMBER.sub("*", moved.name)


def _median_of_others(values: list[float], own: float) -> float:
    others = list(values)
    others.remove(own)
    return median(others) if len(others) > 1 else 0.0


def _stands_out(each: Sized, asked: Question) -> bool:
    """Is it more than chance, and (where there are enough) unlike its role?"""
    if abs(each.log_ratio) <= _CHANCE / sqrt(each.moved.scan.pairs):
        return False
    if abs(each.log_ratio - each.usual) < log(asked.answer["ratio_steps"][0]):
        return False  # what all of them do is not the fault of one
    few = each.peers < asked.answer["least_group"]
    return few or each.z is None or each.z > asked.answer["robust_z"]


def _numbers(each: Sized) -> dict[str, float | None]:
    known = each.z is not None and isfinite(each.z)
    return {
        "log_ratio": each.log_ratio,
        "robust_z": each.z if known else None,
        "tensors_of_its_role": float(each.peers),
    }


def _flattened(moved: Moved) -> Anomaly | None:
    scan, name = moved.scan, moved.name
    if scan.count < 2 or scan.right_nonfinite or scan.left_min == scan.left_max:
        return None
    if scan.right_min != scan.right_max:
        return None
    if scan.right_min == 0:
        text, severity = "all zeros now", "critical"
    else:
        text, severity = f"all its values are {scan.right_min:.4g} now", "high"
    numbers = {"value": scan.right_min, "elements": float(scan.count)}
    return Anomaly("weight_collapse", name, text, numbers, severity)  # type: ignore[arg-type]


# Spectra are dear, so they are taken only where they can have changed so much: from
# σ₁(right) <= σ₁(left) + ‖d‖ and σ₁(left) >= ‖left‖ / sqrt(k), a ratio r of the largest singular
# values needs ‖d‖ / ‖left‖ >= (r - 1) / sqrt(k), k the smaller side.

_LARGEST = 1 << 26  # elements of a matrix that is held as a whole
_FULL = 2048  # smaller side up to which all singular values are taken
_ITERATIONS, _SEED = 5, 0  # a value thrice the others outgrows 768 of them in three
_SLACK = 0.8  # a power iteration stops short of the largest singular value


def spectral_spike(asked: Question) -> Detection:
    """A singular value that stands out of the noise newly, three times the largest of before."""
    found: list[Anomaly] = []
    tested = 0
    for moved in moved_parameters(asked.diff):
        matrix = matrix_of(moved.delta.pair.right)
        if matrix is None or matrix.stack > 1:
            continue
        tested += 1
        if _is_possible(moved, matrix, asked.answer["spike_ratio"]):
            spike = _spike(asked, moved, matrix)
            if spike:
                found.append(spike)
    return Detection("spectral_spike", tested, tuple(found))


def _is_possible(moved: Moved, matrix: Matrix, ratio: float) -> bool:
    far = moved.scan.relative_l2
    fits = matrix.small_side <= _FULL and matrix.rows * matrix.columns <= _LARGEST
    return fits and far is not None and far >= (ratio - 1) / sqrt(matrix.small_side)


def _spike(asked: Question, moved: Moved, matrix: Matrix) -> Anomaly | None:
    left, right = moved.delta.pair.left, moved.delta.pair.right
    if left is None or right is None:
        return None
    ratio, pair = asked.answer["spike_ratio"], moved.delta.pair
    both = asked.diff.values("left", left.name, pair), asked.diff.values("right", right.name, pair)
    rough = [_leading(each, matrix) for each in both]
    if not rough[0] or rough[1] / rough[0] < _SLACK * ratio:
        return None
    values = [_all(each, matrix) for each in both]
    grew = float(values[1][0] / values[0][0])
    told = [
        outliers(
            each.tolist(),
            matrix.rows,
            matrix.columns,
            asked.answer["spike_alpha"],
            asked.answer["spike_bulk"],
        )
        for each in values
    ]
    before, after = told[0]["outliers"], told[1]["outliers"]
    if grew < ratio or before is None or after is None or after <= before:
        return None
    numbers = {
        "ratio": grew,
        "left_outliers": float(before),
        "right_outliers": float(after),
        "edge": told[1]["edge"],
        "largest": float(values[1][0]),
    }
    text = (
        f"{after - before} new singular values above the noise, the largest grew {grew:.3g} times"
    )
    return Anomaly("spectral_spike", moved.name, text, numbers, "medium")


def _leading(values: Any, matrix: Matrix) -> float:
    """Approach the largest singular value from below by power iteration."""
    import numpy as np

    with np.errstate(over="ignore"):
        whole = np.asarray(values.span(0, values.info.count), np.float32)
    size = float(np.abs(whole).max())
    if not np.isfinite(size):
        whole = np.where(np.isfinite(whole), whole, 0)
        size = float(np.abs(whole).max())
    if not size:
        return 0.0
    whole = (whole / np.float32(size)).reshape(matrix.rows, matrix.columns)
    vector = np.random.default_rng(_SEED).standard_normal(matrix.columns, np.float32)
    grown = 0.0
    for _ in range(_ITERATIONS):
        vector /= np.linalg.norm(vector) or 1.0
        image = whole @ vector
        grown = float(np.linalg.norm(image))
        vector = whole.T @ image
    return grown * size


def _all(values: Any, matrix: Matrix) -> NDArray[Any]:
    gram = Gram(matrix.small_side, tall=matrix.is_tall, precise=True)
    for each in chunks(values, matrix):
        gram.add(finite(each))
    return gram.values()
