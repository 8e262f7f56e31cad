"""Reads one tensor piece by piece, and keeps what all the questions about it need.

One pass; a second one, for the places of outliers, only of tensors too large to hold in which
some value lies beyond the cut-off.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..measure.chunks import STEP
from ..measure.values import Values
from .codes import EXACT, Tally
from .kinds import Kind
from .moments import Moments
from .spread import Counted, Held, Spread
from .units import Units


class Counts(NamedTuple):
    """How many values there are, and how many of what."""

    total: int = 0
    nan: int = 0
    positive_infinite: int = 0
    negative_infinite: int = 0
    zeros: int = 0

    def plus(self, other: Counts) -> Counts:
        """Add those of others."""
        return Counts(*(a + b for a, b in zip(self, other, strict=True)))

    @property
    def finite(self) -> int:
        """How many are finite."""
        return self.total - self.nan - self.positive_infinite - self.negative_infinite


class Seen(NamedTuple):
    """A tensor that was read: counts, moments, ends, spread, and its units where it has some.

    `held` is the whole tensor, flat, with what is not finite in it; None where it is too large.
    """

    counts: Counts
    moments: Moments
    low: float | None
    high: float | None
    spread: Spread | None
    units: Units | None
    held: Any
    tally: tuple[Any, Any] | None  # codes that occur and how often, where they were asked for


def seen(values: Values, kind: Kind, most: int, *, tally: bool, step: int = STEP) -> Seen:
    """Read a tensor; up to `most` values are held. `tally` asks for codes in any case."""
    info = values.info
    units = None
    if kind.unit_axis is not None and info.count:
        units = Units(info.shape, kind.unit_axis)
    held = np.empty(info.count, _type(values)) if info.count <= most else None
    codes = Tally() if tally or held is None else None
    counts, moments, ends = Counts(), Moments(), _Ends()
    start = 0
    for piece in values.pieces(step):
        finite, some = finite_of(piece)
        counts = counts.plus(some)
        moments = moments.plus(Moments.of(finite))
        ends.add(finite)
        if held is not None:
            held[start : start + piece.size] = piece
        if codes is not None:
            codes.add(finite)
        if units is not None:
            units.add(start, np.nan_to_num(np.abs(piece), nan=np.inf, posinf=np.inf))
        start += piece.size
    found = codes.occupied() if codes is not None else None
    spread = _spread(held, counts, found, exact=info.dtype in EXACT)
    return Seen(counts, moments, ends.low, ends.high, spread, units, held, found)


def _type(values: Values) -> Any:
    return values.span(0, min(1, values.info.count)).dtype if values.info.count else np.float32


def finite_of(piece: Any) -> tuple[Any, Counts]:
    """Give the finite values of a piece, and count the others."""
    zeros = piece.size - int(np.count_nonzero(piece))
    fine = np.isfinite(piece)
    if fine.all():
        return piece, Counts(piece.size, 0, 0, 0, zeros)
    nan, above = int(np.isnan(piece).sum()), int(np.isposinf(piece).sum())
    finite = piece[fine]
    return finite, Counts(piece.size, nan, above, piece.size - finite.size - nan - above, zeros)


def _spread(held: Any, counts: Counts, found: Any, *, exact: bool) -> Spread | None:
    if not counts.finite:
        return None
    if held is not None:
        return Held(held if counts.finite == counts.total else held[np.isfinite(held)], found)
    return Counted(*found, exact=exact)


class _Ends:
    """The least and the largest value."""

    def __init__(self) -> None:
        self.low: float | None = None
        self.high: float | None = None

    def add(self, finite: Any) -> None:
        if finite.size:
            low, high = float(finite.min()) + 0.0, float(finite.max()) + 0.0  # no negative zero
            self.low = low if self.low is None else min(self.low, low)
            self.high = high if self.high is None else max(self.high, high)


def beyond(
    values: Values, held: Any, low: float, high: float, step: int = STEP
) -> Iterator[tuple[Any, Any]]:
    """Yield the places, counted flat, and the finite values outside [low, high], in order."""
    start = 0
    for piece in [held] if held is not None else values.pieces(step):
        ends = np.finfo(piece.dtype)
        below, above = max(low, float(ends.min)), min(high, float(ends.max))
        out = np.flatnonzero(((piece < below) | (piece > above)) & np.isfinite(piece))
        if out.size:
            yield start + out, piece[out].astype(np.float64)
        start += piece.size
