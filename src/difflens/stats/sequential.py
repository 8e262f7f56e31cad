"""Looking again and again: tests and intervals that stay right however often one looks.

A fixed-n test looked at a hundred times at 5 % raises an alarm in 37 % of the cases in which
nothing is there (Armitage, McPherson & Rowe 1969). These keep their promise at every look at
once, so one may stop whenever one likes. `values` are in the order they came in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from .samples import probability, sample

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

START = 50  # values before which the asymptotic sequence says nothing
_GRID = 1000  # candidate means of the betting sequence
_STEP = 1000  # values taken up at a time
_CAUTION = 0.5  # the part of its capital that a bet may lose at most


class Bounds(NamedTuple):
    """An interval of the mean after every value, valid at all of them at once.

    None if nothing can be said yet; `stopped` is the first n whose interval excludes the null.
    """

    low: tuple[float | None, ...]
    high: tuple[float | None, ...]
    level: float
    stopped: int | None


def confidence_sequence(
    values: Sequence[float],
    *,
    level: float = 0.95,
    null: float = 0.0,
    start: int = START,
    tightest: int = 1000,
) -> Bounds:
    """Return the asymptotic confidence sequence of a mean (Waudby-Smith et al. 2024).

    x̄_t ± s_t sqrt(2 (tr² + 1) / (t²r²) · ln(sqrt(tr² + 1) / alpha)), from `start` values on; r
    is such that the interval is tightest, for its n, about `tightest`.
    """
    import numpy as np

    alpha = 1 - probability(level, "level")
    array = sample(values, "values")
    t = np.arange(1, array.size + 1)
    moved = array - array[0]  # squares about a value of the sample keep their digits
    means = np.cumsum(moved) / t
    spread = np.maximum(np.cumsum(moved**2) / t - means**2, 0.0)
    square = (-2 * np.log(alpha) + np.log(1 - 2 * np.log(alpha))) / tightest
    widening = 2 * (t * square + 1) / (t**2 * square) * np.log(np.sqrt(t * square + 1) / alpha)
    reach = np.sqrt(spread * widening)
    known = (t >= start) & (spread > 0)
    return _bounds(array[0] + means - reach, array[0] + means + reach, known, level, null)


def betting_sequence(
    values: Sequence[float],
    *,
    level: float = 0.95,
    null: float = 0.0,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> Bounds:
    """Return the hedged-capital confidence sequence of bounded values: exact, whatever their law.

    A gambler bets against every candidate mean m: half the capital grows by 1 + λ⁺(x - m), half
    by 1 - λ⁻(x - m). Under the true mean it rarely reaches 1/alpha (Ville 1939), so a mean is out
    once it has. λ_t = sqrt(2 ln(2/alpha) / (s²_{t-1} t ln(1 + t))), cut at half of what a bet can
    lose (Waudby-Smith & Ramdas 2024, "Estimating means of bounded random variables by betting").
    """
    import numpy as np

    alpha = 1 - probability(level, "level")
    array = sample(values, "values")
    least, most = bounds
    if not least < most or array.min() < least or array.max() > most:
        raise ValueError(f"values must lie within the bounds {least!r} and {most!r}")
    scaled = (array - least) / (most - least)
    ends = _alive(scaled, _bets(scaled, alpha), float(np.log(2 / alpha)))
    low, high = least + ends * (most - least)
    return _bounds(low, high, np.ones(array.size, dtype=bool), level, null)


def _bets(scaled: NDArray[np.float64], alpha: float) -> NDArray[np.float64]:
    """Return the size of each bet, from the values before it alone."""
    import numpy as np

    t = np.arange(1, scaled.size + 1)
    means = (0.5 + np.cumsum(scaled)) / (t + 1)
    spread = (0.25 + np.cumsum((scaled - means) ** 2)) / (t + 1)
    before = np.concatenate([[0.25], spread[:-1]])
    bets: NDArray[np.float64] = np.sqrt(2 * np.log(2 / alpha) / (before * t * np.log1p(t)))
    return bets


def _alive(
    scaled: NDArray[np.float64], bets: NDArray[np.float64], ruin: float
) -> NDArray[np.float64]:
    """Return, after each value, the means next to those that no bet has ruled out."""
    import numpy as np

    grid = np.linspace(0, 1, _GRID + 1)
    with np.errstate(divide="ignore"):
        up_most, down_most = _CAUTION / grid, _CAUTION / (1 - grid)
    up, down, peak = np.zeros(grid.size), np.zeros(grid.size), np.full(grid.size, -np.inf)
    found = []
    for start in range(0, scaled.size, _STEP):
        x, bet = scaled[start : start + _STEP, None], bets[start : start + _STEP, None]
        ups = up + np.cumsum(np.log1p(np.minimum(bet, up_most) * (x - grid)), axis=0)
        downs = down + np.cumsum(np.log1p(-np.minimum(bet, down_most) * (x - grid)), axis=0)
        peaks = np.maximum(np.maximum.accumulate(np.maximum(ups, downs), axis=0), peak)
        up, down, peak = ups[-1], downs[-1], peaks[-1]
        # Where every mean was ruled out, the one that lasted longest stands for them.
        left = (peaks < ruin) | (peaks == peaks.min(axis=1, keepdims=True))
        first, last = left.argmax(axis=1), grid.size - 1 - left[:, ::-1].argmax(axis=1)
        found.append(np.stack([grid[np.maximum(first - 1, 0)], grid[np.minimum(last + 1, _GRID)]]))
    return np.concatenate(found, axis=1)


def _bounds(
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    known: NDArray[np.bool_],
    level: float,
    null: float,
) -> Bounds:
    lows = tuple(float(each) if told else None for each, told in zip(low, known, strict=True))
    highs = tuple(float(each) if told else None for each, told in zip(high, known, strict=True))
    return Bounds(lows, highs, level, _first(known & ((low > null) | (high < null))))


def _first(found: NDArray[np.bool_]) -> int | None:
    return int(found.argmax()) + 1 if found.any() else None
