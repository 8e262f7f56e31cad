"""Signals and small pictures made from a seed: chirps, beats, motion, tones, texture, cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .sets import SETS as PLAIN_SETS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Made = tuple[NDArray[Any], NDArray[Any], int]  # inputs, targets, classes (0: regression)

_COUNT = 1000


def _series(values: NDArray[Any], labels: NDArray[Any], classes: int) -> Made:
    return values.astype(np.float32), labels.astype(np.int64), classes


def _chirps() -> Made:
    """Make tones whose pitch rises, falls, stays, or rises and falls again."""
    random = np.random.default_rng(61)
    labels = random.integers(0, 4, _COUNT)
    times = np.linspace(0, 1, 48)
    courses = np.stack([times, 1 - times, np.full(48, 0.5), 1 - np.abs(2 * times - 1)])
    low, span = random.uniform(0.2, 0.4, (_COUNT, 1)), random.uniform(0.8, 1.2, (_COUNT, 1))
    phase = random.uniform(0, 2 * np.pi, (_COUNT, 1)) + np.cumsum(low + span * courses[labels], 1)
    values = 1.4 * np.sin(phase) + random.normal(0, 0.25, phase.shape)
    return _series(values[..., None], labels, 4)


def _beats() -> Made:
    """Make heart beats: as they should be, too wide, with the last wave upside down."""
    random = np.random.default_rng(62)
    labels = random.integers(0, 3, _COUNT)
    times = np.arange(40)[None]
    place = random.uniform(10, 18, (_COUNT, 1))
    width = np.where(labels == 1, 2.4, 1.0)[:, None] * random.uniform(0.9, 1.2, (_COUNT, 1))
    tail = np.where(labels == 2, -0.5, 0.5)[:, None]
    values = 2.5 * np.exp(-0.5 * ((times - place) / width) ** 2)
    values += tail * np.exp(-0.5 * ((times - place - 12) / 3) ** 2)
    values += 0.3 * np.sin(random.uniform(0, 6, (_COUNT, 1)) + times / 12)
    values += random.normal(0, 0.2, values.shape)
    return _series(values[..., None] - 0.3, labels, 3)


def _motion() -> Made:
    """Make what a sensor on a wrist tells along three axes: rest, walk, run, a slow turn."""
    random = np.random.default_rng(63)
    labels = random.integers(0, 4, _COUNT)
    times = np.arange(32)[None, :, None]
    down = random.normal(size=(_COUNT, 1, 3))
    down /= np.linalg.norm(down, axis=2, keepdims=True)
    side = np.roll(down, 1, axis=2)
    pace = np.array([0.0, 0.6, 1.3, 0.12])[labels, None, None]
    size = np.array([0.0, 1.0, 1.6, 1.2])[labels, None, None]
    phase = random.uniform(0, 2 * np.pi, (_COUNT, 1, 1))
    way = np.where((labels == 3)[:, None, None], side, down + random.normal(0, 0.3, (_COUNT, 1, 3)))
    values = down + size * way * np.sin(phase + pace * times)
    values += random.normal(0, 0.15, values.shape)
    return _series(values, labels, 4)


def _wake() -> Made:
    """Make a short tone of one of three pitches, and hiss behind it; the label is the pitch."""
    random = np.random.default_rng(64)
    labels = random.integers(0, 3, _COUNT)
    values = random.normal(0, 0.1, (_COUNT, 30))
    phase = random.uniform(-0.4, 0.4, (_COUNT, 1))
    pace = np.array([0.4, 1.0, 1.7])[labels, None]
    values[:, :8] += np.sin(phase + pace * np.arange(8)[None])
    return _series(values[..., None], labels, 3)


def _pitch() -> Made:
    """Make tones that die away; what is to be told is how high they are."""
    random = np.random.default_rng(65)
    pace = random.uniform(0.2, 1.2, (_COUNT, 1))
    times = np.arange(24)[None]
    values = 2 * np.sin(random.uniform(0, 2 * np.pi, (_COUNT, 1)) + pace * times)
    values = values * np.exp(-times / 30) + random.normal(0, 0.1, values.shape)
    targets = (pace - 0.7) / 0.29
    return values.astype(np.float32)[..., None], targets.astype(np.float32), 0


def _grid(side: int) -> tuple[NDArray[Any], NDArray[Any]]:
    rows, columns = np.mgrid[:side, :side]
    return rows[None].astype(float), columns[None].astype(float)


def _texture() -> Made:
    """Draw stripes that run in one of four directions, under noise."""
    random = np.random.default_rng(66)
    labels = random.integers(0, 4, _COUNT)
    rows, columns = _grid(10)
    turn = (labels * np.pi / 4 + random.normal(0, 0.08, _COUNT))[:, None, None]
    pace = random.uniform(1.2, 2.0, (_COUNT, 1, 1))
    phase = random.uniform(0, 2 * np.pi, (_COUNT, 1, 1))
    values = np.sin(phase + pace * (rows * np.cos(turn) + columns * np.sin(turn)))
    values += random.normal(0, 0.6, values.shape)
    return _series(values.reshape(_COUNT, -1), labels, 4)


def _cells() -> Made:
    """Draw round cells, bright or dim, under noise; what is to be told is where they are."""
    random = np.random.default_rng(67)
    rows, columns = _grid(12)
    mask = np.zeros((_COUNT, 12, 12), bool)
    light = random.normal(0, 0.6, mask.shape)
    for number in range(3):
        centre = random.uniform(1, 11, (2, _COUNT, 1, 1))
        reach = random.uniform(1.5, 2.8, (_COUNT, 1, 1))
        there = (rows - centre[0]) ** 2 + (columns - centre[1]) ** 2 < reach**2
        there &= (random.random((_COUNT, 1, 1)) < 0.7) | (number == 0)
        light += there * random.uniform(0.8, 1.6, (_COUNT, 1, 1)) * ~mask
        mask |= there
    shape = _COUNT, -1
    return (
        (light - 0.4).astype(np.float32).reshape(shape),
        mask.astype(np.float32).reshape(shape),
        0,
    )


def _grainy() -> Made:
    """Put grain on the digits; the clean digit is to be told."""
    inputs, _, _ = PLAIN_SETS["digits"]()
    grain = np.random.default_rng(68).normal(0, 0.7, inputs.shape)
    return (inputs + grain).astype(np.float32), inputs, 0


SETS: dict[str, Callable[[], Made]] = {
    "signals-chirps": _chirps,
    "signals-beats": _beats,
    "signals-motion": _motion,
    "signals-wake": _wake,
    "signals-pitch": _pitch,
    "signals-texture": _texture,
    "signals-cells": _cells,
    "signals-grainy": _grainy,
}
