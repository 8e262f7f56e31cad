"""The weights with which a network starts, as arrays: the same in Keras as in JAX."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..configs.config import Config
from ..data import Data

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Start(NamedTuple):
    """A kernel of shape (from, to) and its bias."""

    kernel: NDArray[np.float32]
    bias: NDArray[np.float32]


def starts(config: Config, data: Data, seed: int) -> list[Start]:
    """Draw the layers of a network from a seed, the output last."""
    random = np.random.default_rng(seed + 3000)
    depth = 0 if config.model == "logistic" else config.depth
    outputs = data.classes or int(data.targets.shape[1])
    sizes = [int(data.inputs.shape[1]), *[config.width] * depth, outputs]
    found = []
    for place, (entering, leaving) in enumerate(pairwise(sizes)):
        spread = _spread(config, entering, leaving) * config.init_scale
        kernel = random.normal(0.0, 1.0, (entering, leaving)) * spread
        bias = np.full(leaving, config.hidden_bias if place < depth else 0.0)
        found.append(Start(kernel.astype(np.float32), bias.astype(np.float32)))
    return found


def _spread(config: Config, entering: int, leaving: int) -> float:
    """Return the standard deviation of a scheme: He et al. 2015, Glorot and Bengio 2010."""
    known = {
        "he": (2 / entering) ** 0.5,
        "xavier": (2 / (entering + leaving)) ** 0.5,
        "normal": 1.0,
        "zero": 0.0,
    }
    return float(known[config.init])
