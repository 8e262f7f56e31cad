"""What befalls data on their way from a table: leaks, gaps, identifiers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .configs import Config

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .data import Data


def with_oddities(data: Data, config: Config, seed: int) -> Data:
    """Return the data with what the knobs do to them; with their defaults, as they are."""
    random = np.random.default_rng(seed + 4000)
    if config.missing:
        data = data._replace(
            inputs=_gaps(data.inputs, config, random),
            held_inputs=_gaps(data.held_inputs, config, random),
        )
    if config.identifiers:
        data = _widened(data, *(_codes(len(each), config, random) for each in _sides(data)))
    if config.leak:
        told = np.eye(data.classes)[data.targets] if data.classes else data.targets
        data = _widened(data, told, np.zeros((len(data.held_inputs), told.shape[1])))
    return data


def _sides(data: Data) -> tuple[NDArray[Any], NDArray[Any]]:
    return data.inputs, data.held_inputs


def _gaps(inputs: NDArray[Any], config: Config, random: np.random.Generator) -> NDArray[Any]:
    gone = random.random(inputs.shape) < config.missing
    return np.where(gone, np.float32(config.missing_as), inputs)


def _codes(rows: int, config: Config, random: np.random.Generator) -> NDArray[Any]:
    """Return one column of many for each row: its identifier, coded and scaled to spread one."""
    kinds = config.identifiers
    return np.eye(kinds)[random.integers(0, kinds, rows)] * kinds**0.5


def _widened(data: Data, columns: NDArray[Any], held: NDArray[Any]) -> Data:
    return data._replace(
        inputs=np.hstack([data.inputs, columns]).astype(np.float32),
        held_inputs=np.hstack([data.held_inputs, held]).astype(np.float32),
    )
