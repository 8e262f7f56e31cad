"""How finely each float format tells numbers apart: its units in the last place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Format(NamedTuple):
    """Least exponent of a normal number, and bits of the mantissa."""

    least: int
    mantissa: int


FORMATS = {
    "F64": Format(-1022, 52),
    "F32": Format(-126, 23),
    "F16": Format(-14, 10),
    "BF16": Format(-126, 7),
    "F8_E4M3": Format(-6, 3),
    "F8_E5M2": Format(-14, 2),
    "F8_E4M3FNUZ": Format(-7, 3),
    "F8_E5M2FNUZ": Format(-15, 2),
    "F4": Format(0, 1),
}
_F32_BIAS, _F32_SPECIAL = 127, 255


def coarser(left: str, right: str) -> str:
    """Give the format of the two that has fewer digits, then the smaller range.

    >>> coarser("F32", "BF16")
    'BF16'
    """
    return min(left, right, key=lambda dtype: (FORMATS[dtype].mantissa, -FORMATS[dtype].least))


def unit_square_sum(values: NDArray[Any], dtype: str) -> float:
    """Sum ulp(x)² over the finite values, as the format has them.

    ulp(x) = 2^(max(exponent of x, least) - mantissa bits)
    """
    import numpy as np

    least, mantissa = FORMATS[dtype]
    if values.dtype == np.float32:
        codes = np.ascontiguousarray(values).view(np.uint32)
        codes = (codes >> np.uint32(23)) & np.uint32(_F32_SPECIAL)
        counts = np.bincount(codes.ravel().view(np.int32), minlength=256)[:_F32_SPECIAL]
        exponents = np.arange(_F32_SPECIAL) - _F32_BIAS
        units = np.ldexp(1.0, np.maximum(exponents, least) - mantissa)
        return float(counts @ (units * units))
    finite = values[np.isfinite(values)]
    units = np.ldexp(1.0, np.maximum(np.frexp(finite)[1] - 1, least) - mantissa)
    with np.errstate(over="ignore"):  # the caller sees that it is not finite
        return float(np.sum(units * units))
