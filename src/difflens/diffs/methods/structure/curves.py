"""One model as a mixture of others: how much of each, on a line or on an arc.

With an origin o and t = W - o: a sum r = o + sum(w_i t_i) (averages, task arithmetic), or an arc
between two models (SLERP, Shoemake 1985).
"""

from __future__ import annotations

from math import acos, sin, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

from .mixtures import REST, Mixture

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Line(NamedTuple):
    """Weights of the parts; the origin has what is left to one."""

    weights: list[float]
    rest: float  # ‖what they leave‖², over all tensors
    worst: float  # of a tensor, relative to its move and beyond rounding

    @property
    def all_weights(self) -> list[float]:
        """The weight of the origin, then those of the parts."""
        return [1 - sum(self.weights), *self.weights]

    @property
    def fits(self) -> bool:
        """Does it explain every tensor?"""
        return self.worst <= REST


def fit_line(mixture: Mixture) -> Line | None:
    """Find one set of weights for all tensors, by least squares."""
    import numpy as np

    chosen = mixture.known
    if not chosen:
        return None
    whole = sum((mixture.grams[name] for name in chosen[1:]), mixture.grams[chosen[0]])
    weights = np.linalg.lstsq(whole[1:-1, 1:-1], whole[1:-1, -1], rcond=None)[0]
    rests = {name: _left_over(mixture.grams[name], weights) for name in chosen}
    return Line(weights.tolist(), sum(rests.values()), _worst(mixture, rests))


def _left_over(gram: NDArray[Any], weights: Any) -> float:
    inner = gram[1:-1, 1:-1]
    rest = gram[-1, -1] - 2 * float(weights @ gram[1:-1, -1]) + float(weights @ inner @ weights)
    return max(0.0, float(rest))


def _worst(mixture: Mixture, rests: dict[str, float]) -> float:
    return max(
        max(0.0, rest - mixture.noise(name)) / float(mixture.grams[name][-1, -1])
        for name, rest in rests.items()
    )


class Arc(NamedTuple):
    """The place of the right on the arcs from origin to the only part."""

    t: float
    rest: float
    worst: float

    @property
    def fits(self) -> bool:
        """Does it explain every tensor?"""
        return self.worst <= REST


def fit_arc(mixture: Mixture) -> Arc | None:
    """Find one place on the arcs of all tensors; None without exactly one part, or an angle."""
    from scipy.optimize import minimize_scalar

    chosen = mixture.known
    if len(mixture.parts) != 1 or not chosen:
        return None
    angles = {name: _angle(mixture.grams[name]) for name in chosen}
    if not all(angles.values()):
        return None

    def rests(t: float) -> dict[str, float]:
        return {name: _off_arc(mixture.grams[name], angles[name] or 1.0, t) for name in chosen}

    best = minimize_scalar(
        lambda t: sum(rests(t).values()),
        bounds=(-0.5, 1.5),
        method="bounded",
        options={"xatol": 1e-9},
    )
    t = float(best.x)
    return Arc(t, sum(rests(t).values()), _worst(mixture, rests(t)))


def _angle(gram: NDArray[Any]) -> float | None:
    """Return the angle between origin and part."""
    origin, part = float(gram[0, 0]), float(gram[0, 0] + 2 * gram[0, 1] + gram[1, 1])
    size = sqrt(max(0.0, origin)) * sqrt(max(0.0, part))
    if size == 0:
        return None
    angle = acos(max(-1.0, min(1.0, float(gram[0, 0] + gram[0, 1]) / size)))
    return angle if sin(angle) > 1e-6 else None


def _off_arc(gram: NDArray[Any], angle: float, t: float) -> float:
    """‖right - arc(t)‖², by differences from the origin so that nothing large cancels."""
    import numpy as np

    a, b = sin(t * angle) / sin(angle), sin((1 - t) * angle) / sin(angle)
    # right - a part - b origin = (1 - a - b) origin - a t + move
    factors = np.array([1 - a - b, -a, 1.0])
    return max(0.0, float(factors @ gram @ factors))
