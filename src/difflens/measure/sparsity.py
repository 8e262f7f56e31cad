"""Zeros of both sides: how many, in which pattern, and which weights became zero."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Self

from difflens.core.record import Record
from difflens.core.records import Delta

from .chunks import STEP
from .matrices import has_moved

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .values import Values

_BUCKETS = 1 << 20  # of |left|: the upper bits of a float32


class Sparsity(Record, frozen=True):
    """Exact zeros of a pair of one shape.

    Shares are of all elements: `newly_zeroed` of those that were not zero, `survivors_changed` of
    those zero on neither side, `mask_jaccard` of those zero on either. `pruning_auc` is the chance
    that a weight that became zero was smaller in magnitude than one that did not: 1 for magnitude
    pruning, 0.5 for random; magnitudes are resolved to 0.02 %. `two_of_four` is the part of the
    groups of four along the input dimension with two zeros at least (a shorter last group: with two
    non-zeros at most), `four_of_eight` the same of eight. Blocks are all zero: 32 outputs of one
    input, 16 by 16; those cut off at an end are not counted. Memory: 40 MB.
    """

    elements: int
    left_zeros: int
    right_zeros: int
    left_zero_fraction: float
    right_zero_fraction: float
    newly_zeroed: float | None
    mask_jaccard: float | None
    survivors_changed: float | None
    pruning_auc: float | None
    left_two_of_four: float | None
    right_two_of_four: float | None
    left_four_of_eight: float | None
    right_four_of_eight: float | None
    left_blocks_32x1: float | None
    right_blocks_32x1: float | None
    left_blocks_16x16: float | None
    right_blocks_16x16: float | None

    @classmethod
    def wants(cls, delta: Delta) -> bool:
        """Take float tensors of one shape that differ."""
        return has_moved(delta)

    @classmethod
    def of(cls, left: Values | None, right: Values | None) -> Self | None:
        """Read both sides once."""
        if left is None or right is None:
            return None
        sides = Pattern(left.info.shape), Pattern(right.info.shape)
        masks = _Masks()
        for before, after in _blocks(left, right):
            zeros = before == 0, after == 0
            masks.add(before, after, *zeros)
            for pattern, zero in zip(sides, zeros, strict=True):
                pattern.add(zero)
        count = left.info.count
        fields: dict[str, Any] = {}
        for name, side in zip(("left", "right"), sides, strict=True):
            fields |= {
                f"{name}_zeros": side.zeros,
                f"{name}_zero_fraction": side.zeros / count,
                f"{name}_two_of_four": side.compliance(4),
                f"{name}_four_of_eight": side.compliance(8),
                f"{name}_blocks_32x1": side.tall_blocks,
                f"{name}_blocks_16x16": side.square_blocks,
            }
        return cls(
            elements=count,
            newly_zeroed=_part(masks.newly, count - sides[0].zeros),
            mask_jaccard=_part(masks.both, masks.either),
            survivors_changed=_part(masks.changed, masks.survivors),
            pruning_auc=masks.auc(),
            **fields,
        )

    def figures(self) -> dict[str, Any]:
        """Return the shares."""
        return {name: getattr(self, name) for name in self.__struct_fields__[3:]}


class _Masks:
    """How the zeros of both sides lie to each other."""

    def __init__(self) -> None:
        import numpy as np

        self.newly = self.both = self.either = self.survivors = self.changed = 0
        self._zeroed, self._kept = np.zeros(_BUCKETS, np.int64), np.zeros(_BUCKETS, np.int64)

    def add(
        self, before: NDArray[Any], after: NDArray[Any], left: NDArray[Any], right: NDArray[Any]
    ) -> None:

        if not left.any() and not right.any():
            self.survivors += left.size
            self.changed += int((before != after).sum())
        else:
            kept = ~(left | right)
            self.survivors += int(kept.sum())
            self.changed += int((kept & (before != after)).sum())
            self.both += int((left & right).sum())
            self.either += int((left | right).sum())
            self.newly += int((right & ~left).sum())
        self._zeroed += _sizes(before[right & ~left]) if right.any() else 0
        self._kept += _sizes(before[~left & ~right] if right.any() or left.any() else before)

    def auc(self) -> float | None:
        """P(zeroed < kept) + P(equal) / 2, over all pairs of both kinds (Mann & Whitney 1947)."""
        import numpy as np

        zeroed, kept = int(self._zeroed.sum()), int(self._kept.sum())
        if not (zeroed and kept):
            return None
        above = kept - np.cumsum(self._kept)
        wins = float((self._zeroed * (above + self._kept / 2)).sum())
        return wins / zeroed / kept


def _sizes(values: NDArray[Any]) -> NDArray[Any]:
    """Count magnitudes by the upper bits of their float32, NaN among the largest."""
    import numpy as np

    codes = np.abs(values.astype(np.float32)).view(np.uint32).ravel() >> np.uint32(11)
    return np.bincount(codes.view(np.int32), minlength=_BUCKETS)


def _blocks(left: Values, right: Values) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Yield rows of both sides, as many as fill whole blocks."""
    rows, columns = left.matrix_shape
    step = max(32, STEP // max(1, columns) // 32 * 32)
    for first in range(0, rows, step):
        last = min(first + step, rows)
        ends = first * columns, last * columns
        yield (left.span(*ends).reshape(-1, columns), right.span(*ends).reshape(-1, columns))


def _part(count: int, whole: int) -> float | None:
    return count / whole if whole else None


class Pattern:
    """Counts of zeros, of n:m groups and of all-zero blocks; rows come a multiple of 32 at a time.

    Mishra et al. (2021), "Accelerating Sparse Deep Neural Networks": n:m means that of every m
    neighbours along the input dimension n at most are not zero.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        """Begin with nothing; the input dimension is the second one."""
        self.inputs = shape[1] if len(shape) > 1 else 0
        self.zeros = 0
        self._groups = {4: [0, 0], 8: [0, 0]}
        self._tall = [0, 0]
        self._square = [0, 0]

    def add(self, zero: NDArray[Any]) -> None:
        """Add rows of a mask that is true where the value is zero."""
        zeros = int(zero.sum())
        self.zeros += zeros
        if not self.inputs:
            return
        for size, counts in self._groups.items():
            compliant, groups = self._grouped(zero, size, zeros)
            counts[0] += compliant
            counts[1] += groups
        _count(self._tall, zero, 32, 1, zeros)
        _count(self._square, zero, 16, 16, zeros)

    def _grouped(self, zero: NDArray[Any], size: int, zeros: int) -> tuple[int, int]:
        """Count groups that are half zero at least; of a shorter last one, as few are not zero."""
        beside = zero.reshape(len(zero), self.inputs, -1)
        whole, tail = divmod(self.inputs, size)
        groups = (whole + bool(tail)) * len(zero) * beside.shape[2]
        short = len(zero) * beside.shape[2] if tail and tail <= size // 2 else 0
        if not zeros:
            return short, groups
        shape = len(zero), whole, size, beside.shape[2]
        inside = beside[:, : whole * size].reshape(shape).sum(axis=2)
        compliant = int((inside >= size // 2).sum())
        if tail:
            rest = tail - beside[:, whole * size :].sum(axis=1)  # those that are not zero
            compliant += int((rest <= size // 2).sum())
        return compliant, groups

    def compliance(self, size: int) -> float | None:
        """Return the part of the groups of that size that comply; None if there is no input."""
        compliant, groups = self._groups[size]
        return compliant / groups if groups else None

    @property
    def tall_blocks(self) -> float | None:
        """The part of the blocks of 32 outputs of one input that are all zero."""
        return self._tall[0] / self._tall[1] if self._tall[1] else None

    @property
    def square_blocks(self) -> float | None:
        """The part of the blocks of 16 outputs and 16 inputs that are all zero."""
        return self._square[0] / self._square[1] if self._square[1] else None


def _count(counts: list[int], zero: NDArray[Any], high: int, wide: int, zeros: int) -> None:
    down, along = len(zero) // high, zero.shape[1] // wide
    counts[1] += down * along
    if zeros and down and along:
        whole = zero[: down * high, : along * wide].reshape(down, high, along, wide)
        counts[0] += int(whole.all(axis=(1, 3)).sum())
