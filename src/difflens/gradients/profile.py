"""How gradients change along the depth: the signature of vanishing and exploding gradients.

One slope over the layers of one role, by Theil and Sen, so that a single odd layer bends nothing.
The mean norm over all layers was not taken: it hides that the first layer gets a thousandth of
the last.
"""

from __future__ import annotations

from collections import Counter
from math import log
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from ..network_results import DepthProfile, DepthWindow
from ..records import Interval, Missing
from ..stats.trend import Slope, theil_sen
from .comparison import measure_of, measured, role_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .signals import LayerSignal, Signals

LEAST_DEPTHS = 4
WINDOWS = 10
LEAST_RECORDS = 5  # of a window
STEEP = log(10)  # change over the whole depth from which a slope has a word
Verdict = Literal["vanishing", "exploding", "even", "cannot_tell"]


class _Row(NamedTuple):
    depth: float
    steps: NDArray[np.int64]
    logs: NDArray[np.float64]


def depth_profile(signals: Signals) -> DepthProfile:
    """Fit ln rms(g)/rms(w), or what of it was recorded, against depth: overall and over time."""
    measure = measure_of(signals.layers)
    rows, basis = _rows(signals.layers, measure)
    depths = [row.depth for row in rows]
    if len(set(depths)) < LEAST_DEPTHS:
        why = f"layers of one role at {len(set(depths))} depths, {LEAST_DEPTHS} are needed"
        reasons = [Missing(each, "more layers", why) for each in ("slope", "interval", "verdict")]
        return DepthProfile(layers=len(rows), measure=f"ln {measure}", missing=tuple(reasons))
    line = _line(rows, None)
    sure = _interval(line)
    return DepthProfile(
        slope=line.value if line else None,
        interval=sure,
        measure=f"ln {measure}{basis}",
        layers=len(rows),
        verdict=_verdict(line, max(depths) - min(depths)),
        windows=tuple(_windows(rows, signals.steps)),
    )


def _rows(layers: tuple[LayerSignal, ...], measure: str) -> tuple[list[_Row], str]:
    """Take the role that most layers have; without recorded depths their order stands for it."""
    alive = [each for each in layers if np.isfinite(measured(each, measure)).any()]
    roles = Counter(role_of(each) for each in layers)  # of equals the first: weights
    chosen = roles.most_common(1)[0][0] if roles else ""
    members = [each for each in alive if role_of(each) == chosen]
    known = all(each.depth is not None for each in members)
    rows = [
        _Row(float(each.depth or 0) if known else float(place), each.steps, measured(each, measure))
        for place, each in enumerate(members)
    ]
    return rows, "" if known else ", by the order of the layers"


def _line(rows: list[_Row], steps: tuple[int, int] | None) -> Slope | None:
    points = []
    for row in rows:
        logs = row.logs
        if steps is not None:
            logs = logs[(row.steps >= steps[0]) & (row.steps <= steps[1])]
        if np.isfinite(logs).any():
            points.append((row.depth, float(np.nanmedian(logs))))
    if len({depth for depth, _ in points}) < LEAST_DEPTHS:
        return None
    return theil_sen([depth for depth, _ in points], [level for _, level in points])


def _interval(line: Slope | None) -> Interval | None:
    if line is None or line.low is None:
        return None
    return Interval(line.low, line.high, method="Sen 1968", n=line.n)


def _verdict(line: Slope | None, reach: float) -> Verdict | None:
    """Judge by the interval over the whole depth; too wide a one cannot tell."""
    if line is None or line.low is None or line.high is None:
        return None
    low, high, middle = line.low * reach, line.high * reach, line.value * reach
    if low > 0 and middle >= STEEP:
        return "vanishing"
    if high < 0 and middle <= -STEEP:
        return "exploding"
    return "even" if low > -STEEP and high < STEEP else "cannot_tell"


def _windows(rows: list[_Row], steps: NDArray[np.int64]) -> list[DepthWindow]:
    parts = np.array_split(steps, max(1, min(WINDOWS, len(steps) // LEAST_RECORDS)))
    found = []
    for part in parts:
        if len(part):
            line = _line(rows, (int(part[0]), int(part[-1])))
            found.append(
                DepthWindow(
                    first_step=int(part[0]),
                    last_step=int(part[-1]),
                    slope=line.value if line else None,
                    interval=_interval(line),
                    layers=line.n if line else 0,
                )
            )
    return found
