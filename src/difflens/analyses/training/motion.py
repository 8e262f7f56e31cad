"""How a series of checkpoints moves: the figures that tell a line from a walk and from noise."""

from __future__ import annotations

from typing import NamedTuple

from ...evidences import Log, Trajectory
from ...stats.trend import Trend, mann_kendall
from .clock import Clock, clock
from .distances import (
    Known,
    decay_rate,
    displacement_exponent,
    mean_cosine,
    move_norms,
    norm_of_last,
    over_tensors,
    stacked,
)

FIT = 6  # checkpoints from which the displacement can be fitted


class Motion(NamedTuple):
    """The moves between checkpoints, pooled over tensors; None is what they do not tell."""

    clock: Clock
    norms: list[float]  # ‖Δ_k‖
    speeds: list[float]  # ‖Δ_k‖ over the effort of its interval
    cosine: Known | None
    exponent: Known | None
    rate: Known | None
    rise: Trend  # of the speeds
    last_norm: float  # ‖W‖ of the last checkpoint
    newly_nonfinite: int

    @property
    def remaining(self) -> float | None:
        """Σ of the moves to come, ‖Δ_last‖ r / (1 - r), where they shrink by a constant ratio r."""
        if self.rate is None or self.rate.value >= 1:
            return None
        return self.norms[-1] * self.rate.value / (1 - self.rate.value)


def motion(path: Trajectory, log: Log | None) -> Motion | None:
    """Measure the moves; None where no tensor moved between any two checkpoints."""
    stack = stacked(path)
    if not len(stack):
        return None
    ticks = clock(path.steps, log)
    norms = move_norms(stack.sum(axis=0))
    speeds = norms / ticks.efforts
    enough = len(path.points) >= FIT
    return Motion(
        ticks,
        norms.tolist(),
        speeds.tolist(),
        over_tensors(stack, mean_cosine),
        over_tensors(stack, lambda each: displacement_exponent(each, ticks)) if enough else None,
        over_tensors(stack, lambda each: decay_rate(each, ticks)),
        mann_kendall(speeds, ticks.middles),
        norm_of_last(path),
        path.nonfinite[-1] - path.nonfinite[0],
    )
