"""Sketches finished, and the distance of two tensors estimated from them."""

from __future__ import annotations

from functools import cache
from math import hypot, inf, isfinite, ldexp, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

from difflens.core.dtypes import OPAQUE
from difflens.core.record import Record
from difflens.core.records import Stats, TensorInfo

from . import BUCKETS, add

if TYPE_CHECKING:
    from numpy.typing import NDArray

# One standard deviation of an estimated distance, relative to it.
ERROR = 1 / sqrt(2 * BUCKETS)
_BITS = 31  # of the largest number of a sketch
# A distance is told from zero where it is this many times what rounding the sketches makes.
_CLEAR = 5.0
_FORMS = {"C64": "F32"}
_TABLES = {"F4": "NIBBLES"} | dict.fromkeys(
    ("BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F8_E8M0"), "BYTES"
)


class Sketch(NamedTuple):
    """The sums of a tensor as integers, little-endian I32, times two to the exponent."""

    exponent: int
    numbers: bytes | memoryview

    @property
    def step(self) -> float:
        """What one of the integers stands for."""
        return ldexp(1.0, self.exponent)


def sketched(info: TensorInfo) -> int:
    """Return how many numbers the sketch of a tensor has: one per element where it has few."""
    if info.dtype in OPAQUE:
        return 0
    return min(parts(info) * info.count, BUCKETS)


def parts(info: TensorInfo) -> int:
    """Return how many numbers an element is made of: two for complex ones."""
    return 2 if info.dtype == "C64" else 1


def add_elements(data: memoryview, dtype: str, first: int, sums: bytearray) -> None:
    """Add encoded elements to the sums; `first` counts numbers, and begins a row."""
    form = _TABLES.get(dtype)
    if form:
        add(data, form, first // BUCKETS, _table(dtype), sums)
    else:
        add(data, _FORMS.get(dtype, dtype), first // BUCKETS, b"", sums)


@cache
def _table(dtype: str) -> bytes:
    """Return what every code of a narrow type stands for."""
    import numpy as np

    from ..kernel.reference import decode

    codes = np.arange(256, dtype=np.uint8)
    values = decode(codes.tobytes(), dtype)
    return (values[::2][:16] if dtype == "F4" else values).astype("<f8").tobytes()


def finish(sums: NDArray[Any], count: int) -> Sketch | None:
    """Round the sums to integers of 32 bits; None if a sum has overflowed.

    Integers keep 7 bits more than F32 would in the same place: the nearest models are told apart.
    """
    import numpy as np

    largest = float(np.abs(sums).max(initial=0.0))
    if not isfinite(largest):
        return None
    exponent = int(np.frexp(largest)[1]) - _BITS if largest else 0
    numbers = np.rint(np.ldexp(sums[:count], -exponent))
    most = 2**_BITS - 1  # the largest one may have been rounded up to 2 ** _BITS
    return Sketch(exponent, np.clip(numbers, -most, most).astype("<i4").tobytes())


class Distance(NamedTuple):
    """How far two sketches are apart, and how far rounding alone would put them."""

    distance: float
    rounding: float


def distance(left: Sketch, right: Sketch) -> Distance:
    """Estimate the norm of right - left."""
    import numpy as np

    top = max(left.exponent, right.exponent)
    before, after = (
        np.ldexp(np.frombuffer(each.numbers, "<i4").astype(np.float64), each.exponent - top)
        for each in (left, right)
    )
    moved = after - before
    rounding = sqrt(len(moved) / 12) * hypot(left.step, right.step)
    return Distance(_scaled(sqrt(float(np.dot(moved, moved))), top), rounding)


def _scaled(value: float, exponent: int) -> float:
    try:
        return ldexp(value, exponent)
    except OverflowError:
        return inf


class Estimate(Record, frozen=True):
    """What two fingerprints say of a pair: the sides exactly, their distance as an estimate.

    `l2` is None where values are not finite, which have no distance, or where it is below
    `smallest`, the least distance that these sketches can tell.
    """

    count: int
    left: Stats
    right: Stats
    is_same: bool = False  # every bit: proved by the hashes
    l2: float | None = None
    smallest: float | None = None
    estimated_error: float | None = None  # one standard deviation, relative; None is exact

    @property
    def left_square_sum(self) -> float:
        """Sum of squares on the left."""
        size = norm(self.left, self.count)
        return size * size

    @property
    def square_sum(self) -> float:
        """Sum of squares of right - left, as far as it can be told."""
        moved = self.l2 or 0.0
        return moved * moved  # `**` would raise where this is infinite

    @property
    def relative_l2(self) -> float | None:
        """‖right - left‖ / ‖left‖."""
        return _ratio(self.l2, norm(self.left, self.count))

    @property
    def relative_smallest(self) -> float | None:
        """The least distance that can be told, relative to ‖left‖; None where one was told."""
        return _ratio(self.smallest, norm(self.left, self.count))

    @property
    def is_unknown(self) -> bool:
        """Is nothing known of the distance, not even that it is small?"""
        return self.l2 is None and self.smallest is None

    def side(self, side: str) -> Stats:
        """Describe one side."""
        return self.left if side == "left" else self.right

    def figures(self) -> dict[str, Any]:
        """Return the figures that fingerprints tell; the others need the bytes of both."""
        left, right = norm(self.left, self.count), norm(self.right, self.count)
        return {
            "relative_l2": self.relative_l2,
            "symmetric_l2": _ratio(self.l2, left + right),
            "cosine": self._cosine(left, right),
            "l2": self.l2,
            "changed_count": 0 if self.is_same else None,
            "left_nonfinite": self.left.nonfinite,
            "right_nonfinite": self.right.nonfinite,
            "estimated_error": self.estimated_error,
        }

    def _cosine(self, left: float, right: float) -> float | None:
        size = 2 * left * right
        if self.l2 is None or not size or not isfinite(size):
            return None
        # ‖right - left‖² = ‖left‖² + ‖right‖² - 2 left · right, where only the first is estimated
        cosine = ((left * left + right * right) - self.l2 * self.l2) / size
        return max(-1.0, min(1.0, cosine))


def _ratio(part: float | None, whole: float) -> float | None:
    if part is None or not whole or not isfinite(part / whole):
        return None
    return part / whole


def norm(stats: Stats, count: int) -> float:
    """Return the norm of the finite values."""
    if stats.mean is None or stats.std is None:
        return 0.0
    return sqrt(count - stats.nonfinite) * hypot(stats.mean, stats.std)


def estimate(
    count: int, sides: tuple[Stats, Stats], left: Sketch | None, right: Sketch | None
) -> Estimate:
    """Estimate how far two tensors of one shape are apart whose bytes differ."""
    none = Estimate(count, *sides, estimated_error=ERROR)
    if left is None or right is None or any(each.nonfinite for each in sides):
        return none
    known = distance(left, right)
    error = ERROR if count > BUCKETS else 0.0
    if not isfinite(known.distance):
        return none
    if known.distance <= _CLEAR * known.rounding:
        smallest = _CLEAR * known.rounding
        return Estimate(count, *sides, smallest=smallest, estimated_error=error)
    error = hypot(error, known.rounding / known.distance)
    return Estimate(count, *sides, l2=known.distance, estimated_error=error)
