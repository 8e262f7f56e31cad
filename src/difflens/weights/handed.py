"""Whatever is handed in as weights or gradients, as one open model: arrays, a list, a file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike, fspath
from typing import Any, NamedTuple

import numpy as np

from ..dtypes import FLOATS, OPAQUE
from ..errors import ModelError
from ..measure.chunks import Side
from ..measure.values import Values
from ..protocols import TensorSource
from ..records import TensorInfo

IN_MEMORY = "memory"
_NUMBERLESS = OPAQUE | {"C64", "F8_E8M0"}


class Tensors(NamedTuple):
    """The tensors that hold numbers, in order, and why the others are left out."""

    name: str
    source: TensorSource
    infos: tuple[TensorInfo, ...]
    skipped: dict[str, str]

    def values(self, info: TensorInfo) -> Values:
        """Give one tensor's numbers on demand."""
        return Values(Side(self.source, info))


@contextmanager
def opened(given: Any) -> Iterator[Tensors]:
    """Open a mapping of names to arrays, a list of arrays, a path, or a model that is open.

    Arrays keep the order they come in, tensors of a file stand in the natural order of names.
    Whole numbers in arrays are taken as numbers; in a file they are codes or counters, and left
    out.
    """
    if isinstance(given, (str, PathLike)):
        from ..sources import open_model

        source = open_model(fspath(given))
        try:
            yield _in_file(fspath(given), source)
            source.confirm()
        finally:
            source.close()
    elif hasattr(given, "read_into") and hasattr(given, "tensors"):
        yield _in_file(given.format, given)
        given.confirm()
    else:
        yield _in_memory(given)


def _in_file(name: str, source: TensorSource) -> Tensors:
    kept, skipped = [], {}
    for info in sorted(source.tensors.values(), key=lambda each: _natural(each.name)):
        if info.dtype in FLOATS and info.dtype not in _NUMBERLESS:
            kept.append(info)
        else:
            skipped[info.name] = f"{info.dtype} holds codes or counters, not weights"
    return Tensors(name, source, tuple(kept), skipped)


def _natural(name: str) -> list[tuple[int, str]]:
    parts = re.split(r"(\d+)", name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _in_memory(given: Any) -> Tensors:
    from ..sources.memory import Memory

    named = _named(given)
    arrays = {name: _array(name, each) for name, each in named.items() if each is not None}
    source = Memory(arrays)
    skipped = {name: "there is no array" for name, each in named.items() if each is None}
    return Tensors(IN_MEMORY, source, tuple(source.tensors.values()), skipped)


def _named(given: Any) -> dict[str, Any]:
    if isinstance(given, Mapping):
        names = [str(name) for name in given]
        if len(set(names)) < len(names):
            raise ModelError(IN_MEMORY, "two arrays go by one name", hint="1 and '1' are one")
        return dict(zip(names, given.values(), strict=True))
    if hasattr(given, "shape"):
        return {"0": given}
    if not isinstance(given, Sequence) or isinstance(given, (bytes, bytearray)):
        what = type(given).__name__
        hint = "hand in name -> array, a list of arrays, or the path of a model"
        raise ModelError(IN_MEMORY, f"a {what} holds no arrays", hint=hint)
    return {str(place): each for place, each in enumerate(given)}


def _array(name: str, given: Any) -> Any:
    """Give an array that the memory source can read: real numbers, in this machine's order."""
    if hasattr(given, "detach"):  # a torch tensor; numpy does not know all of its floats
        floats = getattr(given.dtype, "is_floating_point", True)
        return given if floats else given.detach().double()
    try:
        array = np.asarray(given)
    except ValueError as error:
        raise ModelError(name, f"no array: {error}") from None
    if array.dtype.kind in "iub" or array.dtype == np.longdouble:
        return array.astype(np.float64)
    if array.dtype.kind == "f":
        return array.astype(array.dtype.newbyteorder("="), copy=False)
    if array.dtype.kind in "cOSUmM":
        raise ModelError(name, f"an array of {array.dtype} holds no real numbers")
    return array
