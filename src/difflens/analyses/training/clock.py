"""How much training lies between checkpoints: steps, or steps weighed by their learning rate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ...evidences import Log
from .series import RATES, Points, column

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Clock(NamedTuple):
    """When K checkpoints were saved, and what lies between them.

    `efforts` are what a move is divided by: the learning rates summed over its steps where they
    are known, else the steps.
    """

    times: NDArray[Any]
    efforts: NDArray[Any]
    has_steps: bool
    has_rates: bool

    @property
    def lengths(self) -> NDArray[Any]:
        """The steps between neighbours."""
        import numpy as np

        return np.diff(self.times)

    @property
    def middles(self) -> NDArray[Any]:
        """The middle of every interval, counted in median intervals."""
        import numpy as np

        lengths = self.lengths
        middles: NDArray[Any] = (self.times[:-1] + lengths / 2) / np.median(lengths)
        return middles


def clock(steps: tuple[float | None, ...], log: Log | None) -> Clock:
    """Read the clock; checkpoints of unknown steps are taken for evenly spaced."""
    import numpy as np

    known = [step for step in steps if step is not None]
    if len(known) < len(steps) or any(np.diff(known) <= 0):
        times = np.arange(len(steps), dtype=float)
        return Clock(times, np.ones(len(steps) - 1), has_steps=False, has_rates=False)
    times = np.array(known, float)
    found = column(log, RATES)
    sums = summed_rates(found[1], times) if found else None
    efforts = times[1:] - times[:-1] if sums is None else sums
    return Clock(times, efforts, has_steps=True, has_rates=sums is not None)


def summed_rates(points: Points, times: NDArray[Any]) -> NDArray[Any] | None:
    """Sum the learning rate over the steps of each interval; None where the log does not cover it.

    Between logged points the rate is taken for linear. Before the first and after the last one it
    is known for as long as points are usually apart.
    """
    import numpy as np

    steps, rates = np.array(points, float).T
    if len(steps) < 2:
        return None
    slack = float(np.median(np.diff(steps)))
    if steps[0] - slack > times[0] or steps[-1] + slack < times[-1]:
        return None
    grid = np.union1d(steps, times)
    values = np.interp(grid, steps, rates)
    area = np.concatenate([[0.0], np.cumsum(np.diff(grid) * (values[1:] + values[:-1]) / 2)])
    sums: NDArray[Any] = np.diff(np.interp(times, grid, area))
    return sums if (sums > 0).all() else None
