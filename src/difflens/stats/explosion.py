"""When gradient norms explode and when they vanish: the one definition that all products share.

A norm explodes where one step of its logarithm rises by more than so many robust standard
deviations (Iglewicz & Hoaglin 1993), and it is far above the median of the values before. A layer
vanishes where its ‖g‖/‖w‖ is below a small part of the median of its peers in most steps. How far,
how small and how many is passed in: those are thresholds, which users set.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from .samples import robust_deviation


def robust_scores(changes: Any) -> Any:
    """Return the robust z of each change; without spread, infinity above the median.

    >>> robust_scores([0.0, 0.1, -0.1, 5.0]).round(1).tolist()
    [-0.3, 0.3, -1.0, 33.4]
    """
    import numpy as np

    array = np.asarray(changes, np.float64)
    away, spread = array - np.median(array), float(robust_deviation(array))
    return away / spread if spread else np.where(away > 0, np.inf, 0.0)


class Rise(NamedTuple):
    """One step up that stands out, with the medians on both sides of it."""

    place: int  # of the first value that is up
    z: float  # of the step, in robust standard deviations
    before: float  # median of the values before
    after: float  # median of the values from there on
    count_before: int
    count_after: int


def rises(values: Any, scores: Any, *, z: float, window: int, hold: int) -> Iterator[Rise]:
    """Find the steps whose score is above z; `scores` has one for each step between two values.

    The median before is over up to `window` values, the one after over up to `hold`. Values may be
    norms or their logarithms.

    >>> levels = [1.0, 1.1, 0.9, 1.0, 20.0, 22.0, 19.0]
    >>> [
    ...     (each.place, each.before, each.after)
    ...     for each in rises(levels, [0.1, -0.2, 0.1, 9.0, 0.1, -0.1], z=6.0, window=4, hold=3)
    ... ]
    [(4, 1.0, 20.0)]
    """
    import numpy as np

    array = np.asarray(values)
    for step in np.flatnonzero(np.asarray(scores) > z).tolist():
        before, after = array[max(0, step + 1 - window) : step + 1], array[step + 1 :][:hold]
        middles = float(np.median(before)), float(np.median(after))
        yield Rise(step + 1, float(scores[step]), *middles, len(before), len(after))


def parts_of_peers(ratios: Any) -> Any:
    """Divide each column of (layers, steps) by its median over the layers; NaN if that is zero.

    >>> parts_of_peers([[1.0, 0.0], [2.0, 0.0], [8.0, 3.0]])[:, 0].tolist()
    [0.5, 1.0, 4.0]
    """
    import numpy as np

    array = np.asarray(ratios, np.float64)
    middles = np.median(array, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(middles != 0, array / middles, np.nan)


def share_below(parts: Any, limit: float) -> Any:
    """Return the share of the known values of each row that lie below a limit; 0 if none is known.

    >>> share_below([[0.1, 0.2, 3.0, float("nan")]], 1.0).round(3).tolist()
    [0.667]
    """
    import numpy as np

    array = np.asarray(parts, np.float64)
    known = (~np.isnan(array)).sum(axis=-1)
    return (array < limit).sum(axis=-1) / np.maximum(known, 1)
