"""The pattern that zeros make: groups along the input, blocks of outputs and inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
        found = int(zero.sum())
        self.zeros += found
        if not self.inputs:
            return
        for size, counts in self._groups.items():
            compliant, groups = self._grouped(zero, size, found)
            counts[0] += compliant
            counts[1] += groups
        _count(self._tall, zero, 32, 1, found)
        _count(self._square, zero, 16, 16, found)

    def _grouped(self, zero: NDArray[Any], size: int, found: int) -> tuple[int, int]:
        """Count groups that are half zero at least; of a shorter last one, as few are not zero."""
        beside = zero.reshape(len(zero), self.inputs, -1)
        whole, tail = divmod(self.inputs, size)
        groups = (whole + bool(tail)) * len(zero) * beside.shape[2]
        short = len(zero) * beside.shape[2] if tail and tail <= size // 2 else 0
        if not found:
            return short, groups
        shape = len(zero), whole, size, beside.shape[2]
        inside = beside[:, : whole * size].reshape(shape).sum(axis=2)
        compliant = int((inside >= size // 2).sum())
        if tail:
            rest = tail - beside[:, whole * size :].sum(axis=1)  # those that are not zero
            compliant += int((rest <= size // 2).sum())
        return compliant, groups

    def compliance(self, size: int) -> float | None:
        """Give the part of the groups of that size that comply; None where there is no input."""
        compliant, groups = self._groups[size]
        return compliant / groups if groups else None

    @property
    def tall_blocks(self) -> float | None:
        """Give the part of the blocks of 32 outputs of one input that are all zero."""
        return self._tall[0] / self._tall[1] if self._tall[1] else None

    @property
    def square_blocks(self) -> float | None:
        """Give the part of the blocks of 16 outputs and 16 inputs that are all zero."""
        return self._square[0] / self._square[1] if self._square[1] else None


def _count(counts: list[int], zero: NDArray[Any], high: int, wide: int, found: int) -> None:
    down, along = len(zero) // high, zero.shape[1] // wide
    counts[1] += down * along
    if found and down and along:
        whole = zero[: down * high, : along * wide].reshape(down, high, along, wide)
        counts[0] += int(whole.all(axis=(1, 3)).sum())
