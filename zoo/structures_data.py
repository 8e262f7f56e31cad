"""Data that are no tables, pictures or text: graphs, sets, motions, ratings, pairs, fields."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .sets import SETS as PLAIN
from .sets import standard

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .sets import Made

    Motion = Callable[[NDArray[Any]], NDArray[Any]]  # how fast a state changes

NODES, USERS, ITEMS, STATE = 14, 80, 60, 3
_SWEEPS, _AHEAD = 30, 12  # of a sampler, and states that are foretold


def _spins() -> Made:
    """Draw spins on the nodes of random graphs: neighbours are alike, independent or unlike."""
    random = np.random.default_rng(31)
    count = 1800
    labels = np.arange(count) % 3
    upper = np.triu(random.random((count, NODES, NODES)) < 4 / (NODES - 1), 1)
    links = (upper | upper.transpose(0, 2, 1)).astype(float)
    coupling = 1.0 * (1.0 - labels)
    spins = random.choice([-1.0, 1.0], (count, NODES))
    for _ in range(_SWEEPS):
        for node in range(NODES):
            field = coupling * (links[:, node] * spins).sum(1)
            up = random.random(count) < 1 / (1 + np.exp(-2 * field))
            spins[:, node] = np.where(up, 1.0, -1.0)
    seen = spins + 0.2 * random.normal(size=spins.shape)
    other = random.normal(size=spins.shape)
    inputs = np.concatenate([links, seen[:, :, None], other[:, :, None]], 2)
    return inputs.astype(np.float32), labels.astype(np.int64), 3


def _counts() -> Made:
    """Make sets of ten points; what is counted comes at a rate that all points set together."""
    random = np.random.default_rng(33)
    centres = 0.8 * random.normal(size=(1800, 1, 3))
    points = centres + 0.6 * random.normal(size=(1800, 10, 3))
    each = np.sin(2 * points[..., 0]) + points[..., 0] * points[..., 1]
    rates = np.exp(np.clip(1.1 * each.mean(1), -2.5, 2.0))
    return points.astype(np.float32), random.poisson(rates).astype(np.float32)[:, None], 0


def _signals() -> Made:
    """Make windows of two tones with much noise; what is to be told are the tones alone."""
    random = np.random.default_rng(35)
    times = np.linspace(0, 2 * np.pi, 32)
    shape = (1600, 1)
    clean = np.zeros((1600, 32))
    for low, high in ((0.5, 1.5), (2.0, 3.0)):
        pace, start = random.uniform(low, high, shape), random.uniform(0, 2 * np.pi, shape)
        clean += random.uniform(0.5, 1.2, shape) * np.sin(pace * times + start)
    noisy = clean + 0.5 * random.normal(size=clean.shape)
    return noisy.astype(np.float32), clean.astype(np.float32), 0


def _field() -> Made:
    """Return the height of a landscape of hills and ripples at places of the plane."""
    random = np.random.default_rng(37)
    places = random.uniform(-1, 1, (1800, 2))
    height = 0.6 * np.sin(6 * places[:, 0] + 2 * places[:, 1])
    for _ in range(5):
        far = ((places - random.uniform(-0.8, 0.8, 2)) ** 2).sum(1)
        height += random.normal() * 2 * np.exp(-far / 0.08)
    return places.astype(np.float32), standard(height[:, None]), 0


def _course(states: NDArray[Any], motion: Motion, time: float) -> NDArray[Any]:
    """Follow states by Runge and Kutta's rule, in four small steps for one that is kept."""
    kept = [states]
    for _ in range(_AHEAD):
        for _ in range(4):
            small = time / 4
            first = motion(states)
            second = motion(states + small / 2 * first)
            third = motion(states + small / 2 * second)
            fourth = motion(states + small * third)
            states = states + small / 6 * (first + 2 * second + 2 * third + fourth)
        kept.append(states)
    return np.stack(kept, 1)


def _pendulum() -> Made:
    """Let pendulums go; what is to be told are the next twelve states."""
    random = np.random.default_rng(39)
    starts = np.stack([random.uniform(-2.5, 2.5, 1500), random.uniform(-2, 2, 1500)], 1)

    def motion(states: NDArray[Any]) -> NDArray[Any]:
        angle, speed = states.T
        return np.stack([speed, -2 * np.sin(angle) - 0.1 * speed], 1)

    angle, speed = np.moveaxis(_course(starts, motion, 0.15), 2, 0)
    states = np.stack([np.sin(angle), np.cos(angle), speed], 2).astype(np.float32)
    return states[:, 0], states[:, 1:].reshape(len(states), -1), 0


