"""Matrices that grew a direction of their own: a new outlier of the spectrum, three times as large.

Spectra are dear, so they are taken only where they can have changed so much: from
σ₁(right) <= σ₁(left) + ‖d‖ and σ₁(left) >= ‖left‖ / sqrt(k), a ratio r of the largest singular
values needs ‖d‖ / ‖left‖ >= (r - 1) / sqrt(k), k the smaller side.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any

from ...diffs import Diff
from ...measure.differences import finite
from ...measure.gram import Gram
from ...measure.matrices import Matrix, chunks, matrix_of
from ..changes.energy import Moved, moved_parameters
from ..spectra.bulk import outliers
from .anomaly import Anomaly, Case, Detection

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LARGEST = 1 << 26  # elements of a matrix that is held as a whole
_FULL = 2048  # smaller side up to which all singular values are taken
_ITERATIONS, _SEED = 5, 0  # a value thrice the others outgrows 768 of them in three
_SLACK = 0.8  # a power iteration stops short of the largest singular value


def spectral_spike(case: Case) -> Detection:
    """A singular value that stands out of the noise newly, three times the largest of before."""
    found: list[Anomaly] = []
    tested = 0
    for moved in moved_parameters(case.diff):
        matrix = matrix_of(moved.delta.pair.right)
        if matrix is None or matrix.stack > 1:
            continue
        tested += 1
        if _is_possible(moved, matrix, case.limits["spike_ratio"]):
            spike = _spike(case, moved, matrix)
            if spike:
                found.append(spike)
    return Detection("spectral_spike", tested, tuple(found))


def _is_possible(moved: Moved, matrix: Matrix, ratio: float) -> bool:
    far = moved.scan.relative_l2
    fits = matrix.small_side <= _FULL and matrix.rows * matrix.columns <= _LARGEST
    return fits and far is not None and far >= (ratio - 1) / sqrt(matrix.small_side)


def _spike(case: Case, moved: Moved, matrix: Matrix) -> Anomaly | None:
    left, right = moved.delta.pair.left, moved.delta.pair.right
    if left is None or right is None:
        return None
    ratio, sides = case.limits["spike_ratio"], (("left", left.name), ("right", right.name))
    rough = [_leading(case.diff, side, name, matrix) for side, name in sides]
    if not rough[0] or rough[1] / rough[0] < _SLACK * ratio:
        return None
    values = [_all(case.diff, side, name, matrix) for side, name in sides]
    grew = float(values[1][0] / values[0][0])
    told = [outliers(each.tolist(), matrix.rows, matrix.columns, case.limits["spike_alpha"],
                     case.limits["spike_bulk"]) for each in values]  # fmt: skip
    before, after = told[0]["outliers"], told[1]["outliers"]
    if grew < ratio or before is None or after is None or after <= before:
        return None
    numbers = {"ratio": grew, "left_outliers": float(before), "right_outliers": float(after),
               "edge": told[1]["edge"], "largest": float(values[1][0])}  # fmt: skip
    text = (
        f"{after - before} new singular values above the noise, the largest grew {grew:.3g} times"
    )
    return Anomaly("spectral_spike", moved.name, text, numbers, "medium")


def _leading(diff: Diff, side: Any, name: str, matrix: Matrix) -> float:
    """Approach the largest singular value from below by power iteration."""
    import numpy as np

    values = diff.values(side, name)
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


def _all(diff: Diff, side: Any, name: str, matrix: Matrix) -> NDArray[Any]:
    gram = Gram(matrix.small_side, tall=matrix.is_tall, precise=True)
    for each in chunks(diff.values(side, name), matrix):
        gram.add(finite(each))
    return gram.values()
