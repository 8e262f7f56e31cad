"""The data of the zoo: what ships with scikit-learn, and what is made from a seed."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .configs import Config

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

_SPLIT, _VOCABULARY, _LENGTH, _TIME = 7, 12, 24, 60


class Data(NamedTuple):
    """Examples to train on and examples held back, as arrays; `classes` is 0 for regression."""

    inputs: NDArray[Any]
    targets: NDArray[Any]
    held_inputs: NDArray[Any]
    held_targets: NDArray[Any]
    classes: int


def load(config: Config, seed: int) -> Data:
    """Give the data of a configuration, with what its knobs do to it."""
    data = _raw(config.data)
    if config.data in {"sequences", "markov"}:
        data = _shortened(data, config.length)
    inputs, targets = data.inputs, data.targets
    if config.samples:
        inputs, targets = inputs[: config.samples], targets[: config.samples]
    if config.labels == "permuted":
        targets = np.random.default_rng(seed + 1000).permutation(targets)
    if config.label_noise:
        random = np.random.default_rng(seed + 2000)
        drawn = random.integers(0, data.classes, targets.shape)
        targets = np.where(random.random(targets.shape) < config.label_noise, drawn, targets)
    if config.order == "sorted":
        order = np.argsort(targets, kind="stable")
        inputs, targets = inputs[order], targets[order]
    held_inputs, held_targets = data.held_inputs, data.held_targets
    if inputs.dtype.kind == "f":
        inputs = inputs * config.input_scale + config.input_shift
        held_inputs = held_inputs * config.input_scale + config.input_shift
    if data.classes == 0:
        targets, held_targets = targets * config.target_scale, held_targets * config.target_scale
    return Data(inputs, targets, held_inputs, held_targets, data.classes)


def _shortened(data: Data, length: int) -> Data:
    """Take the first places of each sequence; a label of the whole stays."""
    every = data.targets.ndim > 1
    return data._replace(
        inputs=data.inputs[:, :length],
        held_inputs=data.held_inputs[:, :length],
        targets=data.targets[:, :length] if every else data.targets,
        held_targets=data.held_targets[:, :length] if every else data.held_targets,
    )


def batches(config: Config, count: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """Yield places of examples for ever: epochs in a new order each, or the stream as it lies."""
    random = np.random.default_rng(seed)
    size = min(config.batch, count)
    while True:
        shuffled = config.order == "shuffled"
        order = random.permutation(count) if shuffled else np.arange(count)
        for start in range(0, count - size + 1, size):
            yield order[start : start + size]


@cache
def _raw(name: str) -> Data:
    made: dict[str, Any] = {
        "digits": _digits,
        "cancer": _cancer,
        "blobs": _blobs,
        "circles": _circles,
        "sequences": _sequences,
        "markov": _markov,
        "regression": _regression,
        "autoencoder": _autoencoder,
    }
    inputs, targets, classes = made[name]()
    order = np.random.default_rng(_SPLIT).permutation(len(inputs))
    inputs, targets = inputs[order], targets[order]
    cut = len(inputs) * 4 // 5
    return Data(inputs[:cut], targets[:cut], inputs[cut:], targets[cut:], classes)


def _sets() -> Any:
    """Give what ships with scikit-learn, imported when it is asked for."""
    from sklearn import datasets  # type: ignore[import-untyped]

    return datasets


def _digits() -> tuple[NDArray[Any], NDArray[Any], int]:
    inputs, labels = _sets().load_digits(return_X_y=True)
    return ((inputs - 4.9) / 6.0).astype(np.float32), labels.astype(np.int64), 10


def _cancer() -> tuple[NDArray[Any], NDArray[Any], int]:
    inputs, labels = _sets().load_breast_cancer(return_X_y=True)
    return _standard(inputs), labels.astype(np.int64), 2


def _blobs() -> tuple[NDArray[Any], NDArray[Any], int]:
    inputs, labels = _sets().make_blobs(
        1500, n_features=8, centers=6, cluster_std=2.5, random_state=3
    )
    return _standard(inputs), labels.astype(np.int64), 6


def _circles() -> tuple[NDArray[Any], NDArray[Any], int]:
    inputs, labels = _sets().make_circles(1500, noise=0.08, factor=0.5, random_state=3)
    return _standard(inputs), labels.astype(np.int64), 2


def _sequences() -> tuple[NDArray[Any], NDArray[Any], int]:
    """Make noise of 60 steps; the label is the sign of the first value, which stands out."""
    random = np.random.default_rng(5)
    inputs = random.normal(0, 0.05, (1500, _TIME, 1))
    labels = random.integers(0, 2, 1500)
    inputs[:, 0, 0] = 2.0 * labels - 1
    return inputs.astype(np.float32), labels.astype(np.int64), 2


def _markov() -> tuple[NDArray[Any], NDArray[Any], int]:
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


def _regression() -> tuple[NDArray[Any], NDArray[Any], int]:
    random = np.random.default_rng(11)
    inputs = random.normal(size=(1500, 8))
    slopes = random.normal(size=8)
    targets = inputs @ slopes / 2 + np.sin(2 * inputs[:, 0]) + 0.1 * random.normal(size=1500)
    return inputs.astype(np.float32), targets.astype(np.float32)[:, None], 0


def _autoencoder() -> tuple[NDArray[Any], NDArray[Any], int]:
    inputs, _, _ = _digits()
    return inputs, inputs, 0


def _standard(inputs: NDArray[Any]) -> NDArray[np.float32]:
    scaled = (inputs - inputs.mean(axis=0)) / inputs.std(axis=0)
    return np.asarray(scaled, np.float32)
