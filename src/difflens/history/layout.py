"""How frames are laid out, and how one layout is spread over a wider one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from ..runs import RunInfo
from .frame import MISSING, MISSING_SCALAR, Frame

if TYPE_CHECKING:
    from numpy.typing import NDArray

Layout = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]


def layout(info: RunInfo) -> Layout:
    """Name scalars, fields and layers, in the order of a frame."""
    return info.scalars, info.fields, tuple(layer.name for layer in info.layers)


def union(*infos: RunInfo) -> RunInfo:
    """Give the last info with what only those before have; the newer word on a layer wins."""
    layers = {layer.name: layer for info in infos for layer in info.layers}
    return msgspec.structs.replace(
        infos[-1],
        layers=tuple(layers.values()),
        fields=tuple(dict.fromkeys(name for info in infos for name in info.fields)),
        scalars=tuple(dict.fromkeys(name for info in infos for name in info.scalars)),
    )


class Spread:
    """Puts what is laid out as `narrow` into the places it has in `wide`."""

    def __init__(self, narrow: RunInfo, wide: RunInfo) -> None:
        """Find the places."""
        self._sizes = tuple(map(len, layout(wide)))
        self._places = tuple(
            np.array([{name: i for i, name in enumerate(broad)}[name] for name in few], np.int64)
            for few, broad in zip(layout(narrow), layout(wide), strict=True)
        )

    def scalars(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Spread the last axis; what has no place is missing."""
        spread = np.full((*values.shape[:-1], self._sizes[0]), MISSING_SCALAR)
        spread[..., self._places[0]] = values
        return spread

    def layers(self, values: NDArray[Any], fill: Any = MISSING) -> NDArray[Any]:
        """Spread the last two axes, fields and layers."""
        spread = np.full((*values.shape[:-2], *self._sizes[1:]), fill, values.dtype)
        spread[..., self._places[1][:, None], self._places[2]] = values
        return spread

    def frame(self, frame: Frame) -> Frame:
        """Spread a frame."""
        return frame._replace(scalars=self.scalars(frame.scalars), layers=self.layers(frame.layers))
