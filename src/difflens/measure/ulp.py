"""How many representable numbers lie between both sides: distance in units in the last place."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Self

from ..records import MOVED, Delta, Record
from .formats import FORMATS, coarser

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .values import Values

_EXACT = 1 << 16  # distances below this are counted one by one
_BUCKETS = _EXACT + (1 << 15)
_WIDTHS = {"F64": 64, "F32": 32, "F16": 16, "BF16": 16}


class Ulp(Record, frozen=True):
    """|ord(left) - ord(right)|, ord numbering the format's values in order; ±0 are one.

    In the format of both, or after rounding to the coarser one; pairs with a NaN are left out.
    Medians and other quantiles above 65,535 units are told to 0.4 %. Memory: 10 MB.
    """

    dtype: str
    max: int
    p50: int
    p99: int
    pairs: int

    @classmethod
    def wants(cls, delta: Delta) -> bool:
        """Take float tensors of one shape that differ."""
        left, right = delta.pair.left, delta.pair.right
        if left is None or right is None or left.shape != right.shape:
            return False
        return delta.kind in MOVED and left.dtype in FORMATS and right.dtype in FORMATS

    @classmethod
    def of(cls, left: Values | None, right: Values | None) -> Self | None:
        """Count the distances; None where no pair can be ordered."""
        import numpy as np

        if left is None or right is None:
            return None
        dtype = coarser(left.info.dtype, right.info.dtype)
        counts, largest = np.zeros(_BUCKETS, np.int64), 0
        for before, after in zip(left.pieces(), right.pieces(), strict=True):
            numbers = ~(np.isnan(before) | np.isnan(after))
            apart = distances(before[numbers], after[numbers], dtype)
            largest = max(largest, int(apart.max(initial=0)))
            counts += np.bincount(_buckets(apart), minlength=_BUCKETS)
        pairs = int(counts.sum())
        if not pairs:
            return None
        median, high = (min(largest, _quantile(counts, pairs, share)) for share in (0.5, 0.99))
        return cls(dtype, largest, median, high, pairs)

    def figures(self) -> dict[str, Any]:
        """Give the distances."""
        return {"ulp_max": self.max, "ulp_p50": self.p50, "ulp_p99": self.p99}


def distances(left: NDArray[Any], right: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Count the steps from one number to the other in a format, element by element."""
    import numpy as np

    before, after = ordered(left, dtype), ordered(right, dtype)
    if dtype != "F64":
        return np.asarray(np.abs(after - before))
    rough = np.abs(after.astype(np.float64) - before.astype(np.float64))
    with np.errstate(over="ignore"):  # only where `rough` is taken
        exact = np.abs(after - before)
    return np.where(rough < 2.0**52, exact, rough)


def ordered(values: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Round numbers to a format, and number its values in order; zero is 0."""
    import numpy as np

    if dtype not in _WIDTHS:
        return _nearest(values, dtype)
    with np.errstate(over="ignore"):
        codes = _brain(values.astype(np.float32)) if dtype == "BF16" else _codes(values, dtype)
    if dtype == "F64":
        return np.where(codes < 0, np.iinfo(np.int64).min - codes, codes)
    sign = 1 << (_WIDTHS[dtype] - 1)
    return np.where(codes >= sign, sign - codes, codes)


def _codes(values: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Give the bits of numbers as integers that do not overflow when they are subtracted."""
    import numpy as np

    if dtype == "F64":
        return values.astype(np.float64).view(np.int64)
    if dtype == "F32":
        return values.astype(np.float32).view(np.uint32).astype(np.int64)
    return values.astype(np.float16).view(np.uint16).astype(np.int32)


def _brain(values: NDArray[Any]) -> NDArray[Any]:
    """Round to BF16, to even, and give its codes."""
    import numpy as np

    codes = values.view(np.uint32)
    upper = codes >> np.uint32(16)
    if (codes & np.uint32(0xFFFF)).any():  # finite values and infinities do not wrap around
        upper = (codes + np.uint32(0x7FFF) + (upper & np.uint32(1))) >> np.uint32(16)
    return upper.astype(np.int32)


def _nearest(values: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Round to a format of few values, the larger magnitude where two are as near."""
    import numpy as np

    known = np.asarray(_known(dtype))
    sizes = np.abs(values.astype(np.float64))
    places = np.searchsorted((known[1:] + known[:-1]) / 2, sizes, "right")
    return np.where(values < 0, -places, places)


@cache
def _known(dtype: str) -> tuple[float, ...]:
    """List what a narrow format can hold from zero up."""
    import numpy as np

    from ..kernel.reference import decode

    told = decode(bytes(range(256)), dtype)
    return tuple(np.unique(told[np.isfinite(told) & (told >= 0)]).tolist())


def _buckets(apart: NDArray[Any]) -> NDArray[Any]:
    """Number small distances by themselves, larger ones by the upper half of their float32."""
    import numpy as np

    if not apart.size or apart.max() < _EXACT:
        return apart.astype(np.int64)
    rough = np.maximum(apart, _EXACT).astype(np.float32).view(np.uint32) >> np.uint32(16)
    return np.where(apart < _EXACT, apart, _EXACT + rough.astype(np.int64)).astype(np.int64)


def _quantile(counts: NDArray[Any], pairs: int, share: float) -> int:
    """Give the least distance that so large a share of the pairs does not exceed."""
    import numpy as np

    place = int(np.searchsorted(np.cumsum(counts), share * pairs, "left"))
    if place < _EXACT:
        return place
    middle = ((place - _EXACT) << 16) + (1 << 15)
    return int(np.uint32(middle).view(np.float32))
