"""The values of a pair that are as large as its dtype goes, and the few that stand out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

from difflens.core.record import Record
from difflens.core.records import Delta

from .matrices import has_moved

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .values import Values

KEPT = 9  # largest values that are kept: one more than may be called isolated
# The largest finite number of each format; formats so narrow that any tensor uses it are left out.
LARGEST = {
    "F64": 1.7976931348623157e308,
    "F32": 3.4028234663852886e38,
    "BF16": 3.3895313892515355e38,
    "F16": 65504.0,
    "F8_E4M3": 448.0,
    "F8_E5M2": 57344.0,
    "F8_E4M3FNUZ": 240.0,
    "F8_E5M2FNUZ": 57344.0,
}


class Large(NamedTuple):
    """One of the largest values: where it is, counted flat, and what it is on both sides."""

    place: int
    left: float
    right: float


class Extremes(Record, frozen=True):
    """Values at ± the largest finite number of the dtype, and the nine largest of the right side.

    `newly_saturated` are there on the right and not on the left; None if the format is so narrow
    that every tensor uses its largest number. `largest` are finite, the largest magnitude first.
    Memory: a few megabytes.
    """

    elements: int
    newly_saturated: int | None
    largest: tuple[Large, ...]

    @classmethod
    def wants(cls, delta: Delta) -> bool:
        """Take float tensors of one shape that differ."""
        return has_moved(delta)

    @classmethod
    def of(cls, left: Values | None, right: Values | None) -> Self | None:
        """Read both sides once."""
        import numpy as np

        if left is None or right is None:
            return None
        limit = LARGEST.get(right.info.dtype)
        before_limit = LARGEST.get(left.info.dtype)
        saturated, start = 0, 0
        kept: list[Large] = []
        for before, after in zip(left.pieces(), right.pieces(), strict=True):
            sizes = np.abs(after)
            bad = ~np.isfinite(sizes)
            if bad.any():
                sizes[bad] = 0
            if limit is not None and sizes.max() >= limit:
                saturated += int(((sizes == limit) & (np.abs(before) != before_limit)).sum())
            kept = _largest(kept, start, sizes, before, after)
            start += after.size
        return cls(right.info.count, None if limit is None else saturated, tuple(kept))

    def figures(self) -> dict[str, Any]:
        """Return the count and the largest magnitude."""
        return {
            "newly_saturated": self.newly_saturated,
            "largest": abs(self.largest[0].right) if self.largest else None,
        }


def _largest(
    kept: list[Large], start: int, sizes: NDArray[Any], before: NDArray[Any], after: NDArray[Any]
) -> list[Large]:
    """Take in the largest of a piece; of equal ones the first stay."""
    import numpy as np

    least = abs(kept[-1].right) if len(kept) == KEPT else -1.0
    if sizes.max() <= least:
        return kept
    count = min(KEPT, sizes.size)
    bound = np.partition(sizes, sizes.size - count)[sizes.size - count]
    some = np.flatnonzero(sizes >= max(bound, least))
    some = some[np.argsort(-sizes[some], kind="stable")][:KEPT]
    found = [
        Large(start + int(at), float(before[at]), float(after[at]))
        for at in some
        if np.isfinite(after[at]) and np.isfinite(before[at])
    ]
    return sorted([*kept, *found], key=lambda each: (-abs(each.right), each.place))[:KEPT]
