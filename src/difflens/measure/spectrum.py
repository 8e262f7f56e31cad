"""Spectra of a pair: the singular values of what changed, and those of both sides."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from difflens.core.record import Record
from difflens.core.records import Delta

from .gram import (
    FLOOR,
    Alignment,
    Gram,
    alignment,
    differences,
    finite,
    grams,
    leading_values,
    most_moved,
    size_bytes,
)
from .matrices import Matrix, chunks, has_moved, is_precise, matrix_of
from .precision import Rounding
from .ranks import (
    ENERGY_RANKS,
    MARGIN,
    edge,
    effective_rank,
    energy_at,
    participation_ratio,
    sigma_of_median,
    stable_rank,
)
from .resources import memory

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .values import Values

TOP = 64  # singular values that are kept for charts
_ROUGH_LEAST, _ROUGH_MOST = 1e-20, 1e30  # sums of squares that float32 products can bear
FULL = 4096  # smaller side up to which all singular values are taken


class DeltaSpectrum(Record, frozen=True):
    """The singular values of d = right - left, over elements finite on both sides.

    `values` are all of them, the largest first; above `FULL` rows and columns only the `TOP`
    largest (randomised), and what needs all is None. `noise_edge` is what rounding explains:
    the largest singular value of noise with variances ulp² / 12 of each element, of the right
    side's, and of the left's where the rest shows that both were rounded; or, where most of the
    spectrum is above it, what the median singular value says the noise is; both raised by
    `MARGIN`. How coarse a side is its values tell: BF16 values in F32 are BF16. `rounding_sum` is
    what rounding adds to ‖d‖². Of a stack of matrices it is the one that moved most, and `which`
    is its place. Memory: three Gram matrices, and 128 MB per side of a wide matrix.
    """

    rows: int
    columns: int
    norm: float
    values: tuple[float, ...]
    stable_rank: float | None
    effective_rank: float | None
    participation_ratio: float | None
    noise_edge: float | None
    noise_source: str | None
    rank_above_noise: int | None
    rounding_edge: float | None = None
    stack: int = 1
    which: int = 0
    dropped: int = 0
    rounding_sum: float | None = None

    @property
    def top(self) -> tuple[float, ...]:
        """The largest singular values."""
        return self.values[:TOP]

    @property
    def is_full(self) -> bool:
        """Are these all singular values there are?"""
        return len(self.values) == min(self.rows, self.columns)

    @property
    def energy_at_rank(self) -> dict[int, float]:
        """Part of ‖d‖² in the 4, 8, 16, 32, 64 largest singular values."""
        return {rank: share for rank in ENERGY_RANKS if (share := self.extractable_at(rank))}

    def extractable_at(self, rank: int) -> float | None:
        """1 - ‖d - d_r‖² / ‖d‖²: what the best matrix of that rank keeps; None if unknown."""
        import numpy as np

        if rank > len(self.values) and not self.is_full:
            return None
        return energy_at(np.array(self.values), self.norm, rank)

    @property
    def extractable_at_r(self) -> float | None:
        """What the best matrix of rank `rank_above_noise` keeps of ‖d‖²."""
        return self.extractable_at(self.rank_above_noise) if self.rank_above_noise else None

    @classmethod
    def wants(cls, delta: Delta) -> bool:
        """Take float matrices of one shape whose values may differ."""
        sides = delta.pair.left, delta.pair.right
        return has_moved(delta) and all(matrix_of(info) is not None for info in sides)

    @classmethod
    def of(cls, left: Values | None, right: Values | None) -> Self | None:
        """Take the spectrum; None if nothing finite moved or squares overflow."""
        matrix = matrix_of(right.info) if right else None
        if left is None or right is None or matrix is None:
            return None
        matrix = most_moved(left, right, matrix)
        with memory(size_bytes(matrix)):
            return cls._taken(left, right, matrix)

    @classmethod
    def _taken(cls, left: Values, right: Values, matrix: Matrix) -> Self | None:
        gram, facts = _read(left, right, matrix, precise=is_precise(left, right))
        squares = gram.square_sum if gram else facts.squares
        if gram and not _ROUGH_LEAST < squares < _ROUGH_MOST:  # float32 may have been too narrow
            gram, facts = _read(left, right, matrix, precise=True)
            squares = gram.square_sum if gram else facts.squares
        if not (isfinite(squares) and squares > 0):
            return None
        if gram:
            values, floor = gram.values(), gram.floor
        else:
            values, floor = _leading(left, right, matrix), FLOOR
        noise = _Noise(None, None, floor)
        if right.info.stored is None:
            noise = _Noise(*facts.profile.noise(values, squares, MARGIN), floor)
        return cls._from_values(matrix, values, sqrt(squares), noise, facts.dropped)

    @classmethod
    def _from_values(
        cls, matrix: Matrix, values: NDArray[Any], norm: float, noise: _Noise, dropped: int
    ) -> Self:

        full = len(values) == matrix.small_side
        source, limit = _noise_edge(values, matrix, noise)
        known = limit is not None and (full or values[-1] <= limit)
        return cls(
            rows=matrix.rows,
            columns=matrix.columns,
            norm=norm,
            values=tuple(values.tolist()),
            stable_rank=stable_rank(values, norm),
            effective_rank=effective_rank(values) if full else None,
            participation_ratio=participation_ratio(values) if full else None,
            noise_edge=limit,
            noise_source=source,
            rank_above_noise=int((values > (limit or 0.0)).sum()) if known else None,
            rounding_edge=noise.rounding,
            stack=matrix.stack,
            which=matrix.which,
            dropped=dropped,
            rounding_sum=noise.total,
        )

    def figures(self) -> dict[str, Any]:
        """Return the ranks."""
        return {
            "delta_stable_rank": self.stable_rank,
            "delta_effective_rank": self.effective_rank,
            "delta_participation_ratio": self.participation_ratio,
            "delta_rank_above_noise": self.rank_above_noise,
            "delta_noise_edge": self.noise_edge,
            "delta_noise_source": self.noise_source,
        }


class SideSpectrum(Record, frozen=True):
    """The singular values of the left and of the right matrix themselves, and how they align.

    Non-finite elements count as zero. A side that is not there has no values; above `FULL` rows
    and columns only the `TOP` largest are taken. Of a stack it is the matrix that moved most.
    Memory: five Gram matrices, and 128 MB per side of a wide matrix.
    """

    rows: int
    columns: int
    left_values: tuple[float, ...] = ()
    right_values: tuple[float, ...] = ()
    left_norm: float | None = None
    right_norm: float | None = None
    left_stable_rank: float | None = None
    right_stable_rank: float | None = None
    left_effective_rank: float | None = None
    right_effective_rank: float | None = None
    left_participation_ratio: float | None = None
    right_participation_ratio: float | None = None
    alignment: Alignment | None = None
    stack: int = 1
    which: int = 0

    @property
    def left_top(self) -> tuple[float, ...]:
        """The largest singular values of the left side."""
        return self.left_values[:TOP]

    @property
    def right_top(self) -> tuple[float, ...]:
        """The largest singular values of the right side."""
        return self.right_values[:TOP]

    def is_full(self, side: str) -> bool:
        """Are all singular values of a side known?"""
        values = self.left_values if side == "left" else self.right_values
        return len(values) == min(self.rows, self.columns)

    @classmethod
    def wants(cls, delta: Delta) -> bool:
        """Take every float matrix that has one shape on the sides it is on."""
        sides = [info for info in (delta.pair.left, delta.pair.right) if info]
        if delta.kind == "uncompared" or len({info.shape for info in sides}) != 1:
            return False
        return all(matrix_of(info) for info in sides)

    @classmethod
    def of(cls, left: Values | None, right: Values | None) -> Self | None:
        """Take both spectra; None if there is no matrix or squares overflow."""
        given = right or left
        matrix = matrix_of(given.info) if given else None
        if matrix is None:
            return None
        if left and right:
            matrix = most_moved(left, right, matrix)
        with memory(size_bytes(matrix, 5)):
            full = matrix.small_side <= FULL
            return cls._exact(left, right, matrix) if full else cls._part(left, right, matrix)

    @classmethod
    def _exact(cls, left: Values | None, right: Values | None, matrix: Matrix) -> Self | None:
        taken = grams(left, right, matrix)
        if not all(gram.is_finite() for gram in taken.values()):
            return None
        if left and right and len(taken) == 2:
            by_side, vectors = alignment(left, right, matrix, taken["left"], taken["right"])
            return cls._from_values(matrix, by_side, vectors)
        (one,) = taken.values()
        values = one.values()
        return cls._from_values(matrix, dict.fromkeys(_sides(left, right), values), None)

    @classmethod
    def _part(cls, left: Values | None, right: Values | None, matrix: Matrix) -> Self:
        by_side = {}
        norms = {}
        for side, values in _sides(left, right).items():

            def parts(values: Values = values) -> Iterator[NDArray[Any]]:
                return (finite(chunk) for chunk in chunks(values, matrix))

            by_side[side] = leading_values(parts, matrix.rows, matrix.columns, TOP)
            norms[side] = sqrt(sum(float((part.astype("f8") ** 2).sum()) for part in parts()))
        return cls._from_values(matrix, by_side, None, norms)

    @classmethod
    def _from_values(
        cls,
        matrix: Matrix,
        by_side: dict[str, NDArray[Any]],
        vectors: Alignment | None,
        norms: dict[str, float] | None = None,
    ) -> Self:
        import numpy as np

        fields: dict[str, Any] = {}
        for side, values in by_side.items():
            full = len(values) == matrix.small_side
            norm = norms[side] if norms else float(np.linalg.norm(values))
            fields |= {
                f"{side}_values": tuple(values.tolist()),
                f"{side}_norm": norm,
                f"{side}_stable_rank": stable_rank(values, norm),
                f"{side}_effective_rank": effective_rank(values) if full else None,
                f"{side}_participation_ratio": participation_ratio(values) if full else None,
            }
        fields |= {"alignment": vectors, "stack": matrix.stack, "which": matrix.which}
        return cls(matrix.rows, matrix.columns, **fields)

    def figures(self) -> dict[str, Any]:
        """Return the ranks of both sides."""
        return {
            "left_stable_rank": self.left_stable_rank,
            "right_stable_rank": self.right_stable_rank,
            "left_effective_rank": self.left_effective_rank,
            "right_effective_rank": self.right_effective_rank,
        }


def _sides(left: Values | None, right: Values | None) -> dict[str, Values]:
    return {name: side for name, side in (("left", left), ("right", right)) if side}


class _Noise(NamedTuple):
    """What rounding may have done (None if the right is no plain float), and the method."""

    rounding: float | None
    total: float | None
    floor: float


def _noise_edge(
    values: NDArray[Any], matrix: Matrix, noise: _Noise
) -> tuple[str | None, float | None]:
    """Say where the noise comes from and how far it reaches."""
    import numpy as np

    source, limit = "rounding", noise.rounding
    if len(values) == matrix.small_side and (limit is None or np.median(values) > limit):
        sigma = sigma_of_median(values, matrix.rows, matrix.columns)
        source, limit = "median", edge(sigma, matrix.rows, matrix.columns) * (1 + MARGIN)
    if limit is None:
        return None, None
    return source, max(limit, float(values[0]) * noise.floor)


class _Facts(NamedTuple):
    """What one pass over a delta tells beside its Gram matrix."""

    squares: float
    profile: Rounding
    dropped: int


def _read(
    left: Values, right: Values, matrix: Matrix, *, precise: bool
) -> tuple[Gram | None, _Facts]:
    """Read both sides once; the Gram matrix is None if it would be too large."""
    import numpy as np

    gram = None
    if matrix.small_side <= FULL:
        gram = Gram(matrix.small_side, tall=matrix.is_tall, precise=precise)
    profile = Rounding(left, right, matrix)
    squares, dropped = 0.0, 0
    for moved, before, after, lost in differences(left, right, matrix, precise=precise):
        profile.add(before, after)
        dropped += lost
        if gram:
            gram.add(moved)
        else:
            squares += float(np.square(moved, dtype=np.float64).sum())
    return gram, _Facts(squares, profile, dropped)


def _leading(left: Values, right: Values, matrix: Matrix) -> NDArray[Any]:
    def parts() -> Iterator[NDArray[Any]]:
        return (moved for moved, *_ in differences(left, right, matrix))

    return leading_values(parts, matrix.rows, matrix.columns, TOP)
