"""Quantised weights: what a scheme should lose, what it lost, and floats that lie on a grid."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import inf, isfinite, log10, sqrt
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from difflens.core.dtypes import FLOATS, OPAQUE
from difflens.core.records import Delta, TensorInfo
from difflens.measure.scan import Scan
from difflens.models.anatomy.roles import is_parameter

from ..diff import Diff
from .networks import infos
from .weights import stored

if TYPE_CHECKING:
    from numpy.typing import NDArray


# Simulated on 1024² weights without calibration (±0.05 dB). GPTQ and AWQ minimise the
# error of outputs, not of weights, so no row of this table is theirs.

# Kurtosis of the shapes: uniform 1.8, Gaussian 3, Laplace 6; a t with 4 degrees has no finite one.
# Borders lie half-way between neighbours on a logarithmic scale.
_BORDERS = (("uniform", 2.3238), ("gaussian", 4.2426), ("laplace", 9.0))
_HEAVIEST = "t4"


class Row(NamedTuple):
    """Decibels to expect of one scheme."""

    gaussian: float
    laplace: float
    uniform: float
    t4: float


TABLE: dict[str, Row] = {
    "BF16": Row(55.6, 55.6, 55.1, 55.6),
    "F16": Row(73.7, 73.7, 73.2, 73.7),
    "Q8_0": Row(45.4, 43.4, 48.5, 42.7),
    "Q5_0": Row(27.4, 25.4, 30.1, 24.8),
    "Q5_1": Row(28.4, 27.1, 30.6, 26.9),
    "Q4_0": Row(21.3, 19.4, 23.7, 18.7),
    "Q4_1": Row(22.1, 20.8, 24.3, 20.6),
    "MXFP4": Row(18.9, 18.0, 18.4, 17.6),
    "int8 per row": Row(42.1, 38.2, 48.1, 34.8),
    "int8 per tensor": Row(38.9, 32.2, 48.1, 20.3),
    "int4 g128": Row(18.6, 15.9, 23.0, 14.3),
    "int4 asymmetric g128": Row(20.0, 17.7, 23.7, 16.8),
    "int4 per row": Row(16.9, 13.2, 22.9, 10.0),
    "int4 per tensor": Row(13.7, 7.6, 22.9, 0.9),
    "NF4": Row(20.7, 19.7, 20.8, 19.1),
}
# What the readers call a scheme, and the row that is its own.
_ROWS = {
    "bitsandbytes int8": "int8 per row",
    "int8 scaled by row": "int8 per row",
    "int8 scaled by tensor": "int8 per tensor",
    "compressed-tensors int8": "int8 per row",
    "compressed-tensors int4 g128": "int4 g128",
    "compressed-tensors int4": "int4 per row",
    "bitsandbytes nf4": "NF4",
    "bitsandbytes nf4, double quantised": "NF4",
}
_CALIBRATED = re.compile(r"GPTQ|AWQ")


def is_calibrated(scheme: str) -> bool:
    """Does the scheme minimise the error of outputs, so that weights tell nothing of its quality?

    >>> is_calibrated("GPTQ int4 g128"), is_calibrated("Q4_0")
    (True, False)
    """
    return bool(_CALIBRATED.match(scheme))


def shape_of(kurtosis: float) -> str:
    """Name the distribution whose kurtosis is nearest, on a logarithmic scale.

    >>> shape_of(3.1), shape_of(6.2), shape_of(40.0)
    ('gaussian', 'laplace', 't4')
    """
    return next((name for name, border in _BORDERS if kurtosis < border), _HEAVIEST)


def expected_db(scheme: str, kurtosis: float | None) -> float | None:
    """Return the decibels to expect; None if the table has no row or the kurtosis is unknown.

    >>> expected_db("Q4_0", 3.0)
    21.3
    """
    row = TABLE.get(_ROWS.get(scheme, scheme))
    if row is None or kurtosis is None:
        return None
    return float(getattr(row, shape_of(kurtosis)))


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
        """10 log10(signal / noise); None if nothing moved or nothing is known."""
        return decibels(self.signal, self.noise)

    @property
    def expected_db(self) -> float | None:
        """What rounding to nearest would give; None if the table does not say."""
        return None if is_calibrated(self.scheme) else expected_db(self.scheme, self.kurtosis)

    @property
    def difference_db(self) -> float | None:
        """Measured less expected: below zero if more was lost than rounding loses."""
        measured, expected = self.measured_db, self.expected_db
        return None if measured is None or expected is None else measured - expected

    @property
    def relative_error(self) -> float | None:
        """‖d‖ / ‖finer side‖."""
        if not self.noise:
            return 0.0
        share = self.noise / self.signal if self.signal else inf
        return sqrt(share) if isfinite(share) else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
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
    """Return 10 log10(signal / noise); None if one of them is not above zero."""
    if signal is None or not (isfinite(signal) and isfinite(noise) and signal > 0 and noise > 0):
        return None
    return 10 * (log10(signal) - log10(noise))


def _coarse(delta: Delta) -> Side | None:
    """Say which side stores the tensor in fewer bits; None if neither does, or it is none."""
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


# A group of g weights is on a grid of b bits where it holds at most 2^b distinct values, fewer
# than it could, and each is within rounding of origin + k x step with a whole k.

_SAMPLED = 8  # rows of each matrix, evenly spread
_LEAST = 128  # columns: shorter rows hold few values anyway
_WIDTHS = (2, 3, 4, 8)
_GROUPS = (32, 64, 128)
_ULPS = {"F16": 2.0**-10, "BF16": 2.0**-7, "F32": 2.0**-23, "F64": 2.0**-52}


class Grid(NamedTuple):
    """A matrix whose floats lie on a grid: bits, elements of a group (0: a row), part that do."""

    name: str
    bits: int
    group: int
    share: float


def gridded(diff: Diff, side: Literal["left", "right"], least: float) -> list[Grid]:
    """Find the float matrices of one side that are quantised, once a diff."""
    found: list[Grid] = diff.remember(
        ("gridded", side, least),
        lambda: [
            grid
            for info in infos(diff, side)
            if _is_candidate(info) and (grid := _grid(diff, side, info, least))
        ],
    )
    return found


def on_grid(group: NDArray[Any], bits: int, tolerance: float) -> bool:
    """Does one group hold at most 2^bits values, evenly spaced within the tolerance?"""
    import numpy as np

    values = np.unique(group)
    if not np.isfinite(values).all() or len(values) > 2**bits or len(values) * 2 > group.size:
        return False
    if len(values) < 3:
        return False  # two values are always evenly spaced
    gaps = np.diff(values.astype(np.float64))
    step = gaps.min()
    places = np.rint((values - values[0]) / step)
    if places[-1] >= 2**bits:
        return False
    # The smallest gap is two roundings off; the whole span is a better ruler.
    step = (float(values[-1]) - float(values[0])) / places[-1]
    miss = np.abs(values - (values[0] + places * step))
    return bool((miss <= tolerance * np.abs(values).max()).all())


def _is_candidate(info: TensorInfo) -> bool:
    plain = info.stored is None and info.dtype in _ULPS
    wide = len(info.shape) == 2 and info.shape[1] >= _LEAST and info.shape[0] > 0
    numbers = info.dtype in FLOATS and info.dtype not in OPAQUE
    return plain and wide and numbers and is_parameter(info.name, info.dtype)


def _grid(
    diff: Diff, side: Literal["left", "right"], info: TensorInfo, least: float
) -> Grid | None:
    count = info.shape[0]
    chosen = sorted({index * count // _SAMPLED for index in range(min(_SAMPLED, count))})
    rows = diff.values(side, info.name).some_rows(chosen)
    tolerance = 2 * _ULPS[info.dtype]
    for group in (0, *reversed(_GROUPS)):
        pieces = _pieces(rows, group)
        few = _distinct(pieces)
        for bits in _WIDTHS:
            # So few weights hold few values whatever they are; and most matrices end here.
            if 2 ** (bits + 1) > pieces.shape[1] or (few <= 2**bits).mean() < least:
                continue
            share = sum(on_grid(piece, bits, tolerance) for piece in pieces) / len(pieces)
            if share >= least:
                return Grid(info.name, bits, group, share)
    return None


def _distinct(pieces: NDArray[Any]) -> NDArray[Any]:
    """Count the distinct values of each group."""
    import numpy as np

    steps: NDArray[Any] = np.diff(np.sort(pieces, axis=1), axis=1)
    counts: NDArray[Any] = 1 + (steps != 0).sum(axis=1)
    return counts


def _pieces(rows: NDArray[Any], group: int) -> NDArray[Any]:
    if not group:
        return rows
    width = rows.shape[1] - rows.shape[1] % group
    return rows[:, :width].reshape(-1, group)
