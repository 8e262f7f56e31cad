"""Series of a training run in which one point stands out: jumps of gradients, spikes of a loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

Points = Sequence[tuple[float, float]]
LEAST = 20  # points below which no spread is told
_SUSTAINED = 5  # points over which a jump must last
_NEAR = 5  # points on each side that a spike is held against
_MAD = 1.4826  # deviations of a normal law in one median absolute deviation


class Jump(NamedTuple):
    """Where a series jumped: the step, how many deviations, and by what factor it stayed up."""

    step: float
    z: float | None
    ratio: float


def largest_jump(points: Points, z_least: float, ratio_least: float, window: int) -> Jump | None:
    """Find the largest jump that stays: z of a step in ln x, and ratio to the trailing median."""
    import numpy as np

    kept = np.array([point for point in points if point[1] > 0], float).reshape(-1, 2)
    if len(kept) < LEAST:
        return None
    steps = np.diff(np.log(kept[:, 1]))
    scores = _robust(steps)
    jumps = []
    for at in np.flatnonzero(scores > z_least) + 1:
        before = np.median(kept[max(0, at - window) : at, 1])
        ratio = float(np.median(kept[at : at + _SUSTAINED, 1]) / before)
        if ratio >= ratio_least:
            jumps.append(Jump(float(kept[at, 0]), _finite(scores[at - 1]), ratio))
    return max(jumps, key=lambda each: each.ratio, default=None)


def spikes(points: Points, z_least: float, rise_least: float) -> list[Jump]:
    """Find points far above the median of their neighbours, in units of the noise between steps.

    Neighbours are as many on each side, so that a curve which only falls is its own median.
    Positive values are compared by their logarithm. Noise: 1.4826 MAD of the steps / sqrt 2.
    """
    import numpy as np

    raw = np.array([value for _, value in points], float)
    if len(raw) < LEAST:
        return []
    values = np.log(raw) if raw.min() > 0 else raw
    places = np.arange(2, len(values) - 2)
    reach = np.minimum(np.minimum(places, len(values) - 1 - places), _NEAR)
    windows = [slice(at - w, at + w + 1) for at, w in zip(places, reach, strict=True)]
    rises = values[places] - np.array([np.median(values[each]) for each in windows])
    noise = _spread(np.diff(values)) / np.sqrt(2)
    levels = np.array([abs(np.median(raw[each])) for each in windows])
    heights = raw[places] / np.maximum(levels, np.finfo(float).tiny)
    return [
        Jump(points[int(at)][0], float(rise / noise) if noise else None, float(height))
        for at, rise, height in zip(places, rises, heights, strict=True)
        if rise > z_least * noise and height - 1 >= rise_least
    ]


def _spread(values: NDArray[Any]) -> float:
    """1.4826 MAD, the deviation where the law is normal."""
    import numpy as np

    return float(_MAD * np.median(np.abs(values - np.median(values))))


def _robust(values: NDArray[Any]) -> NDArray[Any]:
    """(x - median) / (1.4826 MAD); infinite above the median where there is no spread."""
    import numpy as np

    away, spread = values - np.median(values), _spread(values)
    if spread:
        return np.asarray(away / spread)
    return np.where(away > 0, np.inf, 0.0)


def _finite(value: Any) -> float | None:
    import numpy as np

    return float(value) if np.isfinite(value) else None
