"""One number of every layer over the frames, as arrays: what a picture is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import UnknownName
from .aggregates import root_mean_square
from .envelope import empty_block
from .reading import Reading
from .states import ABSENT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .aggregates import Moment

    Floats = NDArray[np.float64]


class Cells(NamedTuple):
    """Arrays are (frames,) or (frames, layers); NaN is no value. `bounds` is the run's scale."""

    field: str
    layers: tuple[str, ...]
    steps: NDArray[np.int64]
    first_steps: NDArray[np.int64]
    spans: NDArray[np.int64]
    mean: Floats
    low: Floats
    high: Floats
    states: NDArray[np.uint8]
    bounds: tuple[float, float] | None = None

    def of_layers(self, keep: Sequence[int]) -> Cells:
        """Give some of the layers, in the order named; the scale stays that of all."""
        kept = list(keep)
        return self._replace(
            layers=tuple(self.layers[place] for place in kept),
            mean=self.mean[:, kept],
            low=self.low[:, kept],
            high=self.high[:, kept],
            states=self.states[:, kept],
        )


def matching(layers: Sequence[str], pattern: str) -> list[int]:
    """Find the layers whose name matches the pattern (with * and ?) or contains it."""
    kept = [place for place, name in enumerate(layers)
            if pattern in name or fnmatchcase(name, pattern)]  # fmt: skip
    if not kept:
        raise UnknownName("layer", pattern, layers)
    return kept


FIELDS: dict[str, Callable[[Any], Any]] = {
    "grad_rms": root_mean_square,
    "grad_l2": lambda block: Reading(*block).norm,
    "grad_mean_abs": lambda block: Reading(*block).mean_abs,
    "grad_max_abs": lambda block: Reading(*block).max_abs,
    "weight_l2": lambda block: Reading(*block).weight_norm,
    "gradient_ratio": lambda block: _over(Reading(*block).norm, Reading(*block).weight_norm),
}


def cells_of(
    moments: list[Moment], layers: tuple[str, ...], field: str, bounds: tuple[float, float] | None
) -> Cells:
    """Lay retained frames side by side; what a layer was not in is no value."""
    blocks = [_widened(each.block, len(layers)) for each in moments]
    if field == "auto":  # a file of the first animator does not say how large its layers were
        counted = not any(np.isnan(Reading(*block).elements).any() for block in blocks)
        field = "grad_rms" if counted else "grad_l2"
    if field not in FIELDS:
        raise UnknownName("field", field, FIELDS)
    shape = (len(moments), len(layers))
    values = np.array([FIELDS[field](block) for block in blocks], np.float64).reshape(shape)
    states = np.full(shape, ABSENT, np.uint8)
    for row, moment in zip(states, moments, strict=True):
        row[: len(moment.states)] = moment.states
    whole = field == "grad_rms" or all(np.isnan(Reading(*each).elements).all() for each in blocks)
    return Cells(
        field,
        layers,
        np.array([each.step for each in moments], np.int64),
        np.array([each.first_step for each in moments], np.int64),
        np.array([each.frames for each in moments], np.int64),
        values,
        values,
        values,
        states,
        bounds if whole else None,
    )


def _widened(block: Floats, layers: int) -> Floats:
    more = layers - block.shape[1]
    return block if not more else np.concatenate([block, empty_block(more)], axis=1)


def _over(above: Any, below: Any) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.asarray(below) > 0, above / below, np.nan)
