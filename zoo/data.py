"""What a configuration is trained on: its data with what its knobs do to them, in batches."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .configs import Config
from .sets import SETS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

_SPLIT = 7


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
    if data.inputs.ndim == 3 or data.inputs.dtype.kind == "i":
        data = _shortened(data, config.length)
    inputs, targets = data.inputs, data.targets
    if config.samples:
        inputs, targets = inputs[: config.samples], targets[: config.samples]
    if config.labels == "permuted":
        targets = np.random.default_rng(seed + 1000).permutation(targets)
    elif config.labels == "shifted":
        targets = np.roll(targets, 1, axis=0)
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
    inputs, targets, classes = SETS[name]()
    order = np.random.default_rng(_SPLIT).permutation(len(inputs))
    inputs, targets = inputs[order], targets[order]
    cut = len(inputs) * 4 // 5
    return Data(inputs[:cut], targets[:cut], inputs[cut:], targets[cut:], classes)
