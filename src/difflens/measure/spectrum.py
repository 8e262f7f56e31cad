"""Spectra of a pair: the singular values of what changed, and those of both sides."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from ..records import Delta, Record
from .alignment import Alignment, alignment
from .differences import differences, finite, grams, most_moved, size_bytes
from .formats import unit_square_sum
from .gram import FLOOR, Gram
from .matrices import Matrix, chunks, has_moved, is_precise, matrix_of
from .randomised import leading_values
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
from .room import room

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .values import Values

TOP = 64  # singular values that are kept for charts
_SOME, _FEW = 8, 1 << 16  # one row in so many tells how coarse the dtype is, of larger chunks
_ROUGH_LEAST, _ROUGH_MOST = 1e-20, 1e30  # sums of squares that float32 products can bear
FULL = 4096  # smaller side up to which all singular values are taken


class DeltaSpectrum(Record, frozen=True):
    """The singular values of d = right - left, over elements finite on both sides.

    `values` are all of them, the largest first; above `FULL` rows and columns only the `TOP`
    largest (randomised), and what needs all is None. `noise_edge` is what rounding to the right's
    dtype explains, sigma (√m + √n) with sigma² = mean(ulp²) / 12, or, where most of the spectrum
    is above it, what the median singular value says the noise is; both raised by `MARGIN`. Of a
    stack of matrices the one that moved most is told, its place is `which`.
    Memory: three Gram matrices, and 128 MB a side of a wide matrix.
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
        return {rank: found for rank in ENERGY_RANKS if (found := self.extractable_at(rank))}

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
        """Take the spectrum; None where nothing finite moved or squares overflow."""
        matrix = matrix_of(right.info) if right else None
        if left is None or right is None or matrix is None:
            return None
        matrix = most_moved(left, right, matrix)
        with room(size_bytes(matrix)):
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
        sigma = sqrt(facts.units / facts.counted / 12)
        rounding = edge(sigma, matrix.rows, matrix.columns) * (1 + MARGIN)
        told = rounding if right.info.stored is None else None
        return cls._told(matrix, values, sqrt(squares), _Noise(told, floor), facts.dropped)

    @classmethod
    def _told(
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
        )

    def figures(self) -> dict[str, Any]:
        """Give the ranks."""
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
    and columns only the `TOP` largest are taken. Of a stack the matrix that moved most is told.
    Memory: five Gram matrices, and 128 MB a side of a wide matrix.
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
        """Take both spectra; None where there is no matrix or squares overflow."""
        given = right or left
        matrix = matrix_of(given.info) if given else None
        if matrix is None:
            return None
        if left and right:
            matrix = most_moved(left, right, matrix)
        with room(size_bytes(matrix, 5)):
            full = matrix.small_side <= FULL
            return cls._whole(left, right, matrix) if full else cls._part(left, right, matrix)

    @classmethod
    def _whole(cls, left: Values | None, right: Values | None, matrix: Matrix) -> Self | None:
        taken = grams(left, right, matrix)
        if not all(gram.is_finite() for gram in taken.values()):
            return None
        if left and right and len(taken) == 2:
            found, vectors = alignment(left, right, matrix, taken["left"], taken["right"])
            return cls._told(matrix, found, vectors)
        (one,) = taken.values()
        values = one.values()
        return cls._told(matrix, dict.fromkeys(_sides(left, right), values), None)

    @classmethod
    def _part(cls, left: Values | None, right: Values | None, matrix: Matrix) -> Self:
        found = {}
        norms = {}
        for side, values in _sides(left, right).items():

            def parts(values: Values = values) -> Iterator[NDArray[Any]]:
                return (finite(chunk) for chunk in chunks(values, matrix))

            found[side] = leading_values(parts, matrix.rows, matrix.columns, TOP)
            norms[side] = sqrt(sum(float((part.astype("f8") ** 2).sum()) for part in parts()))
        return cls._told(matrix, found, None, norms)

    @classmethod
    def _told(
        cls, matrix: Matrix, found: dict[str, NDArray[Any]], vectors: Alignment | None,
        norms: dict[str, float] | None = None,
    ) -> Self:  # fmt: skip
        import numpy as np

        told: dict[str, Any] = {}
        for side, values in found.items():
            full = len(values) == matrix.small_side
            norm = norms[side] if norms else float(np.linalg.norm(values))
            told |= {
                f"{side}_values": tuple(values.tolist()),
                f"{side}_norm": norm,
                f"{side}_stable_rank": stable_rank(values, norm),
                f"{side}_effective_rank": effective_rank(values) if full else None,
                f"{side}_participation_ratio": participation_ratio(values) if full else None,
            }
        told |= {"alignment": vectors, "stack": matrix.stack, "which": matrix.which}
        return cls(matrix.rows, matrix.columns, **told)

    def figures(self) -> dict[str, Any]:
        """Give the ranks of both sides."""
        return {
            "left_stable_rank": self.left_stable_rank,
            "right_stable_rank": self.right_stable_rank,
            "left_effective_rank": self.left_effective_rank,
            "right_effective_rank": self.right_effective_rank,
        }


def _sides(left: Values | None, right: Values | None) -> dict[str, Values]:
    return {name: side for name, side in (("left", left), ("right", right)) if side}


class _Noise(NamedTuple):
    """What rounding may have done (None where the right is no plain float), and the method."""

    rounding: float | None
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
    units: float
    counted: int
    dropped: int


def _read(
    left: Values, right: Values, matrix: Matrix, *, precise: bool
) -> tuple[Gram | None, _Facts]:
    """Read both sides once; the Gram matrix is None where it would be too large."""
    import numpy as np

    gram = None
    if matrix.small_side <= FULL:
        gram = Gram(matrix.small_side, tall=matrix.is_tall, precise=precise)
    squares, units, counted, dropped = 0.0, 0.0, 0, 0
    for moved, after, lost in differences(left, right, matrix, precise=precise):
        some = after[:: _SOME if after.size > _FEW else 1]
        units += unit_square_sum(some, right.info.dtype)
        counted += some.size
        dropped += lost
        if gram:
            gram.add(moved)
        else:
            squares += float(np.square(moved, dtype=np.float64).sum())
    return gram, _Facts(squares, units, counted, dropped)


def _leading(left: Values, right: Values, matrix: Matrix) -> NDArray[Any]:
    def parts() -> Iterator[NDArray[Any]]:
        return (moved for moved, _, _ in differences(left, right, matrix))

    return leading_values(parts, matrix.rows, matrix.columns, TOP)