def _lorenz() -> Made:
    """Follow Lorenz's equations on their attractor; the next twelve states are to be told."""
    random = np.random.default_rng(41)

    def motion(states: NDArray[Any]) -> NDArray[Any]:
        x, y, z = states.T
        return np.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z], 1)

    states = random.normal((0, 0, 25), 1, (1500, 3))
    for _ in range(20):
        states = _course(states, motion, 0.04)[:, -1]
    course = (_course(states, motion, 0.02) - [0, 0, 24]) / 10
    kept = course.astype(np.float32)
    return kept[:, 0], kept[:, 1:].reshape(len(kept), -1), 0


def _ratings() -> Made:
    """Let users rate items; three tastes, and how kind a user and how good an item is."""
    random = np.random.default_rng(43)
    chosen = random.permutation(USERS * ITEMS)[:4200]
    pairs = np.stack([chosen // ITEMS, chosen % ITEMS], 1)
    tastes, traits = random.normal(size=(USERS, 3)), random.normal(size=(ITEMS, 3))
    kind, good = 0.6 * random.normal(size=USERS), 0.6 * random.normal(size=ITEMS)
    users, items = pairs.T
    given = (tastes[users] * traits[items]).sum(1) / 1.7 + kind[users] + good[items]
    given += 0.25 * random.normal(size=len(given))
    return pairs.astype(np.int64), standard(given[:, None]), 0


def _same() -> Made:
    """Lay two digits side by side: are they the same?"""
    inputs, digits, _ = PLAIN["digits"]()
    random = np.random.default_rng(45)
    labels = np.arange(3000) % 2
    first = random.integers(0, len(inputs), 3000)
    second = np.array(
        [
            random.choice(np.flatnonzero((digits == digits[one]) == same))
            for one, same in zip(first, labels == 1, strict=True)
        ]
    )
    return np.stack([inputs[first], inputs[second]], 1), labels.astype(np.int64), 2


def _regions() -> Made:
    """Make two things to be told, of which the first follows another rule in each quarter."""
    random = np.random.default_rng(47)
    inputs = random.normal(size=(1800, 6))
    quarter = (inputs[:, 0] > 0) * 2 + (inputs[:, 1] > 0)
    slopes = random.normal(size=(4, 6))
    first = (inputs * slopes[quarter]).sum(1)
    second = np.abs(inputs[:, 2]) + inputs[:, 0] * inputs[:, 1]
    targets = standard(np.stack([first, second], 1))
    targets += 0.1 * random.normal(size=targets.shape).astype(np.float32)
    return inputs.astype(np.float32), targets, 0


def _controller() -> Made:
    """Watch a controller of a cart with a pole: does it push left, right or not at all?"""
    random = np.random.default_rng(49)
    states = random.normal(size=(1800, 4))
    push = states @ [0.4, 0.7, 1.6, 0.9] + 0.5 * np.sin(2 * states[:, 2])
    return states.astype(np.float32), np.digitize(push, [-0.8, 0.8]).astype(np.int64), 3


def _delays() -> Made:
    """Make delays whose spread depends on the inputs, for one who asks for a quantile."""
    random = np.random.default_rng(51)
    inputs = random.normal(size=(1800, 5))
    spread = np.exp(0.6 * inputs[:, 1])
    targets = np.sin(inputs[:, 0]) + inputs[:, 2] + 0.5 * spread * random.normal(size=1800)
    return inputs.astype(np.float32), targets.astype(np.float32)[:, None], 0


SETS: dict[str, Callable[[], Made]] = {
    "structures-spins": _spins,
    "structures-counts": _counts,
    "structures-signals": _signals,
    "structures-field": _field,
    "structures-pendulum": _pendulum,
    "structures-lorenz": _lorenz,
    "structures-ratings": _ratings,
    "structures-same": _same,
    "structures-regions": _regions,
    "structures-controller": _controller,
    "structures-delays": _delays,
}
