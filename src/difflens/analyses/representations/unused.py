"""Rows that training seems never to have touched: all zeros, or as long as at the start.

A row drawn as N(0, s²) in n dimensions has a length near s sqrt(n), within about s / sqrt(2) (Land
and Bartolo 2024 look for such rows to find tokens that were never trained). What s was is in the
config; without it only zeros are told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...diffs import Diff
from ...evidences import Evidence
from ...measure.embeddings import row_squares
from ..anatomy.settings import settings
from .vocabulary import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DEVIATIONS = 3.0


def unused_rows(
    diff: Diff, table: Table, evidence: Evidence, most: int
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Count them on each side, list the first, and say what was assumed."""
    found: dict[str, dict[str, Any]] = {}
    lines = []
    squares = None
    for side, info in (("left", table.left), ("right", table.right)):
        if squares is None or not table.identical:
            squares = row_squares(diff.values(side, info.name))  # type: ignore[arg-type]
        deviation = _deviation(diff, evidence, side)
        found[side] = _unused(squares, info.shape[1], deviation, most)
        if deviation is None:
            lines.append(f"{side}: no config says `initializer_range`, so of rows that were never"
                         " trained only zeros are counted")  # fmt: skip
    return found, lines


def _unused(
    squares: NDArray[Any], width: int, deviation: float | None, most: int
) -> dict[str, Any]:
    import numpy as np

    zeros = squares == 0
    found: dict[str, Any] = {"zero": int(zeros.sum()), "initial": None}
    rows = np.flatnonzero(zeros)
    if deviation is not None:
        expected, spread = deviation * width**0.5, deviation / 2**0.5
        initial = np.abs(np.sqrt(squares) - expected) <= _DEVIATIONS * spread
        found["initial"] = int(initial.sum())
        rows = np.flatnonzero(zeros | initial)
    return {**found, "of": len(squares), "first": [int(row) for row in rows[:most]]}


def _deviation(diff: Diff, evidence: Evidence, side: str) -> float | None:
    handed = (evidence.left if side == "left" else evidence.right).config
    value = settings(handed, diff.described[side]).value("initializer_range")
    return float(value) if isinstance(value, int | float) and 0 < value < 1 else None
