"""Series, sentences, counts and curves, made from a seed; and one that ships with scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .sets import Made

_COUNT, _ECHO, _DEEPEST = 1500, 3, 4


def _reviews() -> Made:
    """Draw sentences of 4 to 16 words, empty places behind; the label is their mood summed."""
    random = np.random.default_rng(21)
    moods = random.normal(size=40)
    tokens = random.integers(1, 40, (_COUNT, 16))
    ends = random.integers(4, 17, (_COUNT, 1))
    tokens = np.where(np.arange(16) < ends, tokens, 0)
    sums = np.where(tokens > 0, moods[tokens], 0.0).sum(axis=1)
    return tokens.astype(np.int64), (sums > np.median(sums)).astype(np.int64), 2


def _slots() -> Made:
    """Draw sentences whose label is the kind of their third word alone."""
    random = np.random.default_rng(22)
    tokens = random.integers(1, 13, (_COUNT, 12))
    ends = random.integers(6, 13, (_COUNT, 1))
    tokens = np.where(np.arange(12) < ends, tokens, 0)
    return tokens.astype(np.int64), (tokens[:, 2] % 4).astype(np.int64), 4


def _echo() -> Made:
    """Draw tokens; what is to be told at each place is the token three places before."""
    random = np.random.default_rng(23)
    tokens = random.integers(1, 9, (_COUNT, 14))
    targets = np.zeros_like(tokens)
    targets[:, _ECHO:] = tokens[:, :-_ECHO]
    return tokens.astype(np.int64), targets.astype(np.int64), 9


def _grammar() -> Made:
    """Draw a language in which two words decide about the next."""
    random = np.random.default_rng(24)
    reach = random.dirichlet(np.full(8, 0.1), (8, 8)).cumsum(axis=-1)
    tokens = random.integers(0, 8, (_COUNT, 17))
    for place in range(2, 17):
        draw = random.random((_COUNT, 1))
        after = (reach[tokens[:, place - 2], tokens[:, place - 1]] < draw).sum(axis=1)
        tokens[:, place] = np.minimum(after, 7)
    tokens = tokens + 1  # zero is for places that are empty
    return tokens[:, :-1].astype(np.int64), tokens[:, 1:].astype(np.int64), 9


def _brackets() -> Made:
    """Draw brackets and words; what is to be told at each place is how deep it is."""
    random = np.random.default_rng(25)
    tokens = random.choice([1, 2, 3, 4], (_COUNT, 18), p=[0.35, 0.25, 0.2, 0.2])
    depth, targets = np.zeros(_COUNT, np.int64), np.zeros((_COUNT, 18), np.int64)
    for place in range(18):
        step = (tokens[:, place] == 1).astype(np.int64) - (tokens[:, place] == 2)
        depth = np.clip(depth + step, 0, _DEEPEST)
        targets[:, place] = depth
    return tokens.astype(np.int64), targets, _DEEPEST + 1


def _motifs() -> Made:
    """Make noisy waves of three shapes; the label is the shape."""
    random = np.random.default_rng(26)
    labels = np.arange(_COUNT) % 3
    start, pace = random.uniform(0, 1, (_COUNT, 1)), random.uniform(0.06, 0.12, (_COUNT, 1))
    turn = (start + pace * np.arange(28)) % 1.0
    shapes = np.stack([np.sin(2 * np.pi * turn) * 1.4, np.sign(turn - 0.5), 3.4 * turn - 1.7])
    series = shapes[labels, np.arange(_COUNT)] + 0.35 * random.normal(size=(_COUNT, 28))
    return series.astype(np.float32)[:, :, None], labels.astype(np.int64), 3


def _seasonal() -> Made:
    """Make windows of a season with drift and noise; the next three values are to be told."""
    random = np.random.default_rng(27)
    start, tilt = random.uniform(0, 8, (_COUNT, 1)), random.normal(0, 0.04, (_COUNT, 1))
    times = np.arange(23)
    course = np.sin(2 * np.pi * (start + times) / 8) + 0.6 * np.cos(np.pi * (start + times) / 5)
    course = course + tilt * times + 0.1 * random.normal(size=course.shape)
    series = course.astype(np.float32)
    return series[:, :20, None], series[:, 20:], 0


def _curves() -> Made:
    """Make peaks of a place, a width and a height each, as a spectrometer would."""
    random = np.random.default_rng(28)
    grid = np.linspace(-1, 1, 40)
    place, width = random.uniform(-0.7, 0.7, (_COUNT, 1)), random.uniform(0.15, 0.5, (_COUNT, 1))
    height = random.uniform(0.5, 2.0, (_COUNT, 1))
    curves = height * np.exp(-(((grid - place) / width) ** 2))
    curves = (curves - curves.mean()) / curves.std() + 0.02 * random.normal(size=curves.shape)
    return curves.astype(np.float32), curves.astype(np.float32), 0


def _counts() -> Made:
    """Draw counts whose rate depends on six of eight columns."""
    random = np.random.default_rng(29)
    inputs = random.normal(size=(_COUNT, 8))
    rates = 0.6 + inputs[:, :5] @ np.array([0.5, -0.4, 0.3, 0.2, -0.2]) + 0.4 * np.sin(inputs[:, 5])
    targets = random.poisson(np.exp(rates))
    return inputs.astype(np.float32), targets.astype(np.float32)[:, None], 0


def _heavy() -> Made:
    """Make a regression whose errors have long tails."""
    random = np.random.default_rng(30)
    inputs = random.normal(size=(_COUNT, 6))
    truth = inputs @ random.normal(size=6) + np.abs(inputs[:, 0]) * inputs[:, 1]
    targets = truth + 0.2 * random.standard_t(1.5, size=_COUNT)
    return inputs.astype(np.float32), targets.astype(np.float32)[:, None], 0


def _spread() -> Made:
    """Make a regression whose noise depends on a column."""
    random = np.random.default_rng(31)
    inputs = random.normal(size=(_COUNT, 5))
    truth = np.sin(1.5 * inputs[:, 0]) + 0.5 * inputs[:, 1]
    targets = truth + 0.25 * np.exp(0.7 * inputs[:, 2]) * random.normal(size=_COUNT)
    return inputs.astype(np.float32), targets.astype(np.float32)[:, None], 0


SERIES_SETS: dict[str, Callable[[], Made]] = {
    "reviews": _reviews,
    "slots": _slots,
    "echo": _echo,
    "grammar": _grammar,
    "brackets": _brackets,
    "motifs": _motifs,
    "seasonal": _seasonal,
    "curves": _curves,
    "counts": _counts,
    "heavy": _heavy,
    "spread": _spread,
}
