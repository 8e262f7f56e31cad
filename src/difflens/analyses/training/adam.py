"""What Adam's moments say of the gradients: their norm, their size, and how much of it is noise.

With m = exp_avg/(1 - β1^t) and v = exp_avg_sq/(1 - β2^t), under a mean gradient G and noise of
covariance S that do not change over the last 1/(1 - β2) steps:

    E‖m‖² = |G|² + c tr S,  c = (1 - β1)(1 + β1^t) / ((1 + β1)(1 - β1^t))
    E Σv  = |G|² +   tr S

so |G|² = (‖m‖² - c Σv)/(1 - c); the noise scale is B tr S / |G|² (McCandlish et al. 2018).
"""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum, isfinite, sqrt
from typing import Any, NamedTuple

from ...evidences import Optimizer
from ...protocols import Values


class Moments(NamedTuple):
    """Sums over one parameter's bias-corrected moments, and the estimates that follow."""

    place: int  # the optimiser's index of the parameter
    elements: int
    first: float  # ‖m‖²
    second: float  # Σv
    signal: float  # |G|², below zero where noise dominates
    group: int

    @property
    def rms(self) -> float:
        """The size of a gradient's element, sqrt(mean v)."""
        return sqrt(max(0.0, self.second) / self.elements) if self.elements else 0.0


def settings(state: Optimizer) -> dict[int, tuple[int, dict[str, Any]]]:
    """Give for each index its group: where it stands, and its settings."""
    return {index: (at, group) for at, group in enumerate(state.groups)
            for index in group["params"]}  # fmt: skip


def corrections(
    moments: dict[str, Any], group: dict[str, Any]
) -> tuple[float, float, float] | None:
    """Give β1, 1 - β1^t and 1 - β2^t; None where step or betas are not those of Adam."""
    betas, step = group.get("betas"), moments.get("step")
    if not isinstance(betas, list | tuple) or len(betas) != 2 or not isinstance(step, int | float):
        return None
    first, second = betas
    if not (isinstance(first, float) and isinstance(second, float)):
        return None
    if not (0 <= first < 1 and 0 < second < 1 and step >= 1):
        return None
    return first, 1 - first**step, 1 - second**step


def adam_moments(state: Optimizer | None) -> list[Moments]:
    """Sum up every parameter's moments, a piece at a time; empty where there are none of Adam's."""
    if state is None:
        return []
    groups, found = settings(state), []
    for index, moments in sorted(state.moments.items()):
        at, group = groups.get(index, (0, {}))
        known = corrections(moments, group)
        first, second = moments.get("exp_avg"), moments.get("exp_avg_sq")
        if known is None or first is None or second is None:
            continue
        beta, one, two = known
        squares, sizes = _squares(first) / one**2, _sum(second) / two
        if isfinite(squares) and isfinite(sizes):
            c = (1 - beta) * (2 - one) / ((1 + beta) * one)
            signal = (squares - c * sizes) / (1 - c) if c < 1 else -1.0
            found.append(Moments(index, first.info.count, squares, sizes, signal, at))
    return found


def noise_to_signal(found: Iterable[Moments]) -> float | None:
    """Give tr S / |G|² over all parameters; None where noise hides the mean gradient."""
    known = list(found)
    signal = fsum(each.signal for each in known)
    total = fsum(each.second for each in known)
    return (total - signal) / signal if signal > 0 else None


def _squares(values: Values) -> float:
    import numpy as np

    total = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for piece in values.pieces():
            wide = piece.astype(np.float64)
            total += float(wide @ wide)
    return total


def _sum(values: Values) -> float:
    import numpy as np

    with np.errstate(over="ignore", invalid="ignore"):
        return float(sum(float(piece.sum(dtype=np.float64)) for piece in values.pieces()))
