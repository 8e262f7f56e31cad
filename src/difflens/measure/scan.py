"""The standard measure: what one pass over a pair of tensors tells."""

from __future__ import annotations

from math import isfinite, ldexp, log10, sqrt
from typing import Any, Self

from msgspec.structs import replace

from difflens.core.record import Record
from difflens.core.records import Stats

from .kernel import merge
from .kernel.layout import STATE

_EXTRA_FIELDS = 6
SMALLEST = 2.0**-480  # squares of what is larger, and of all that matters beside it, keep digits


class Scan(Record, frozen=True):
    """Counts and sums over the elements of a pair; states add up, so chunks do.

    Sides are over their own finite values, pairs over elements finite on both
    sides; `m2` to `m4` are sums of powers about the mean. `kernel.layout` says
    what each field counts.
    """

    count: int = 0
    left_nan: int = 0
    left_positive_infinite: int = 0
    left_negative_infinite: int = 0
    left_zeros: int = 0
    left_odd: int = 0
    right_nan: int = 0
    right_positive_infinite: int = 0
    right_negative_infinite: int = 0
    right_zeros: int = 0
    right_odd: int = 0
    pairs: int = 0
    bit_equal: int = 0
    value_equal: int = 0
    over_epsilon: int = 0
    over_rounding: int = 0
    sign_flips: int = 0
    max_abs_at: int = 0
    left_min: float = 0.0
    left_max: float = 0.0
    left_mean: float = 0.0
    left_m2: float = 0.0
    left_m3: float = 0.0
    left_m4: float = 0.0
    left_abs_sum: float = 0.0
    right_min: float = 0.0
    right_max: float = 0.0
    right_mean: float = 0.0
    right_m2: float = 0.0
    right_m3: float = 0.0
    right_m4: float = 0.0
    right_abs_sum: float = 0.0
    pair_left_mean: float = 0.0
    pair_right_mean: float = 0.0
    pair_left_m2: float = 0.0
    pair_right_m2: float = 0.0
    comoment: float = 0.0
    max_abs: float = 0.0
    abs_sum: float = 0.0
    square_sum: float = 0.0
    shape: tuple[int, ...] = ()
    parts: int = 1  # numbers an element is made of: two for complex ones
    transform: str | None = None
    # Where squares vanish (`measure.tiny`): the scan of all values times 2 ** exponent, and the
    # norm of right - left.
    scaled: Scan | None = None
    exponent: int = 0
    distance: float | None = None

    @classmethod
    def of_state(
        cls,
        state: bytes | bytearray,
        shape: tuple[int, ...] = (),
        parts: int = 1,
        transform: str | None = None,
    ) -> Self:
        """Read the kernel's state."""
        return cls(*(*STATE.unpack(state), shape, parts, transform))

    def _state(self) -> bytearray:
        values = [getattr(self, name) for name in self.__struct_fields__[:-_EXTRA_FIELDS]]
        return bytearray(STATE.pack(*values))

    def __add__(self, later: Self) -> Self:
        """Merge with the scan of the elements that follow."""
        state = self._state()
        merge(state, later._state())
        described = later if self.count == 0 else self
        return type(self).of_state(state, described.shape, described.parts, described.transform)

    @property
    def left_nonfinite(self) -> int:
        """NaN and infinities on the left."""
        return self.left_nan + self.left_positive_infinite + self.left_negative_infinite

    @property
    def right_nonfinite(self) -> int:
        """NaN and infinities on the right."""
        return self.right_nan + self.right_positive_infinite + self.right_negative_infinite

    @property
    def changed(self) -> int:
        """Elements whose bits differ; across dtypes, whose values do."""
        return self.count - self.bit_equal

    @property
    def left_square_sum(self) -> float:
        """Sum of squares on the left, over the pairs."""
        return self.pair_left_m2 + self.pairs * self.pair_left_mean * self.pair_left_mean

    @property
    def right_square_sum(self) -> float:
        """Sum of squares on the right, over the pairs."""
        return self.pair_right_m2 + self.pairs * self.pair_right_mean * self.pair_right_mean

    @property
    def dot(self) -> float:
        """Sum of left times right, over the pairs."""
        return self.comoment + self.pairs * self.pair_left_mean * self.pair_right_mean

    @property
    def may_be_tiny(self) -> bool:
        """Is a side, or the largest move, so small that squares may have lost digits?"""
        if 0 < self.max_abs < SMALLEST:
            return True
        left, right = max(-self.left_min, self.left_max), max(-self.right_min, self.right_max)
        return 0 < left < SMALLEST or 0 < right < SMALLEST

    @property
    def relative_l2(self) -> float | None:
        """‖right - left‖ / ‖left‖; None if left is all zeros."""
        distance, left, _ = self.norms
        return _ratio(distance, left)

    @property
    def norms(self) -> tuple[float, float, float]:
        """Return ‖right - left‖, ‖left‖ and ‖right‖, all of them scaled where squares vanish."""
        if self.scaled is None or self.distance is None:
            sums = self.square_sum, self.left_square_sum, self.right_square_sum
            return sqrt(sums[0]), sqrt(sums[1]), sqrt(sums[2])
        _, left, right = self.scaled.norms
        return ldexp(self.distance, self.exponent), left, right

    @property
    def pearson(self) -> float | None:
        """The cosine after taking the means away: honest where all values are of one sign."""
        if self.scaled is not None:
            return self.scaled.pearson
        return _correlation(self.comoment, sqrt(self.pair_left_m2) * sqrt(self.pair_right_m2))

    @property
    def max_abs_index(self) -> tuple[int, ...] | None:
        """Where the largest move is, in the tensor's own coordinates."""
        if self.max_abs == 0:
            return None
        place, index = self.max_abs_at // self.parts, []
        for length in reversed(self.shape):
            place, along = divmod(place, length)
            index.append(along)
        return tuple(reversed(index))

    def figures(self) -> dict[str, Any]:
        """Return the figures of a report row (docs/records.md); what cannot be known is None."""
        distance, left_norm, right_norm = self.norms
        sums, pairs, count = self.scaled or self, self.pairs, self.count
        changed = count - self.bit_equal
        if self.scaled is None:
            decibels = _decibels(self.left_square_sum, self.square_sum)
        else:
            decibels = _decibels(left_norm, distance)
            decibels = None if decibels is None else 2 * decibels
        return {
            "relative_l2": _ratio(distance, left_norm),
            "symmetric_l2": _ratio(distance, left_norm + right_norm),
            "cosine": _correlation(sums.dot, left_norm * right_norm),
            "pearson": self.pearson,
            "max_abs": _finite(self.max_abs) if pairs else None,
            "max_abs_index": self.max_abs_index if self.max_abs else None,
            "mean_abs": _ratio(self.abs_sum, pairs),
            "l2": self._l2() if pairs else None,
            "changed_count": changed,
            "changed_fraction": changed / count if count else None,
            "over_epsilon_count": self.over_epsilon,
            "bit_equal_count": self.bit_equal,
            "sign_flips": self.sign_flips,
            "sqnr_db": decibels,
            "within_storage_rounding": self.over_rounding == 0,
            "left_nonfinite": self.left_nonfinite,
            "right_nonfinite": self.right_nonfinite,
            "transform": self.transform,
        }

    def _l2(self) -> float | None:
        return self.distance if self.distance is not None else _finite(sqrt(self.square_sum))

    def side(self, side: str) -> Stats:
        """Describe one side: moments over its finite values, and counts of the rest."""
        if side == "left":
            stats = _stats(
                self.count - self.left_nonfinite,
                (self.left_mean, self.left_m2, self.left_m3, self.left_m4),
                (self.left_min, self.left_max, self.left_abs_sum),
                (self.left_zeros, self.left_nan),
                (self.left_positive_infinite, self.left_negative_infinite),
            )
        else:
            stats = _stats(
                self.count - self.right_nonfinite,
                (self.right_mean, self.right_m2, self.right_m3, self.right_m4),
                (self.right_min, self.right_max, self.right_abs_sum),
                (self.right_zeros, self.right_nan),
                (self.right_positive_infinite, self.right_negative_infinite),
            )
        if self.scaled is None:
            return stats
        large = self.scaled.side(side)
        std = None if large.std is None else ldexp(large.std, -self.exponent)
        return replace(stats, std=std, skewness=large.skewness, kurtosis=large.kurtosis)


