"""Hybrids in memory: arrays by name, made anew for every evaluation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from difflens.core.buffers import ThreadBuffers
from difflens.core.dtypes import BY_NUMPY_NAME
from difflens.core.protocols import TensorSource
from difflens.core.records import TensorInfo
from difflens.models.opening import Module, flatten

from ..chunks import read_whole
from .hybrids import Hybrid, Models
from .pieces import Piece, Selection


class Arrays:
    """Makes hybrids of arrays. A check may change what it gets: the models stay as they are."""

    def __init__(self, models: Models, good: Any, bad: Any) -> None:
        """Copy nothing yet; a model that is not in memory is read for each hybrid."""
        self._models = models
        self._good, self._bad = _arrays(good), _arrays(bad)
        self._by_bad = {each.bad.name: each for each in models.changes.values() if each.bad}

    @contextmanager
    def hybrid(self, selection: Selection, *, fresh: bool) -> Iterator[Hybrid]:  # noqa: ARG002
        """Yield the arrays by name."""
        pieces = {piece.name: piece for piece in selection}
        arrays = {
            name: self._array(name, info, pieces)
            for name, info in self._models.infos(selection).items()
        }
        yield Hybrid(arrays, is_fresh=True)

    def close(self) -> None:
        """Do nothing: arrays go when nobody has them."""

    def _array(self, name: str, info: TensorInfo, pieces: Mapping[str, Piece]) -> Any:
        change = self._by_bad.get(name) or self._models.changes.get(name)
        piece = pieces.get(change.name) if change else None
        if self._good is None or self._bad is None:
            data = bytearray().join(bytes(part) for part in self._models.read(change, name, piece))
            return _decoded(data, info)
        if change is None or piece is None:
            return _copy(self._bad[name])
        good: Any = self._good[change.good.name] if change.good else None
        if piece.axis is None:
            return _copy(good)
        array: Any = _copy(self._bad[name])
        for start, stop in piece.spans:
            where = slice(start, stop) if piece.axis == 0 else (slice(None), slice(start, stop))
            array[where] = good[where]
        return array


def arrays_of(source: TensorSource, model: Any) -> dict[str, Any]:
    """Return copies of the arrays of one model."""
    arrays = _arrays(model)
    if arrays is not None:
        return {name: _copy(array) for name, array in arrays.items()}
    found, buffers = {}, ThreadBuffers()
    for name, info in source.tensors.items():
        data = bytearray()
        for part in read_whole(source, info, buffers):
            data += part
        found[name] = _decoded(data, info)
    return found


def _arrays(model: Any) -> dict[str, Any] | None:
    """Return the arrays of a model in memory; None of one that is read from elsewhere."""
    if isinstance(model, Module):
        model = model.state_dict()
    return dict(flatten(model)) if isinstance(model, Mapping) else None


def _copy(array: Any) -> Any:
    if hasattr(array, "detach"):
        return array.detach().clone()
    return array.copy() if hasattr(array, "copy") else array + 0


def _decoded(data: bytearray, info: TensorInfo) -> Any:
    import ml_dtypes
    import numpy as np

    names = {dtype: name for name, dtype in BY_NUMPY_NAME.items()}
    name = names.get(info.dtype, "uint8")
    kind = getattr(ml_dtypes, name, None) or np.dtype(name)
    array = np.frombuffer(data, kind)
    return array.reshape(info.shape) if info.dtype in names else array
