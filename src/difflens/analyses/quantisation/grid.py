"""Floats that are quantised all the same: each group of a row holds few values, evenly spaced.

A group of g weights is on a grid of b bits where it holds at most 2^b distinct values, fewer
than it could, and each is within rounding of origin + k x step with a whole k.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ...diffs import Diff
from ...dtypes import FLOATS, OPAQUE
from ...records import TensorInfo
from ..anatomy.network import infos
from ..anatomy.roles import is_parameter

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SAMPLED = 8  # rows of each matrix, evenly spread
_LEAST = 128  # columns: shorter rows hold few values anyway
_WIDTHS = (2, 3, 4, 8)
_GROUPS = (32, 64, 128)
_ULPS = {"F16": 2.0**-10, "BF16": 2.0**-7, "F32": 2.0**-23, "F64": 2.0**-52}


class Grid(NamedTuple):
    """A matrix whose floats lie on a grid: bits, elements of a group (0: a row), part that do."""

    name: str
    bits: int
    group: int
    share: float


def gridded(diff: Diff, side: Literal["left", "right"], least: float) -> list[Grid]:
    """Find the float matrices of one side that are quantised, once a diff."""
    found: list[Grid] = diff.remember(
        ("gridded", side, least),
        lambda: [
            grid
            for info in infos(diff, side)
            if _is_candidate(info) and (grid := _grid(diff, side, info, least))
        ],
    )
    return found


def on_grid(group: NDArray[Any], bits: int, tolerance: float) -> bool:
    """Does one group hold at most 2^bits values, evenly spaced within the tolerance?"""
    import numpy as np

    values = np.unique(group)
    if not np.isfinite(values).all() or len(values) > 2**bits or len(values) * 2 > group.size:
        return False
    if len(values) < 3:
        return False  # two values are always evenly spaced
    gaps = np.diff(values.astype(np.float64))
    step = gaps.min()
    places = np.rint((values - values[0]) / step)
    if places[-1] >= 2**bits:
        return False
    # The smallest gap is two roundings off; the whole span is a better ruler.
    step = (float(values[-1]) - float(values[0])) / places[-1]
    miss = np.abs(values - (values[0] + places * step))
    return bool((miss <= tolerance * np.abs(values).max()).all())


def _is_candidate(info: TensorInfo) -> bool:
    plain = info.stored is None and info.dtype in _ULPS
    wide = len(info.shape) == 2 and info.shape[1] >= _LEAST and info.shape[0] > 0
    numbers = info.dtype in FLOATS and info.dtype not in OPAQUE
    return plain and wide and numbers and is_parameter(info.name, info.dtype)


def _grid(
    diff: Diff, side: Literal["left", "right"], info: TensorInfo, least: float
) -> Grid | None:
    count = info.shape[0]
    chosen = sorted({index * count // _SAMPLED for index in range(min(_SAMPLED, count))})
    rows = diff.values(side, info.name).some_rows(chosen)
    tolerance = 2 * _ULPS[info.dtype]
    for group in (0, *reversed(_GROUPS)):
        pieces = _pieces(rows, group)
        few = _distinct(pieces)
        for bits in _WIDTHS:
            # So few weights hold few values whatever they are; and most matrices end here.
            if 2 ** (bits + 1) > pieces.shape[1] or (few <= 2**bits).mean() < least:
                continue
            share = sum(on_grid(piece, bits, tolerance) for piece in pieces) / len(pieces)
            if share >= least:
                return Grid(info.name, bits, group, share)
    return None


def _distinct(pieces: NDArray[Any]) -> NDArray[Any]:
    """Count the distinct values of each group."""
    import numpy as np

    steps: NDArray[Any] = np.diff(np.sort(pieces, axis=1), axis=1)
    counts: NDArray[Any] = 1 + (steps != 0).sum(axis=1)
    return counts


def _pieces(rows: NDArray[Any], group: int) -> NDArray[Any]:
    if not group:
        return rows
    width = rows.shape[1] - rows.shape[1] % group
    return rows[:, :width].reshape(-1, group)
