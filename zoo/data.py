"""What a configuration is trained on: its data with what its knobs do to them, in batches."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import structures_data, tokens_data
from .configs import Config
from .odd_data import with_oddities
from .picture_sets import PICTURE_SETS
from .series_sets import SERIES_SETS
from .sets import SETS
from .signals_data import SETS as SIGNALS_SETS
from .tables_data import SETS as TABLES

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

    @property
    def outputs(self) -> int:
        """How many scores a network gives for an example."""
        return self.classes or int(self.targets.shape[1])


def load(config: Config, seed: int) -> Data:
    """Return the data of a configuration, with what its knobs do to it."""
    data = _raw(config.data)
    if data.inputs.ndim == 3 or data.inputs.dtype.kind == "i":
        data = _shortened(data, config.length)
    inputs, targets = data.inputs, data.targets
    if config.samples:
        inputs, targets = inputs[: config.samples], targets[: config.samples]
    if config.imbalance < 1:
        kept = _kept(targets, data.classes, config.imbalance, seed)
        inputs, targets = inputs[kept], targets[kept]
    targets = _labelled(config, seed, inputs, targets, data.classes)
    if config.order == "sorted":
        order = np.argsort(targets if targets.ndim == 1 else targets[:, 0], kind="stable")
        inputs, targets = inputs[order], targets[order]
    held_inputs, held_targets = data.held_inputs, data.held_targets
    if config.tail:
        inputs, held_inputs = _tailed(inputs, config.tail), _tailed(held_inputs, config.tail)
    if inputs.dtype.kind == "f":
        inputs = inputs * config.input_scale + config.input_shift
        held_inputs = held_inputs * config.input_scale + config.input_shift
        held_inputs = held_inputs * config.held_scale
    inputs, held_inputs = _odd(inputs, config.odd_column), _odd(held_inputs, config.odd_column)
    if data.classes == 0:
        targets, held_targets = targets * config.target_scale, held_targets * config.target_scale
    made = Data(inputs, targets, held_inputs, held_targets, data.classes)
    return with_oddities(made, config, seed)


def _kept(targets: NDArray[Any], classes: int, share: float, seed: int) -> NDArray[Any]:
    """Tell which examples are kept where the upper half of the classes is seldom."""
    drawn = np.random.default_rng(seed + 3000).random(len(targets)) < share
    return np.asarray((targets < classes // 2) | drawn)


def _odd(inputs: NDArray[Any], scale: float) -> NDArray[Any]:
    """Return a table whose first column was left in a unit of its own."""
    if scale == 1:
        return inputs
    changed = inputs.copy()
    changed[:, 0] *= scale
    return changed


def _labelled(
    config: Config, seed: int, inputs: NDArray[Any], targets: NDArray[Any], classes: int
) -> NDArray[Any]:
    if config.labels == "permuted":
        targets = np.random.default_rng(seed + 1000).permutation(targets)
    elif config.labels == "shifted":
        targets = np.roll(targets, 1, axis=0)
    elif config.labels == "same":
        targets = inputs.copy()
    if config.label_noise:
        random = np.random.default_rng(seed + 2000)
        drawn = random.integers(0, classes, targets.shape)
        targets = np.where(random.random(targets.shape) < config.label_noise, drawn, targets)
    return targets


def _shortened(data: Data, length: int) -> Data:
    """Take the first places of each sequence; a label of the whole stays."""
    every = data.targets.ndim > 1
    return data._replace(
        inputs=data.inputs[:, :length],
        held_inputs=data.held_inputs[:, :length],
        targets=data.targets[:, :length] if every else data.targets,
        held_targets=data.held_targets[:, :length] if every else data.held_targets,
    )


def _tailed(inputs: NDArray[Any], places: int) -> NDArray[Any]:
    wide = [(0, 0), (0, places), *[(0, 0)] * (inputs.ndim - 2)]
    return np.pad(inputs, wide)


def batches(config: Config, count: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """Yield places of examples for ever: epochs in a new order each, or the stream as it lies."""
    random = np.random.default_rng(seed)
    size = min(config.batch, count)
    while True:
        shuffled = config.order == "shuffled"
        order = random.permutation(count) if shuffled else np.arange(count)
        for start in range(0, count - size + 1, size):
            yield order[:size] if config.order == "stuck" else order[start : start + size]


@cache
def _raw(name: str) -> Data:
    sets = SETS | PICTURE_SETS | SERIES_SETS | SIGNALS_SETS | TABLES | tokens_data.SETS
    sets = sets | structures_data.SETS
    inputs, targets, classes = sets[name]()
    order = np.random.default_rng(_SPLIT).permutation(len(inputs))
    inputs, targets = inputs[order], targets[order]
    cut = len(inputs) * 4 // 5
    return Data(inputs[:cut], targets[:cut], inputs[cut:], targets[cut:], classes)
