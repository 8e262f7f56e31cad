"""Task vectors: what two models learned beside their common base, and how these get in the way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from difflens.core.records import Pair
from difflens.models.anatomy.roles import is_parameter

from ..diff import Diff

if TYPE_CHECKING:
    from numpy.typing import NDArray


PIECE = 1 << 18  # elements of each model held at a time
COMPARED = frozenset({"identical", "within_epsilon", "changed", "recast"})


class Three(NamedTuple):
    """One tensor of three models, by its name in each."""

    name: str  # as the diff of left and right calls it
    base: str
    left: str
    right: str
    elements: int


class Ancestry(NamedTuple):
    """The base against the left model, and against the right one."""

    to_left: Diff
    to_right: Diff

    def threes(self) -> list[Three]:
        """List the float parameters that all three hold in one shape and layout."""
        after = {}
        for delta in self.to_right.deltas:
            if delta.kind in COMPARED and _is_plain(delta.pair) and delta.pair.left:
                after[delta.pair.left.name] = delta.pair
        found = []
        for delta in self.to_left.deltas:
            base, left = delta.pair.left, delta.pair.right
            other = after.get(base.name) if base else None
            right = other.right if other else None
            if delta.kind not in COMPARED or not _is_plain(delta.pair):
                continue
            if base and left and right and base.shape == left.shape == right.shape:
                names = Three(right.name, base.name, left.name, right.name, base.count)
                floats = is_parameter(right.name, base.dtype, left.dtype, right.dtype)
                found.extend([names] if floats else [])
        return found

    def pieces(self, three: Three) -> Iterator[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]:
        """Yield base, left - base and right - base in float64, some elements at a time."""
        import numpy as np

        sources = (
            self.to_left.values("left", three.base),
            self.to_left.values("right", three.left),
            self.to_right.values("right", three.right),
        )
        for base, left, right in zip(*(source.pieces(PIECE) for source in sources), strict=True):
            wide = base.astype(np.float64)
            yield wide, left - wide, right - wide


def _is_plain(pair: Pair) -> bool:
    return pair.transform is None and pair.left_recipe is None and pair.right_recipe is None


# With t1 = left - base and t2 = right - base. Trimming keeps the largest part of each by magnitude,
# then the sign of t1 + t2 is elected and what disagrees is dropped (TIES, Yadav et al. 2023).


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


# Magnitudes are seen as float32, whose bits grow with the value: counting the upper half of the
# bits, then the lower half within one bin, finds the exact one in two passes (radix selection).

_HALF = 1 << 16
_LOW = _HALF - 1


def bits(values: NDArray[Any]) -> NDArray[Any]:
    """Return the bits of |value| as float32: they are ordered as the magnitudes are."""
    import numpy as np

    found: NDArray[Any] = np.abs(values).astype(np.float32).view(np.uint32)
    return found


def threshold(values: NDArray[Any], kept: int) -> int:
    """Return the bits of the kept-th largest magnitude of an array at hand; 1 at least."""
    import numpy as np

    found = bits(values)
    place = max(0, found.size - kept)
    return max(1, int(np.partition(found, place)[place]))


def thresholds(passes: Callable[[], Iterator[tuple[NDArray[Any], ...]]], kept: int) -> list[int]:
    """Return the bits of the kept-th largest magnitude of each sequence.

    They are 1 at least, so that no zero is kept.
    """
    import numpy as np

    upper: dict[int, NDArray[Any]] = {}
    for piece in passes():
        for which, values in enumerate(piece):
            found = np.bincount(bits(values) >> 16, minlength=_HALF)
            upper[which] = upper[which] + found if which in upper else found
    places = {which: _place(counts, kept) for which, counts in upper.items()}
    lower = {which: np.zeros(_HALF, np.int64) for which in upper}
    for piece in passes():
        for which, values in enumerate(piece):
            found = bits(values)
            inside = found[found >> 16 == places[which][0]] & _LOW
            lower[which] += np.bincount(inside, minlength=_HALF)
    return [
        max(1, place << 16 | _place(lower[which], rest)[0])
        for which, (place, rest) in places.items()
    ]


def _place(counts: NDArray[Any], kept: int) -> tuple[int, int]:
    """Return the bin that holds the kept-th largest, and its rank within the bin."""
    import numpy as np

    above = np.cumsum(counts[::-1])[::-1]
    reached = np.flatnonzero(above >= min(kept, int(above[0])))
    place = int(reached[-1])
    return place, kept - int(above[place] - counts[place])
