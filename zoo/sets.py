"""The data of the zoo: what ships with scikit-learn, and what is made from a seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Made = tuple[NDArray[Any], NDArray[Any], int]  # inputs, targets, classes (0: regression)

_VOCABULARY, _LENGTH, _TIME = 12, 24, 60


def _sets() -> Any:
    """Return what ships with scikit-learn, imported when it is asked for."""
    from sklearn import datasets

    return datasets


def _digits() -> Made:
    inputs, labels = _sets().load_digits(return_X_y=True)
    return ((inputs - 4.9) / 6.0).astype(np.float32), labels.astype(np.int64), 10


def _cancer() -> Made:
    inputs, labels = _sets().load_breast_cancer(return_X_y=True)
    return standard(inputs), labels.astype(np.int64), 2


def _blobs() -> Made:
    inputs, labels = _sets().make_blobs(
        1500, n_features=8, centers=6, cluster_std=2.5, random_state=3
    )
    return standard(inputs), labels.astype(np.int64), 6


def _circles() -> Made:
    inputs, labels = _sets().make_circles(1500, noise=0.08, factor=0.5, random_state=3)
    return standard(inputs), labels.astype(np.int64), 2


def _sequences() -> Made:
    """Make noise of 60 steps; the label is the sign of the first value, which stands out."""
    random = np.random.default_rng(5)
    inputs = random.normal(0, 0.05, (1500, _TIME, 1))
    labels = random.integers(0, 2, 1500)
    inputs[:, 0, 0] = 2.0 * labels - 1
    return inputs.astype(np.float32), labels.astype(np.int64), 2


def _markov() -> Made:
    """Draw sequences of a Markov chain; what is to be told is the next token."""
    random = np.random.default_rng(9)
    chain = random.dirichlet(np.full(_VOCABULARY, 0.15), _VOCABULARY)
    tokens = np.zeros((1500, _LENGTH + 1), np.int64)
    tokens[:, 0] = random.integers(0, _VOCABULARY, 1500)
    reach = chain.cumsum(axis=1)
    for place in range(_LENGTH):
        draw = random.random((1500, 1))
        nearest = (reach[tokens[:, place]] < draw).sum(axis=1)
        tokens[:, place + 1] = np.minimum(nearest, _VOCABULARY - 1)
    return tokens[:, :-1], tokens[:, 1:], _VOCABULARY


def _regression() -> Made:
    random = np.random.default_rng(11)
    inputs = random.normal(size=(1500, 8))
    slopes = random.normal(size=8)
    targets = inputs @ slopes / 2 + np.sin(2 * inputs[:, 0]) + 0.1 * random.normal(size=1500)
    return inputs.astype(np.float32), targets.astype(np.float32)[:, None], 0


def _autoencoder() -> Made:
    inputs, _, _ = _digits()
    return inputs, inputs, 0


def _wine() -> Made:
    inputs, labels = _sets().load_wine(return_X_y=True)
    return standard(inputs), labels.astype(np.int64), 3


def _moons() -> Made:
    inputs, labels = _sets().make_moons(1500, noise=0.15, random_state=4)
    return standard(inputs), labels.astype(np.int64), 2


def _friedman() -> Made:
    """Make a regression in which five of ten columns count (Friedman 1991)."""
    inputs, targets = _sets().make_friedman1(1500, noise=0.5, random_state=6)
    return standard(inputs), standard(targets[:, None]), 0


def _rows() -> Made:
    """Read each digit as a sequence of its eight rows."""
    inputs, labels, classes = _digits()
    return inputs.reshape(-1, 8, 8), labels, classes


def _waves() -> Made:
    """Make windows of two waves with noise; what is to be told is the next value."""
    random = np.random.default_rng(13)
    start, pace = random.uniform(0, 2 * np.pi, (1500, 1)), random.uniform(0.2, 0.6, (1500, 1))
    times = np.arange(25)
    course = np.sin(start + pace * times) + 0.5 * np.sin(2 * start + 3 * pace * times)
    course += 0.05 * random.normal(size=course.shape)
    windows = course.astype(np.float32)
    return windows[:, :-1, None], windows[:, -1:], 0


def _spirals() -> Made:
    """Make three arms of a spiral, which no straight line parts."""
    random = np.random.default_rng(15)
    labels = np.arange(1500) % 3
    radius = random.uniform(0.1, 1, 1500)
    turn = 4 * radius + labels * 2 * np.pi / 3 + 0.15 * random.normal(size=1500)
    inputs = np.stack([radius * np.cos(turn), radius * np.sin(turn)], axis=1)
    return standard(inputs), labels.astype(np.int64), 3


def standard(inputs: NDArray[Any]) -> NDArray[np.float32]:
    """Return columns of mean zero and spread one."""
    scaled = (inputs - inputs.mean(axis=0)) / inputs.std(axis=0)
    return np.asarray(scaled, np.float32)


SETS: dict[str, Callable[[], Made]] = {
    "digits": _digits,
    "cancer": _cancer,
    "blobs": _blobs,
    "circles": _circles,
    "sequences": _sequences,
    "markov": _markov,
    "regression": _regression,
    "autoencoder": _autoencoder,
    "wine": _wine,
    "moons": _moons,
    "friedman": _friedman,
    "rows": _rows,
    "waves": _waves,
    "spirals": _spirals,
}
