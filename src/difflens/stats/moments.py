"""Mean, variance, skewness and kurtosis in one pass: the moments of pieces are merged.

Values beyond 1e70 or below 1e-70 are scaled by a power of two, so that no fourth power overflows.
Extended precision would do as well, but not every processor has it.
"""

from __future__ import annotations

from math import frexp, isfinite, ldexp, sqrt
from typing import Any, NamedTuple

_LARGE, _SMALL = 1e70, 1e-70  # their fourth powers, and sums of those, are 64-bit numbers


class Moments(NamedTuple):
    """Count, mean, and sums of (x - mean)², ³, ⁴ of finite values times 2**-exponent."""

    n: int = 0
    mean: float = 0.0
    m2: float = 0.0
    m3: float = 0.0
    m4: float = 0.0
    exponent: int = 0

    @classmethod
    def of(cls, values: Any) -> Moments:
        """Compute the moments of an array of finite values."""
        import numpy as np

        if not values.size:
            return cls()
        exponent = exponent_of(max(abs(float(values.min())), abs(float(values.max()))))
        wide = values.astype(np.float64)
        if exponent:
            wide = np.ldexp(wide, -exponent)
        mean = float(wide.mean())
        wide -= mean
        squares = wide * wide
        return cls(
            values.size,
            mean,
            float(squares.sum()),
            float((squares * wide).sum()),
            float((squares * squares).sum()),
            exponent,
        )

    def plus(self, other: Moments) -> Moments:
        """Merge with the moments of other values (Chan, Golub & LeVeque 1979; Pébay 2008)."""
        if not self.n or not other.n:
            return self if self.n else other
        exponent = max(self.exponent, other.exponent)
        left, right = self._scaled(exponent), other._scaled(exponent)
        n = left.n + right.n
        gap, a, b = right.mean - left.mean, left.n / n, right.n / n
        m2 = left.m2 + right.m2 + gap * gap * left.n * b
        m3 = left.m3 + right.m3 + gap * gap * gap * left.n * b * (a - b)
        m3 += 3 * gap * (a * right.m2 - b * left.m2)
        m4 = left.m4 + right.m4 + (gap * gap) * (gap * gap) * left.n * b * (a * a - a * b + b * b)
        m4 += 6 * gap * gap * (a * a * right.m2 + b * b * left.m2)
        m4 += 4 * gap * (a * right.m3 - b * left.m3)
        return Moments(n, left.mean + gap * b, m2, m3, m4, exponent)

    def _scaled(self, exponent: int) -> Moments:
        down = self.exponent - exponent
        if not down:
            return self
        mean, m2 = ldexp(self.mean, down), ldexp(self.m2, 2 * down)
        return Moments(
            self.n, mean, m2, ldexp(self.m3, 3 * down), ldexp(self.m4, 4 * down), exponent
        )

    @property
    def std(self) -> float | None:
        """The standard deviation of the population."""
        return self._real(sqrt(self.m2 / self.n)) if self.n else None

    @property
    def rms(self) -> float | None:
        """The root mean square."""
        return self._real(sqrt(self.m2 / self.n + self.mean**2)) if self.n else None

    @property
    def l2(self) -> float | None:
        """The Euclidean norm; None if it is larger than any number of 64 bits."""
        return self._real(sqrt(self.m2 + self.n * self.mean**2))

    @property
    def true_mean(self) -> float | None:
        """The mean of the unscaled values."""
        return self._real(self.mean) if self.n else None

    def _real(self, scaled: float) -> float | None:
        try:
            return ldexp(scaled, self.exponent)
        except OverflowError:
            return None

    @property
    def skewness(self) -> float | None:
        """g1 = (m3/n) / (m2/n)^1.5; None if all values are equal."""
        if not self.n or self.m2 <= 0:
            return None
        spread = sqrt(self.m2 / self.n)
        return _finite(self.m3 / self.n / spread / spread / spread)

    @property
    def kurtosis(self) -> float | None:
        """g2 = (m4/n) / (m2/n)² - 3; None if all values are equal."""
        if not self.n or self.m2 <= 0:
            return None
        variance = self.m2 / self.n
        return _finite(self.m4 / self.n / variance / variance - 3)


def exponent_of(largest: float) -> int:
    """Return the power of two to divide values by; 0 if their fourth powers are in range."""
    return 0 if not largest or _SMALL < largest < _LARGE else frexp(largest)[1]


def corrected_skewness(skewness: float | None, n: int) -> float | None:
    """G1 = g1 √(n(n - 1)) / (n - 2) (Joanes & Gill 1998)."""
    return None if skewness is None or n < 3 else skewness * sqrt(n * (n - 1)) / (n - 2)


def corrected_kurtosis(kurtosis: float | None, n: int) -> float | None:
    """G2 = (n - 1) / ((n - 2)(n - 3)) · ((n + 1) g2 + 6) (Joanes & Gill 1998)."""
    if kurtosis is None or n < 4:
        return None
    return (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * kurtosis + 6)


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None


def l2_norm(values: Any) -> float:
    """Compute √Σx², scaled by the largest magnitude so that no square overflows.

    The norm of values that hold NaN or infinity is NaN or infinity.
    """
    import numpy as np

    flat = np.asarray(values).reshape(-1)
    if flat.dtype.kind != "f" or flat.dtype.itemsize < 4:
        flat = flat.astype(np.float64)
    if not flat.size:
        return 0.0
    largest = float(np.abs(flat).max())
    if not isfinite(largest) or not largest:
        return largest
    exponent = frexp(largest)[1]
    total = 0.0
    for start in range(0, flat.size, _STEP):
        part = np.ldexp(flat[start : start + _STEP].astype(np.float64), -exponent)
        total += float((part * part).sum())
    try:
        return ldexp(sqrt(total), exponent)
    except OverflowError:
        return float("inf")


_STEP = 1 << 18
