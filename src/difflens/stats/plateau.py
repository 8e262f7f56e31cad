"""Is a series flat by now? Shown to be flat, that is, not merely not seen to move.

"No significant slope" is what every short and noisy window says. So the slope's interval must lie
inside a margin (two one-sided tests, Schuirmann 1987); where it is wider than the margin, the
answer is that nobody can tell, and how long a window would be needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from .samples import probability, sample
from .trend import correlated_slope

if TYPE_CHECKING:
    from numpy.typing import NDArray

SMALLEST = 50  # points of the shortest window looked at


class Plateau(NamedTuple):
    """Whether the latest points are flat, over how many, and what the slope may be.

    Slopes are per unit of time. `points` are those of the window that decided; `needed` is the
    window that would suffice, where none did.
    """

    outcome: Literal["plateau", "moving", "cannot_tell"]
    points: int
    start: float | None  # time at which the flat window begins
    slope: float | None
    low: float | None
    high: float | None
    level: float
    needed: int | None


def plateau(
    times: Sequence[float] | NDArray[Any],
    values: Sequence[float] | NDArray[Any],
    margin: float,
    alpha: float = 0.05,
    smallest: int = SMALLEST,
) -> Plateau:
    """Look at ever longer windows that end now: `smallest` points, twice as many, and so on.

    Windows end at half of the series, for the whole always holds its steep beginning. All are
    judged at alpha shared among them (Bonferroni). The longest flat one is the plateau, as long
    as no shorter one moves; a window moves where its interval misses the margin on one side.
    """
    when, what = sample(times, "times"), sample(values, "series")
    if margin <= 0:
        raise ValueError(f"margin is {margin!r}, it must be above 0")
    lengths = _lengths(len(what), smallest)
    level = 1 - 2 * probability(alpha, "alpha") / max(1, len(lengths))
    found = None
    for length in lengths:
        window = _window(when[-length:], what[-length:], level, margin)
        if window.outcome == "moving":
            return found or window
        if window.outcome == "plateau":
            found = window
        last = window
    if not lengths:
        return Plateau("cannot_tell", len(what), None, None, None, None, level, 2 * smallest)
    return found or last


def _lengths(n: int, smallest: int) -> list[int]:
    lengths, length = [], smallest
    while length <= n // 2:
        lengths.append(length)
        length *= 2
    return lengths


def _window(when: NDArray[Any], what: NDArray[Any], level: float, margin: float) -> Plateau:
    measured = correlated_slope(when, what, level)
    if measured is None:
        return Plateau("cannot_tell", len(what), None, None, None, None, level, None)
    slope, low, high = measured.value, measured.low, measured.high
    start, points = float(when[0]), len(what)
    if -margin < low and high < margin:
        return Plateau("plateau", points, start, slope, low, high, level, None)
    if low > margin or high < -margin:
        return Plateau("moving", points, start, slope, low, high, level, None)
    # The width of a slope's interval falls as the length to the power of 3/2.
    needed = ceil(points * max(1.0, (high - low) / (2 * margin)) ** (2 / 3)) + 1
    return Plateau("cannot_tell", points, start, slope, low, high, level, needed)
