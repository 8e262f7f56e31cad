"""Rows of checkpoints whose motion is known, as evidence holds them."""

from collections.abc import Callable

import numpy as np

from difflens.diffs.evidence.records import Trajectory

Path = Callable[[np.random.Generator, int, int], np.ndarray]  # (points, elements)


def line(random: np.random.Generator, points: int, size: int) -> np.ndarray:
    """Go straight on, as far at every step."""
    return np.arange(points)[:, None] * random.normal(size=size)


def walk(random: np.random.Generator, points: int, size: int) -> np.ndarray:
    """Take steps that know nothing of each other."""
    return random.normal(size=(points, size)).cumsum(axis=0)


def stationary(random: np.random.Generator, points: int, size: int) -> np.ndarray:
    """Be noise about a point."""
    return random.normal(size=(points, size))


def cycle(random: np.random.Generator, points: int, size: int) -> np.ndarray:
    """Jump between two points."""
    return (np.arange(points) % 2)[:, None] * random.normal(size=size)


def geometric(random: np.random.Generator, points: int, size: int) -> np.ndarray:
    """Approach a point: x_t = v (1 - 0.6^t)."""
    return (1 - 0.6 ** np.arange(points))[:, None] * random.normal(size=size)


def runaway(random: np.random.Generator, points: int, size: int) -> np.ndarray:
    """Go on, each time half as far again."""
    return (1.5 ** np.arange(points))[:, None] * random.normal(size=size)


def trajectory(
    path: Path,
    *,
    points: int = 10,
    tensors: int = 8,
    size: int = 4000,
    origin: float = 0.0,
    seed: int = 0,
    steps: tuple[float | None, ...] | None = None,
    nonfinite: tuple[int, ...] | None = None,
) -> Trajectory:
    """Measure such a row of checkpoints, `origin` far from zero."""
    random = np.random.default_rng(seed)
    rows = {f"layers.{at}.weight": origin + path(random, points, size) for at in range(tensors)}
    return Trajectory(
        tuple(f"checkpoint-{100 * at}" for at in range(points)),
        steps or tuple(100.0 * at for at in range(points)),
        {name: squares(each) for name, each in rows.items()},
        {name: tuple((each**2).sum(axis=1).tolist()) for name, each in rows.items()},
        nonfinite or (0,) * points,
    )


def squares(rows: np.ndarray) -> tuple[tuple[float, ...], ...]:
    """Return ‖x_i - x_j‖² between all points."""
    apart = ((rows[:, None] - rows[None]) ** 2).sum(axis=-1)
    return tuple(map(tuple, apart.tolist()))
