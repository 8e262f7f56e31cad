"""Where is a falling curve heading? A floor, and how long until it is near.

Two forms are fitted, floor + A t^-b and floor + A e^(-b t), the better by AICc with AR(1) errors
(both have five parameters, so that the likelihood decides).
Given b both are linear, so b runs over a grid and everything else is least squares: no start
values, no fit that does not converge, and a hundred bootstrap series cost one matrix product.
Whether the floor is identified at all is asked first: a curve that has not bent has any floor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from .samples import sample
from .trend import correlated_slope

if TYPE_CHECKING:
    from numpy.typing import NDArray

Form = Literal["power", "exponential"]
FORMS: tuple[Form, ...] = ("power", "exponential")
FEWEST = 50
_POINTS = 200  # blocks of neighbours into which a longer series is averaged
_GRID = 81
_POWERS = (0.03, 3.0)  # rates tried
_SPANS = (0.1, 300.0)  # time constants that the series spans, likewise


class Decay(NamedTuple):
    """The fitted curve; intervals by bootstrap. `steps` run from the last time on.

    `steps` is None if the floor is not identified or its interval spans more than a factor 10.
    """

    form: Form
    floor: float
    floor_low: float
    floor_high: float
    amplitude: float
    rate: float
    phi: float
    identified: bool
    aicc_difference: float
    steps: float | None
    steps_low: float | None
    steps_high: float | None
    level: float
    n: int
    note: str


class _Fit(NamedTuple):
    form: Form
    likelihood: float
    phi: float
    rates: NDArray[Any]
    columns: NDArray[Any]  # of every rate: the constant and the falling part
    best: int
    line: NDArray[Any]  # floor and amplitude
    fitted: NDArray[Any]


def decay(
    times: Sequence[float] | NDArray[Any],
    values: Sequence[float] | NDArray[Any],
    tolerance: float = 0.01,
    *,
    level: float = 0.95,
    bootstraps: int = 199,
    seed: int = 0,
) -> Decay | None:
    """Fit both forms and extrapolate to within `tolerance` of the floor, as a share of it.

    Times count from the start of training: at t = 0 the power law has its first point. None
    below FEWEST points, or where the best curve does not fall.
    """
    import numpy as np

    when, what = sample(times, "times"), sample(values, "series")
    if len(when) != len(what):
        raise ValueError(f"{len(when)} times for {len(what)} values")
    if len(what) < FEWEST or not np.ptp(what) > 0 or not np.ptp(when) > 0:
        return None
    when = when - min(float(when[0]), 0.0) + 1
    blocks = np.unique(np.arange(_POINTS) * len(what) // _POINTS)
    sizes = np.diff(np.append(blocks, len(what)))
    heights = np.add.reduceat(what, blocks) / sizes
    best, other = sorted(
        (_fit(form, when, heights, blocks, sizes) for form in FORMS),
        key=lambda fit: -fit.likelihood,
    )
    if not best.line[1] > 0:
        return None
    again = _bootstrapped(best, heights, bootstraps, seed)
    astray = _goes_astray(best, heights)
    return _verdict(
        best,
        other,
        again,
        now=float(when[-1]),
        tolerance=tolerance,
        level=level,
        n=len(what),
        astray=astray,
    )


def _fit(
    form: Form, when: NDArray[Any], heights: NDArray[Any], blocks: NDArray[Any], sizes: NDArray[Any]
) -> _Fit:
    """Fit one form on a coarse grid of rates, then on one that is fine about the best."""
    import numpy as np

    def columns(rates: NDArray[Any]) -> NDArray[Any]:
        steep = rates[:, None]
        falling = when**-steep if form == "power" else np.exp(-steep * (when - 1))
        falling = np.add.reduceat(falling, blocks, axis=1) / sizes
        return np.stack([np.ones_like(falling), falling], axis=2)

    coarse = np.geomspace(*(_POWERS if form == "power" else _SPANS), _GRID)
    if form == "exponential":
        coarse /= when[-1]
    _, best, _, _ = _least_squares(columns(coarse), heights)
    fine = np.geomspace(coarse[max(best - 2, 0)], coarse[min(best + 2, _GRID - 1)], 2 * _GRID)
    rates = np.unique(np.concatenate([coarse, fine]))
    shapes = columns(rates)
    likelihood, best, line, phi = _least_squares(shapes, heights)
    return _Fit(form, likelihood, phi, rates, shapes, best, line, shapes[best] @ line)


def _least_squares(
    columns: NDArray[Any], heights: NDArray[Any]
) -> tuple[float, int, NDArray[Any], float]:
    """Return ln likelihood, best rate, floor and amplitude, phi: phi is what the last fit left."""
    import numpy as np

    phi, n = 0.0, len(heights)
    for _ in range(3):
        _, best, line = _least(columns, heights, phi)
        rest = heights - columns[best] @ line
        energy = float(rest @ rest)
        r = float(rest[1:] @ rest[:-1]) / energy if energy > 0 else 0.0
        phi = float(np.clip((n * r + 2) / (n - 4), 0.0, 0.95)) if energy > 0 else 0.0
    squares, best, line = _least(columns, heights, phi)
    fit = -n / 2 * float(np.log(max(squares, 1e-300) / n)) + 0.5 * float(np.log(1 - phi * phi))
    return fit, best, line, phi


def _freed(columns: NDArray[Any], phi: float) -> NDArray[Any]:
    """Take AR(1) out along the second last axis (Prais & Winsten 1954)."""
    freed = columns - phi * _shifted(columns)
    freed[..., 0, :] = columns[..., 0, :] * (1 - phi * phi) ** 0.5
    return freed


def _shifted(columns: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    return np.roll(columns, 1, axis=-2)


def _least(columns: NDArray[Any], heights: NDArray[Any], phi: float) -> tuple[float, int, Any]:
    import numpy as np

    basis, _ = np.linalg.qr(_freed(columns, phi))
    target = _freed(heights[:, None], phi)[:, 0]
    squares = float(target @ target) - ((target @ basis) ** 2).sum(axis=1)
    best = int(squares.argmin())
    line = np.linalg.lstsq(_freed(columns[best], phi), target, rcond=None)[0]
    return max(float(squares[best]), 0.0), best, line


def _bootstrapped(fit: _Fit, heights: NDArray[Any], count: int, seed: int) -> NDArray[Any]:
    """Refit series made of the curve and its own innovations: floor, amplitude, rate, edge."""
    import numpy as np

    random = np.random.default_rng(seed)
    rest = heights - fit.fitted
    fresh = rest[1:] - fit.phi * rest[:-1]
    fresh = (fresh - fresh.mean()) * (len(fresh) / max(len(fresh) - 3, 1)) ** 0.5
    noise = random.choice(fresh, (len(heights) + 50, count))
    for i in range(1, len(noise)):
        noise[i] += fit.phi * noise[i - 1]
    series = fit.fitted[:, None] + noise[50:]
    freed = _freed(fit.columns, fit.phi)
    basis, _ = np.linalg.qr(freed)
    targets = _freed(series, fit.phi)
    explained = ((basis.transpose(0, 2, 1) @ targets) ** 2).sum(axis=1)
    best = explained.argmax(axis=0)
    pseudo = np.linalg.pinv(freed)
    lines = np.einsum("bij,jb->bi", pseudo[best], targets)
    at_edge = (best == 0) | (best == len(fit.rates) - 1)
    return np.column_stack([lines, fit.rates[best], at_edge])


def _verdict(
    best: _Fit,
    other: _Fit,
    again: NDArray[Any],
    *,
    now: float,
    tolerance: float,
    level: float,
    astray: bool,
    n: int,
) -> Decay:
    """Say whether the floor is known, and if so how many steps remain until the curve is near."""
    import numpy as np

    tails = [(1 - level) / 2, (1 + level) / 2]
    floor, amplitude = (float(each) for each in best.line)
    rate = float(best.rates[best.best])
    low, high = (float(each) for each in np.quantile(again[:, 0], tails))
    note = ""
    if astray:
        note = "the best curve does not follow the latest values"
    elif again[:, 3].mean() > (1 - level) / 2:
        note = "the curve has not bent enough to show a floor"
    elif high - low > 0.2 * abs(float(best.fitted[-1])):
        note = "the floor is known to no better than a fifth of the value now"
    elif low <= 0 <= high:
        note = "the floor may be zero, and nothing is within a share of zero"
    steps = steps_low = steps_high = None
    if not note:
        steps = float(_steps(best.form, np.array([[floor, amplitude, rate]]), now, tolerance)[0])
        every = _steps(best.form, again, now, tolerance)
        steps_low, steps_high = (float(each) for each in np.quantile(every, tails))
        if steps_high > 10 * max(steps_low, 1.0):
            note = f"between {steps_low:.3g} and {steps_high:.3g} steps: more than a factor of 10"
            steps = None
    return Decay(
        form=best.form,
        floor=floor,
        floor_low=low,
        floor_high=high,
        amplitude=amplitude,
        rate=rate,
        phi=best.phi,
        identified=steps_low is not None,
        aicc_difference=2 * (best.likelihood - other.likelihood),
        steps=steps,
        steps_low=steps_low,
        steps_high=steps_high,
        level=level,
        n=n,
        note=note,
    )


def _goes_astray(fit: _Fit, heights: NDArray[Any]) -> bool:
    """Does what the curve leaves still slope in its later half, or in its last quarter?

    A loss that goes on falling past the floor of its best curve is one of another form, and the
    bootstrap, which believes in the form, would be sure of a floor that is none.
    """
    rest = heights - fit.fitted
    for part in (2, 4):
        late = rest[-(len(rest) // part) :]
        slope = correlated_slope(range(len(late)), late, 0.995)
        if slope is not None and (slope.low > 0 or slope.high < 0):
            return True
    return False


def _steps(form: Form, curves: NDArray[Any], now: float, tolerance: float) -> NDArray[Any]:
    """Solve A f(t) = tolerance |floor| for t, from now on; 0 if that has been passed."""
    import numpy as np

    floor, amplitude, rate = curves[:, 0], np.maximum(curves[:, 1], 1e-300), curves[:, 2]
    ratio = np.log(amplitude / (tolerance * np.maximum(np.abs(floor), 1e-300)))
    when = np.exp(np.minimum(ratio / rate, 700)) if form == "power" else 1 + ratio / rate
    return np.maximum(when - now, 0.0)