def _stats(
    finite: int,
    moments: tuple[float, float, float, float],
    extremes: tuple[float, float, float],
    zeros_and_nan: tuple[int, int],
    infinities: tuple[int, int],
) -> Stats:
    mean, m2, m3, m4 = moments
    low, high, abs_sum = extremes
    if finite <= 0:
        return Stats(None, None, None, None, None, None, None, *zeros_and_nan, *infinities)
    variance = _ratio(m2, finite)
    std = None if variance is None else sqrt(variance)
    spread = std or 0.0
    square = spread * spread  # `**` would raise
    return Stats(
        _finite(mean),
        std,
        low,
        high,
        _ratio(abs_sum, finite),
        _ratio(m3 / finite, square * spread),
        _ratio(m4 / finite, square * square),
        *zeros_and_nan,
        *infinities,
    )


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None


def _ratio(part: float, whole: float) -> float | None:
    if not whole:
        return None
    value = part / whole
    return value if isfinite(value) else None


def _correlation(product: float, size: float) -> float | None:
    value = _ratio(product, size)
    return None if value is None else max(-1.0, min(1.0, value))


def _decibels(signal: float, noise: float) -> float | None:
    if not (isfinite(signal) and isfinite(noise) and signal > 0 and noise > 0):
        return None
    return 10 * (log10(signal) - log10(noise))
