"""Rows and columns that died, and rows that became copies of others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...diffs import Diff
from ...measure.norms import Norms
from ...records import Delta
from ..anatomy.roles import is_parameter
from .anomaly import Anomaly, Case, Detection, band

if TYPE_CHECKING:
    from numpy.typing import NDArray


def dead_units(case: Case) -> Detection:
    """Rows or columns that are newly all zero; one with a bias that is not zero still speaks."""
    found: list[Anomaly] = []
    tested = 0
    for delta, norms in case.diff.measured(Norms):
        if not _is_weight(delta):
            continue
        tested += 1
        if not (norms.newly_zero_rows or norms.newly_zero_columns):
            continue
        rows, columns = _dead(case.diff, delta)
        share = max(rows / norms.rows, columns / norms.columns)
        severity = band(share, case.limits["dead_steps"])
        if severity:
            text = f"{rows} of {norms.rows} rows and {columns} of {norms.columns} columns died"
            numbers = {"rows": float(rows), "columns": float(columns), "share": share}
            found.append(Anomaly("dead_units", delta.name, text, numbers, severity))
    return Detection("dead_units", tested, tuple(found))


def duplicated_rows(case: Case) -> Detection:
    """Rows that are newly the same numbers as another one."""
    found: list[Anomaly] = []
    tested = 0
    for delta, norms in case.diff.measured(Norms):
        if not _is_weight(delta) or norms.columns < case.limits["least_columns"]:
            continue
        tested += 1
        if norms.newly_duplicate_rows:
            text = f"{norms.newly_duplicate_rows} of {norms.rows} rows became copies of others"
            numbers = {"newly_duplicate_rows": float(norms.newly_duplicate_rows)}
            found.append(Anomaly("duplicated_rows", delta.name, text, numbers, "low"))
    return Detection("duplicated_rows", tested, tuple(found))


def _is_weight(delta: Delta) -> bool:
    left, right = delta.pair.left, delta.pair.right
    return bool(left and right and is_parameter(delta.name, left.dtype, right.dtype))


def _dead(diff: Diff, delta: Delta) -> tuple[int, int]:
    """Count rows and columns that became zero and whose bias, where there is one, is zero too."""
    if delta.pair.left is None or delta.pair.right is None:
        return 0, 0
    before = _zeros(diff.values("left", delta.pair.left.name))
    after = _zeros(diff.values("right", delta.pair.right.name))
    dead = [now & ~was for was, now in zip(before, after, strict=True)]
    silent = _silent(diff, delta.pair.right.name)
    for at, units in enumerate(dead):
        if silent is not None and silent.shape == units.shape:
            dead[at] = units & silent
            break  # a square matrix gives its bias to the rows
    return int(dead[0].sum()), int(dead[1].sum())


def _zeros(values: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    import numpy as np

    rows, columns = values.matrix_shape
    row_zero, column_zero = np.ones(rows, bool), np.ones(columns, bool)
    start = 0
    for block in values.rows():
        used = block != 0
        row_zero[start : start + len(block)] = ~used.any(axis=1)
        column_zero &= ~used.any(axis=0)
        start += len(block)
    return row_zero, column_zero


def _silent(diff: Diff, weight: str) -> NDArray[Any] | None:
    """Say where the bias beside a weight is zero; None where there is none."""
    import numpy as np

    stem, dot, last = weight.rpartition(".")
    bias = f"{stem}{dot}bias"
    there = any(pair.right and pair.right.name == bias for pair in diff.pairs)
    if last != "weight" or not there:
        return None
    return np.asarray(diff.values("right", bias).array() == 0).ravel()
