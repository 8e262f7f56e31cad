"""Which schedule a series of learning rates follows, told by how well each kind fits.

A warm-up is the rise to the peak; what follows is one of constant, linear, inverse square root,
steps or cosine. The simplest kind wins where two fit alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .series import Points

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LEAST = 4  # points after the warm-up below which any two-parameter curve fits
_ALIKE = 1e-6  # of R²: a kind with more freedom must fit better by so much
_EVEN = 1e-9  # relative spread of rates that are one number


class Schedule(NamedTuple):
    """The kind that fits best, its R², that of every kind, and where the warm-up ended."""

    kind: str
    r2: float
    fits: dict[str, float]
    warmup_until: float | None
    n: int

    def told(self) -> dict[str, Any]:
        """Give it as plain data."""
        return {
            "kind": self.kind,
            "r2": self.r2,
            "warmup_until": self.warmup_until,
            "fits": [{"kind": kind, "r2": r2} for kind, r2 in self.fits.items()],
        }


def schedule(points: Points, least_r2: float) -> Schedule | None:
    """Classify a series of learning rates; None below four points after the warm-up."""
    import numpy as np

    steps, rates = np.array(points, float).reshape(-1, 2).T
    peak = _peak(rates)
    warmup = float(steps[peak]) if peak else None
    if peak == len(rates) - 1 and len(rates) >= _LEAST:
        r2 = _r2(rates, _line(steps, rates))
        return Schedule("warmup", r2, {"warmup": r2}, warmup, len(rates))
    steps, rates = steps[peak:], rates[peak:]
    if len(rates) < _LEAST:
        return None
    if np.ptp(rates) <= _EVEN * np.abs(rates).max():
        return Schedule("constant", 1.0, {"constant": 1.0}, warmup, len(rates))
    fits = {name: _r2(rates, fitted) for name, fitted in _fitted(steps, rates).items()}
    best = max(fits.values())
    kind = next(name for name, r2 in fits.items() if r2 >= best - _ALIKE)
    return Schedule(kind if best >= least_r2 else "unrecognised", fits[kind], fits, warmup,
                    len(rates))  # fmt: skip


def _peak(rates: NDArray[Any]) -> int:
    """Give the place at which a rise from the start ends; 0 where there is none."""
    at = 0
    while at + 1 < len(rates) and rates[at + 1] > rates[at] * (1 + _EVEN):
        at += 1
    return at


def _fitted(steps: NDArray[Any], rates: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Fit every kind, the simplest first."""
    found = {"linear": _line(steps, rates)}
    if (rates > 0).all():
        found["inverse_sqrt"] = _inverse_root(steps, rates)
    levels = _levels(rates)
    if levels is not None:
        found["step"] = levels
    found["cosine"] = _cosine(steps, rates)
    return found


def _line(steps: NDArray[Any], rates: NDArray[Any]) -> NDArray[Any]:
    return _projected(steps - steps.mean(), rates)


def _inverse_root(steps: NDArray[Any], rates: NDArray[Any]) -> NDArray[Any]:
    """Fit a/sqrt(t + s): 1/lr² is a line in t."""
    import numpy as np

    line = np.polyfit(steps - steps[0], rates**-2.0, 1)
    below = np.polyval(line, steps - steps[0])
    fitted: NDArray[Any] = np.where(below > 0, np.abs(below), np.inf) ** -0.5
    return fitted


def _levels(rates: NDArray[Any]) -> NDArray[Any] | None:
    """Fit a constant to every run of equal rates; None where most rates differ from the last."""
    import numpy as np

    jumps = np.abs(np.diff(rates)) > _EVEN * np.abs(rates).max()
    if jumps.sum() + 1 > len(rates) / 3:
        return None
    runs = np.concatenate([[0], np.cumsum(jumps)])
    means = np.bincount(runs, rates) / np.bincount(runs)
    return np.asarray(means[runs])


def _cosine(steps: NDArray[Any], rates: NDArray[Any]) -> NDArray[Any]:
    """Fit a + b cos(π (t - t0)/T), T from the length of the series on, as the log may end early."""
    import numpy as np
    from scipy.optimize import minimize_scalar

    since = steps - steps[0]
    span = float(since[-1])

    def fitted(stretch: float) -> NDArray[Any]:
        return _projected(np.cos(np.pi * since / (span * stretch)), rates)

    def lack(log_stretch: float) -> float:
        return float(((rates - fitted(float(np.exp(log_stretch)))) ** 2).sum())

    grid = np.log(np.geomspace(1.0, 20.0, 60))
    best = int(np.argmin([lack(each) for each in grid]))
    ends = grid[max(0, best - 1)], grid[min(len(grid) - 1, best + 1)]
    found = minimize_scalar(lack, bounds=ends, method="bounded", options={"xatol": 1e-9})
    chosen = found.x if found.fun < lack(float(grid[best])) else grid[best]
    return fitted(float(np.exp(chosen)))


def _projected(shape: NDArray[Any], rates: NDArray[Any]) -> NDArray[Any]:
    """Fit a + b shape by least squares."""
    centred = shape - shape.mean()
    energy = float(centred @ centred)
    slope = float(centred @ (rates - rates.mean())) / energy if energy else 0.0
    fitted: NDArray[Any] = rates.mean() + slope * centred
    return fitted


def _r2(rates: NDArray[Any], fitted: NDArray[Any]) -> float:
    residual, spread = rates - fitted, rates - rates.mean()
    whole = float(spread @ spread)
    return 1 - float(residual @ residual) / whole if whole else 1.0
