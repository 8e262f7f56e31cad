"""How two task vectors get in each other's way: sums over a tensor, which add up over tensors.

With t1 = left - base and t2 = right - base. Trimming keeps the largest part of each by magnitude,
then the sign of t1 + t2 is elected and what disagrees is dropped (TIES, Yadav et al. 2023).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from .threes import PIECE, Ancestry, Three
from .trimming import bits, threshold, thresholds

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Sums(NamedTuple):
    """Counts and sums over elements that are finite in all three models."""

    elements: int = 0
    base: float = 0.0  # ‖base‖²
    left: float = 0.0  # ‖t1‖²
    right: float = 0.0  # ‖t2‖²
    dot: float = 0.0  # <t1, t2>
    base_left: float = 0.0  # <base, t1>
    base_right: float = 0.0  # <base, t2>
    left_zeros: int = 0
    right_zeros: int = 0
    both: int = 0  # neither is zero
    conflicts: int = 0  # of these, with opposite signs
    left_kept: int = 0
    right_kept: int = 0
    overlap: int = 0  # kept of both
    overlap_conflicts: int = 0
    kept_mass: float = 0.0  # sum |t| of what trimming kept
    elected_mass: float = 0.0  # of that, with the elected sign


def added(parts: Iterable[Sums]) -> Sums:
    """Add up, field by field."""
    columns = zip(*parts, strict=True)
    whole = [sum(column) for column in columns]
    return Sums(*whole)


def sums(ancestry: Ancestry, three: Three, density: float) -> Sums:
    """Take the sums of one tensor, in three passes over pieces of the three models."""
    kept = max(1, round(density * three.elements))
    if three.elements <= PIECE:  # one piece, which need not be read again
        whole = list(_finite(ancestry, three))
        limits = [threshold(side, kept) for piece in whole for side in piece[1:]]
        return added([Sums(), *(_of(piece, limits) for piece in whole)])
    limits = thresholds(lambda: (piece[1:] for piece in _finite(ancestry, three)), kept)
    return added([Sums(), *(_of(piece, limits) for piece in _finite(ancestry, three))])


def _finite(ancestry: Ancestry, three: Three) -> Iterator[tuple[NDArray[Any], ...]]:
    import numpy as np

    for base, left, right in ancestry.pieces(three):
        known = np.isfinite(base) & np.isfinite(left) & np.isfinite(right)
        if known.all():
            yield base, left, right
        elif known.any():
            yield base[known], left[known], right[known]


def _of(piece: tuple[NDArray[Any], ...], limits: list[int]) -> Sums:
    import numpy as np

    base, left, right = piece
    left_zero, right_zero = left == 0, right == 0
    product = left * right
    kept = bits(left) >= limits[0], bits(right) >= limits[1]
    overlap = kept[0] & kept[1]
    trimmed = np.where(kept[0], left, 0), np.where(kept[1], right, 0)
    elected = trimmed[0] + trimmed[1]
    return Sums(
        elements=base.size,
        base=_dot(base, base),
        left=_dot(left, left),
        right=_dot(right, right),
        dot=_dot(left, right),
        base_left=_dot(base, left),
        base_right=_dot(base, right),
        left_zeros=int(left_zero.sum()),
        right_zeros=int(right_zero.sum()),
        both=int((~(left_zero | right_zero)).sum()),
        conflicts=int((np.signbit(left) != np.signbit(right))[~(left_zero | right_zero)].sum()),
        left_kept=int(kept[0].sum()),
        right_kept=int(kept[1].sum()),
        overlap=int(overlap.sum()),
        overlap_conflicts=int((product < 0)[overlap].sum()),
        kept_mass=float(sum(np.abs(side).sum() for side in trimmed)),
        elected_mass=float(sum(np.abs(side)[side * elected > 0].sum() for side in trimmed)),
    )


def _dot(left: NDArray[Any], right: NDArray[Any]) -> float:
    """Add up products in one thread: a sum must not depend on how many there are."""
    import numpy as np

    return float(np.einsum("i,i->", left, right))
