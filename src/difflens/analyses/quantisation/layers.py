"""What quantisation did to each layer: measured signal-to-noise beside what it should be."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, isfinite, log10, sqrt
from typing import Any, Literal, NamedTuple

from ...diffs import Diff
from ...dtypes import FLOATS, OPAQUE
from ...measure.scan import Scan
from ...records import Delta, TensorInfo
from ..cost.storage import stored
from .expected import expected_db, is_calibrated, shape_of

Side = Literal["left", "right"]


class Layer(NamedTuple):
    """One tensor that is coarser on one side; `signal` is ‖finer side‖², `noise` ‖d‖²."""

    name: str
    scheme: str
    coarse: Side
    signal: float | None
    noise: float
    kurtosis: float | None
    within_rounding: bool

    @property
    def measured_db(self) -> float | None:
        """10 log10(signal / noise); None where nothing moved or nothing is known."""
        return decibels(self.signal, self.noise)

    @property
    def expected_db(self) -> float | None:
        """What rounding to nearest would give; None where the table does not say."""
        return None if is_calibrated(self.scheme) else expected_db(self.scheme, self.kurtosis)

    @property
    def difference_db(self) -> float | None:
        """Measured less expected: below zero where more was lost than rounding loses."""
        measured, expected = self.measured_db, self.expected_db
        return None if measured is None or expected is None else measured - expected

    @property
    def relative_error(self) -> float | None:
        """‖d‖ / ‖finer side‖."""
        if not self.noise:
            return 0.0
        share = self.noise / self.signal if self.signal else inf
        return sqrt(share) if isfinite(share) else None

    def plain(self) -> dict[str, Any]:
        """Give plain values."""
        return {
            "name": self.name,
            "scheme": self.scheme,
            "side": self.coarse,
            "sqnr_db": self.measured_db,
            "expected_sqnr_db": self.expected_db,
            "difference_db": self.difference_db,
            "relative_error": self.relative_error,
            "distribution": None if self.kurtosis is None else shape_of(self.kurtosis),
            "within_storage_rounding": self.within_rounding,
        }


def layers(diff: Diff) -> Iterator[Layer]:
    """Yield every pair of floats that one side stores in fewer bits than the other."""
    for delta in diff.deltas:
        coarse = _coarse(delta)
        if coarse is None:
            continue
        info = delta.pair.left if coarse == "left" else delta.pair.right
        scan = delta.measured(Scan)
        if info is not None and (scan is not None or delta.kind == "identical"):
            yield _layer(delta, info, coarse, scan)


def scheme_of(info: TensorInfo) -> str:
    """Name how it is stored: its quantisation, else its dtype."""
    return stored(info).scheme or info.dtype


def decibels(signal: float | None, noise: float) -> float | None:
    """Give 10 log10(signal / noise); None where one of them is not above zero."""
    if signal is None or not (isfinite(signal) and isfinite(noise) and signal > 0 and noise > 0):
        return None
    return 10 * (log10(signal) - log10(noise))


def _coarse(delta: Delta) -> Side | None:
    """Say which side stores the tensor in fewer bits; None where neither does, or it is none."""
    left, right = delta.pair.left, delta.pair.right
    if left is None or right is None or left.count != right.count or not left.count:
        return None
    if any(each.dtype not in FLOATS or each.dtype in OPAQUE for each in (left, right)):
        return None
    if scheme_of(left) == scheme_of(right):
        return None
    sizes = [_bits(left), _bits(right)]
    return "left" if sizes[0] < sizes[1] else "right"


def _bits(info: TensorInfo) -> tuple[float, bool]:
    """Bits a weight; of the 16-bit floats F16 has the longer mantissa."""
    each = stored(info)
    return 8 * each.bytes / info.count, each.scheme is None and info.dtype == "F16"


def _layer(delta: Delta, info: TensorInfo, coarse: Side, scan: Scan | None) -> Layer:
    scheme = scheme_of(info)
    if scan is None:
        return Layer(delta.name, scheme, coarse, None, 0.0, None, within_rounding=True)
    fine = scan.side("right" if coarse == "left" else "left")
    signal = scan.right_square_sum if coarse == "left" else scan.left_square_sum
    within = scan.over_rounding == 0
    return Layer(
        delta.name, scheme, coarse, signal, scan.square_sum, fine.kurtosis, within_rounding=within
    )
