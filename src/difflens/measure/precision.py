"""How coarse the numbers of a tensor really are: BF16 values that are stored in F32 stay BF16."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import TYPE_CHECKING, Any

from difflens.core.dtypes import ROUNDING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .matrices import Matrix
    from .values import Values

# The coarsest first. Bits that a coarser value leaves zero in the mantissa of a float32, and the
# largest value of the format.
_COARSER = {
    "F8_E5M2": (21, 57344.0),
    "F8_E4M3": (20, 448.0),
    "BF16": (16, 3.4e38),
    "F16": (13, 65504.0),
}
_SPANS, _LENGTH = 8, 512  # where a sample is read, and how much there
_LEAST = 12  # distinct magnitudes without which a tensor tells nothing: 0 and 1 are in every format


def sample(values: Values, spans: int = _SPANS, length: int = _LENGTH) -> NDArray[Any]:
    """Read some elements, in runs that are evenly spread over the tensor."""
    import numpy as np

    return np.concatenate(
        [values.span(start, stop) for start, stop in runs(values.info.count, spans, length)]
    )


def runs(count: int, spans: int = _SPANS, length: int = _LENGTH) -> Iterator[tuple[int, int]]:
    """Yield where the runs of a sample begin and end."""
    if count <= spans * length:
        yield 0, count
        return
    for index in range(spans):
        start = index * (count - length) // (spans - 1)
        yield start, start + length


def precision_of(values: Values, likely: str | None = None) -> str:
    """Return the coarsest float format that holds the numbers of a sample, else the dtype.

    A tensor with few distinct magnitudes lies in every format: it keeps its dtype, or has the one
    that is `likely` in its model.
    """
    return format_of(sample(values), values.info.dtype, likely)


def format_of(numbers: NDArray[Any], dtype: str, likely: str | None = None) -> str:
    """Return the coarsest format that holds all these numbers of a dtype, else the dtype."""
    import numpy as np

    if dtype not in ROUNDING:
        return dtype
    own = ROUNDING[dtype][1]
    if _has_low_bits(numbers, own):
        return dtype
    size = np.abs(numbers[np.isfinite(numbers) & (numbers != 0)])
    few = all(_distinct(size[:number]) < _LEAST for number in (64, 4096))
    for name in [likely] * (likely in _COARSER) if few else _COARSER:
        low, largest = _COARSER[str(name)]
        if ROUNDING[str(name)][1] >= own and name != dtype:
            continue
        if size.max(initial=0.0) <= largest and _is_held(size, str(name), low):
            return str(name)
    return dtype


def _distinct(numbers: NDArray[Any]) -> int:
    """Count distinct numbers; `np.unique` would import masked arrays."""
    import numpy as np

    ordered = np.sort(numbers)
    return int((ordered[1:] != ordered[:-1]).sum()) + 1 if ordered.size else 0


def _has_low_bits(numbers: NDArray[Any], own: int) -> bool:
    """Has one of the numbers bits that every coarser format leaves zero?"""
    import numpy as np

    lows = [low for name, (low, _) in _COARSER.items() if ROUNDING[name][1] < own]
    if numbers.dtype != np.float32 or not lows:
        return False
    finite = numbers[np.isfinite(numbers)]
    return bool((finite.view(np.uint32) & np.uint32((1 << min(lows)) - 1)).any())


def lean_of(left: NDArray[Any], right: NDArray[Any], dtype: str) -> float:
    """Return the mean move towards zero, in units in the last place of a format.

    0 where values were rounded to nearest, 1/2 where they were cut off.
    """
    import numpy as np

    with np.errstate(invalid="ignore", over="ignore"):
        moved = (left.astype(np.float64) - right) * np.sign(left) / unit(right, dtype)
    moved = moved[np.isfinite(moved) & (left != 0) & (right != 0)]
    return float(np.median(moved)) if moved.size else 0.0


def _is_held(size: NDArray[Any], name: str, low: int) -> bool:
    import numpy as np

    least, bits = ROUNDING[name]
    single = size.astype(np.float32)
    if not (single == size).all():
        return False
    if (single >= 2.0**least).all():
        return not (single.view(np.uint32) & np.uint32((1 << low) - 1)).any()
    units = unit(size, name)
    return bool((size % units == 0).all()) and bits >= 0


def unit(values: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Return the unit in the last place of each finite value in a format."""
    import numpy as np

    least, mantissa = ROUNDING[dtype]
    if values.dtype == np.float32:
        codes = (np.ascontiguousarray(values).view(np.uint32) >> np.uint32(23)) & np.uint32(255)
        return _table(dtype)[codes]
    exponents = np.where(values == 0, least, np.frexp(values)[1] - 1)
    return np.ldexp(1.0, np.maximum(exponents, least) - mantissa)


