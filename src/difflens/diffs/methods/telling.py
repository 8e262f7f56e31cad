"""Can a tensor prove anything: does it hold values that two models cannot share by chance?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from difflens.core.records import TensorInfo
from difflens.models.anatomy.roles import is_parameter

from ..diff import Diff

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

READ = 1 << 16  # values of a tensor that are looked at
VALUES, _DISTINCT = 256, 16  # fewer values, or fewer different ones, may agree by chance
_MEMORY, _LINES, _LENGTH = 8, 16, 512  # values that may predict the next one of a line
_PREDICTED = 1e-3  # part of a line's energy that is left over, below which a formula made it


def is_telling(diff: Diff, side: Literal["left", "right"], info: TensorInfo) -> bool:
    """Could two models hold these values only because one has them from the other?"""
    import numpy as np

    if info.count < VALUES or not is_parameter(info.name, info.dtype):
        return False
    some = diff.values(side, info.name).span(0, min(info.count, READ))
    if not np.isfinite(some).all() or np.count_nonzero(some) < len(some) / 2:
        return False
    return len(np.unique(some)) >= _DISTINCT and not is_formula(some, info.shape)


def is_formula(some: NDArray[Any], shape: tuple[int, ...]) -> bool:
    """Do eight neighbours along a line predict the next value, as in sums of waves and slopes?"""
    import numpy as np

    width = shape[-1] if len(shape) > 1 else len(some)
    rows = (
        some[: len(some) // width * width].reshape(-1, width) if width <= len(some) else some[None]
    )
    for lines in (rows, rows.T):
        if lines.shape[1] < 4 * _MEMORY:
            continue
        chosen = lines[
            np.linspace(0, len(lines) - 1, min(_LINES, len(lines))).astype(int), :_LENGTH
        ]
        if np.median([_left_over(line.astype(np.float64)) for line in chosen]) < _PREDICTED:
            return True
    return False


def _left_over(line: NDArray[Any]) -> float:
    """Return the part of a line's energy that a linear recurrence does not predict."""
    import numpy as np

    windows = np.lib.stride_tricks.sliding_window_view(line, _MEMORY)[:-1]
    after = line[_MEMORY:]
    energy = float(after @ after)
    if not energy > 0:
        return 0.0
    weights = np.linalg.lstsq(windows, after, rcond=None)[0]
    return float(np.square(after - windows @ weights).sum()) / energy
