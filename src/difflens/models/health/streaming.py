"""Opens what the analyzer gets, and reads its tensors piece by piece for what the analysis needs.

One pass is enough. Only a tensor that is too large for memory and has outliers is read twice: the
second pass finds their indices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from difflens.core.dtypes import FLOATS, OPAQUE
from difflens.core.errors import ModelError
from difflens.core.natural_order import natural_key
from difflens.core.protocols import TensorSource
from difflens.core.records import TensorInfo
from difflens.measure.chunks import STEP, Side
from difflens.measure.values import Values
from difflens.stats.moments import Moments

from ..anatomy.roles import Kind
from ..anatomy.state import find_state, weights_of
from ..describe import IN_MEMORY
from ..opening import MemorySource, Module, flatten, open_input
from .spread import EXACT, Counted, Held, Spread, Tally


class Counts(NamedTuple):
    """The number of values, and of those that are NaN, infinite or zero."""

    total: int = 0
    nan: int = 0
    positive_infinite: int = 0
    negative_infinite: int = 0
    zeros: int = 0

    def plus(self, other: Counts) -> Counts:
        """Add the counts of other values."""
        return Counts(*(a + b for a, b in zip(self, other, strict=True)))

    @property
    def finite(self) -> int:
        """The number of finite values."""
        return self.total - self.nan - self.positive_infinite - self.negative_infinite


class TensorContents(NamedTuple):
    """What one pass over a tensor collects: counts, moments, extremes, spread, and output units.

    `array` is the complete tensor, flat, with NaN and infinities; None if it is too large.
    """

    counts: Counts
    moments: Moments
    low: float | None
    high: float | None
    spread: Spread | None
    units: Units | None
    array: Any
    tally: tuple[Any, Any] | None  # the codes that occur and how often, if they were counted


def read_tensor(
    values: Values, kind: Kind, most: int, *, tally: bool, step: int = STEP
) -> TensorContents:
    """Read a tensor; up to `most` values stay in memory. With `tally`, codes are always counted."""
    info = values.info
    units = None
    if kind.unit_axis is not None and info.count:
        units = Units(info.shape, kind.unit_axis)
    array = np.empty(info.count, _type(values)) if info.count <= most else None
    codes = Tally() if tally or array is None else None
    counts, moments, ends = Counts(), Moments(), _Extremes()
    start = 0
    for piece in values.pieces(step):
        finite, some = finite_of(piece)
        counts = counts.plus(some)
        moments = moments.plus(Moments.of(finite))
        ends.add(finite)
        if array is not None:
            array[start : start + piece.size] = piece
        if codes is not None:
            codes.add(finite)
        if units is not None:
            units.add(start, np.nan_to_num(np.abs(piece), nan=np.inf, posinf=np.inf))
        start += piece.size
    counted = codes.occupied() if codes is not None else None
    spread = _spread(array, counts, counted, exact=info.dtype in EXACT)
    return TensorContents(counts, moments, ends.low, ends.high, spread, units, array, counted)


def _type(values: Values) -> Any:
    return values.span(0, min(1, values.info.count)).dtype if values.info.count else np.float32


def finite_of(piece: Any) -> tuple[Any, Counts]:
    """Return the finite values of a piece, and the counts of all."""
    zeros = piece.size - int(np.count_nonzero(piece))
    fine = np.isfinite(piece)
    if fine.all():
        return piece, Counts(piece.size, 0, 0, 0, zeros)
    nan, above = int(np.isnan(piece).sum()), int(np.isposinf(piece).sum())
    finite = piece[fine]
    return finite, Counts(piece.size, nan, above, piece.size - finite.size - nan - above, zeros)


def _spread(array: Any, counts: Counts, counted: Any, *, exact: bool) -> Spread | None:
    if not counts.finite:
        return None
    if array is not None:
        return Held(array if counts.finite == counts.total else array[np.isfinite(array)], counted)
    return Counted(*counted, exact=exact)


class _Extremes:
    """The smallest and the largest value."""

    def __init__(self) -> None:
        self.low: float | None = None
        self.high: float | None = None

    def add(self, finite: Any) -> None:
        if finite.size:
            low, high = float(finite.min()) + 0.0, float(finite.max()) + 0.0  # no negative zero
            self.low = low if self.low is None else min(self.low, low)
            self.high = high if self.high is None else max(self.high, high)


def beyond(
    values: Values, array: Any, low: float, high: float, step: int = STEP
) -> Iterator[tuple[Any, Any]]:
    """Yield the flat indices and the values that are finite and outside [low, high], in order."""
    start = 0
    for piece in [array] if array is not None else values.pieces(step):
        ends = np.finfo(piece.dtype)
        below, above = max(low, float(ends.min)), min(high, float(ends.max))
        out = np.flatnonzero(((piece < below) | (piece > above)) & np.isfinite(piece))
        if out.size:
            yield start + out, piece[out].astype(np.float64)
        start += piece.size


class Units:
    """The largest magnitude among the weights of each output unit, collected piece by piece.

    A unit is zero if even its largest weight is. A Euclidean norm could overflow or underflow.
    """

    def __init__(self, shape: tuple[int, ...], axis: int) -> None:
        """Start with zeros; the units are along the first axis or the last."""
        self.largest = np.zeros(shape[axis])
        self._first = axis == 0
        self._length = prod(shape[1:]) if self._first else shape[-1]

    def add(self, start: int, magnitudes: Any) -> None:
        """Add the magnitudes of the elements from `start` on, counted flat."""
        if not magnitudes.size:
            return
        if self._first:
            self._along_rows(start, magnitudes)
        else:
            self._along_columns(start, magnitudes)

    def _along_rows(self, start: int, magnitudes: Any) -> None:
        first = start // self._length
        last = (start + magnitudes.size - 1) // self._length
        edges = np.arange(first, last + 1) * self._length - start
        edges[0] = 0
        part = self.largest[first : last + 1]
        np.maximum(part, np.maximum.reduceat(magnitudes, edges), out=part)

    def _along_columns(self, start: int, magnitudes: Any) -> None:
        offset = start % self._length
        padded = np.zeros(-(-(offset + magnitudes.size) // self._length) * self._length)
        padded[offset : offset + magnitudes.size] = magnitudes
        np.maximum(self.largest, padded.reshape(-1, self._length).max(axis=0), out=self.largest)

    def zero(self, bound: float) -> Any:
        """Find the units whose weights have at most this magnitude."""
        return self.largest <= bound


_STATE = "{} state of a training run, no weight"
_WITHOUT_NUMBERS = OPAQUE | {"C64", "F8_E8M0"}


class Tensors(NamedTuple):
    """The tensors that hold numbers, in order, and the reasons why others are skipped."""

    name: str
    source: TensorSource
    infos: tuple[TensorInfo, ...]
    skipped: dict[str, str]

    def values(self, info: TensorInfo) -> Values:
        """Return a reader of the numbers of one tensor."""
        return Values(Side.of(self.source, info))


@contextmanager
def open_tensors(weights: Any) -> Iterator[Tensors]:
    """Open a mapping of names to arrays, a list of arrays, a torch module, a path or an open model.

    Arrays stay in the order of the caller; tensors of a file are in the natural order of names.
    Integers in arrays are numbers; in a file they are codes or counters, and are skipped.
    """
    if isinstance(weights, (str, PathLike, TensorSource)):
        name, source = open_input(weights)
        try:
            yield _of_file(name, source)
            source.confirm()
        finally:
            source.close()
    else:
        yield _of_arrays(weights.state_dict() if isinstance(weights, Module) else weights)


def _of_file(name: str, source: TensorSource) -> Tensors:
    infos, skipped = [], {}
    state = find_state(source.tensors, source.metadata)
    for info in sorted(source.tensors.values(), key=lambda each: natural_key(each.name)):
        if info.name in state:
            skipped[info.name] = _STATE.format(state[info.name].kind)
        elif info.dtype in FLOATS and info.dtype not in _WITHOUT_NUMBERS:
            infos.append(info)
        else:
            skipped[info.name] = f"{info.dtype} holds codes or counters, not weights"
    return Tensors(name, source, tuple(infos), skipped)


def _of_arrays(weights: Any) -> Tensors:
    named = _named(weights)
    arrays = {name: _array(name, each) for name, each in named.items() if each is not None}
    source = MemorySource(arrays)
    skipped = {name: "there is no array" for name, each in named.items() if each is None}
    state = find_state(source.tensors, {})
    skipped |= {name: _STATE.format(each.kind) for name, each in state.items()}
    return Tensors(IN_MEMORY, source, tuple(weights_of(source.tensors, state).values()), skipped)


def _named(weights: Any) -> dict[str, Any]:
    if isinstance(weights, Mapping):
        pairs = list(flatten(weights))
        if len(dict(pairs)) < len(pairs):
            raise ModelError(IN_MEMORY, "two arrays have one name", hint="1 and '1' are one name")
        return dict(pairs)
    if hasattr(weights, "shape"):
        return {"0": weights}
    if not isinstance(weights, Sequence) or isinstance(weights, (bytes, bytearray)):
        kind = type(weights).__name__
        hint = "pass a mapping of names to arrays, a list of arrays, or the path of a model"
        raise ModelError(IN_MEMORY, f"an object of type {kind} holds no arrays", hint=hint)
    return {str(index): each for index, each in enumerate(weights)}


def _array(name: str, value: Any) -> Any:
    """Return an array that `MemorySource` can read: real numbers in this machine's byte order."""
    if hasattr(value, "detach"):  # a torch tensor; numpy does not know all of its floats
        floats = getattr(value.dtype, "is_floating_point", True)
        return value if floats else value.detach().double()
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ModelError(name, f"not an array: {error}") from None
    if array.dtype.kind in "iub" or array.dtype == np.longdouble:
        return array.astype(np.float64)
    if array.dtype.kind == "f":
        return array.astype(array.dtype.newbyteorder("="), copy=False)
    if array.dtype.kind in "cOSUmM":
        raise ModelError(name, f"an array of {array.dtype} holds no real numbers")
    return array