def _table(dtype: str) -> NDArray[Any]:
    """Return the units by the exponent code of a float32."""
    import numpy as np

    least, mantissa = ROUNDING[dtype]
    return np.ldexp(1.0, np.maximum(np.arange(256) - 127, least) - mantissa)


def rounded(values: NDArray[Any], dtype: str, *, nearest: bool = True) -> NDArray[Any]:
    """Return float32 values as a coarser format holds them, ties to even or cut off."""
    import numpy as np

    if dtype == "F16" and nearest:
        with np.errstate(over="ignore"):
            return values.astype(np.float16).astype(np.float32)
    if dtype == "BF16" and values.dtype == np.float32:
        bits = values.view(np.uint32)
        if nearest:
            bits = bits + (np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1)))
        return (bits & np.uint32(0xFFFF0000)).view(np.float32)
    units = unit(values, dtype)
    places = np.rint(values / units) if nearest else np.trunc(values / units)
    return np.asarray(places * units, values.dtype)


_TWICE = 1.1  # rest over what one rounding adds, from which the left's rounding is in it as well
_CUT = 0.4  # mean move towards zero from which values were cut off, in units in the last place
_PATTERN = 1.2  # how much further than noise the pattern of what was cut off reaches
_REACH = 0.9  # of the bound on the largest singular value of noise: see `_Profile.edge`


class Rounding:
    """The variance that rounding adds to each element of a difference, by rows and columns."""

    def __init__(self, left: Values, right: Values, matrix: Matrix) -> None:
        """Find how coarse both sides are; the left counts where it was rounded as well."""
        formats = precision_of(left), precision_of(right)
        digits = [ROUNDING.get(name, (0, 99))[1] for name in formats]
        coarse = digits[0] <= digits[1]
        self._cut = not coarse and lean_of(sample(left), sample(right), formats[1]) > _CUT
        self._sides = [_Profile(name, matrix) for name in (formats[1], *formats[:1] * coarse)]

    def add(self, before: NDArray[Any], after: NDArray[Any]) -> None:
        """Add the next rows of a tall matrix, or the next columns of a wide one."""
        for profile, side in zip(self._sides, (after, before), strict=False):
            profile.add(side)

    def noise(self, values: NDArray[Any], squares: float, margin: float) -> tuple[float, float]:
        """Return how far rounding reaches among singular values, and what it adds to their squares.

        What is left above one rounding shows whether the left's is in the difference too: a model
        that was changed before it was stored holds both, one that was changed as stored holds one.
        """
        right, *left = self._sides
        edge = right.edge() * (1 + margin)
        if not left:  # what is cut off has a mean, and a pattern: ulp² / 3 in place of ulp² / 12
            return (_PATTERN * 2 * edge, 4 * right.total) if self._cut else (edge, right.total)
        both = right.with_other(left[0])
        wide = both.edge() * (1 + margin)
        above = values[values > edge]
        rest = squares - float((above * above).sum())
        # An outer product rounds to a second direction: the pattern of where it was too small.
        if rest > _TWICE * right.total or (values > wide).sum() == 1:
            return wide, both.total
        return edge, right.total


class _Profile:
    """Sums of rounding's variances by rows and by columns."""

    def __init__(self, dtype: str, matrix: Matrix) -> None:
        import numpy as np

        self._dtype, self._tall, self._next = dtype, matrix.is_tall, 0
        self.rows, self.columns = np.zeros(matrix.rows), np.zeros(matrix.columns)

    def add(self, chunk: NDArray[Any]) -> None:
        import numpy as np

        with np.errstate(over="ignore", invalid="ignore"):
            squares = unit(chunk, self._dtype) ** 2
        squares[~np.isfinite(chunk)] = 0
        height, width = chunk.shape
        first, self._next = self._next, self._next + (height if self._tall else width)
        rows = slice(first, first + height) if self._tall else slice(None)
        columns = slice(None) if self._tall else slice(first, first + width)
        self.rows[rows] += squares.sum(axis=1) / 12
        self.columns[columns] += squares.sum(axis=0) / 12

    def with_other(self, other: _Profile) -> _Profile:
        """Return the sum of two independent roundings."""
        both = object.__new__(_Profile)
        both.rows, both.columns = self.rows + other.rows, self.columns + other.columns
        return both

    @property
    def total(self) -> float:
        """What rounding adds to the squared norm."""
        return float(self.rows.sum())

    def edge(self) -> float:
        """Return how far noise with these variances reaches among singular values.

        It is below √(largest row) + √(largest column) (Bandeira & van Handel 2016); on weights of
        trained models, whose rows differ in size, its largest one is 0.55 to 0.8 of that.
        """
        bound = sqrt(float(self.rows.max())) + sqrt(float(self.columns.max()))
        return _REACH * bound
