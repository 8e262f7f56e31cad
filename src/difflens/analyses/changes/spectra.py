"""How many directions a change has: ranks of what changed, taken only where they can matter."""

from __future__ import annotations

from typing import NamedTuple

from ...measure.matrices import matrix_of
from ...measure.spectrum import DeltaSpectrum
from ..anatomy.roles import is_parameter
from .change import Change, Numbers
from .energy import Moved
from .rounding import is_rounding_only

SAMPLED = 64  # matrices whose spectra are taken at most, evenly spread


class Rank(NamedTuple):
    """Singular values of a change above its noise, and what they hold of ‖d‖²."""

    rank: int
    small_side: int
    energy: float


def is_matrix(each: Moved) -> bool:
    """Is it a float matrix, with both sides large enough to speak of a rank?"""
    left, right = each.delta.pair.left, each.delta.pair.right
    if not (left and right) or not is_parameter(each.name, left.dtype, right.dtype):
        return False
    return left.shape == right.shape and matrix_of(left) is not None


def rank_of(change: Change, each: Moved) -> Rank | None:
    """Take the rank of one change; None where it has none of note above its noise."""
    if not is_spread(change, each):
        return None
    left, right = change.values(each.delta)
    return _rank(DeltaSpectrum.of(left, right), change)


def is_spread(change: Change, each: Moved) -> bool:
    """Did more than a few elements change? Few ones have a low rank whatever they are."""
    return each.scan.changed > change.thresholds["row_fraction"] * each.scan.count


def low_rank(change: Change) -> Numbers | None:
    """Give the ranks where every change has few directions and the rest is noise of storage."""
    beyond = [each for each in change.measured if not is_rounding_only(each.scan)]
    if not change.is_measured or not beyond or not all(map(is_matrix, beyond)):
        return None
    if not all(is_spread(change, each) for each in beyond):
        return None
    # One matrix that is not of low rank settles it: the smallest is asked first.
    first = min(beyond, key=lambda each: (each.scan.count, each.name))
    if rank_of(change, first) is None:
        return None
    found = [_rank(spectrum, change) for spectrum in _spectra(change, beyond)]
    ranks = [each for each in found if each is not None]
    if len(ranks) < len(found) or not ranks:
        return None
    return {
        "rank": max(each.rank for each in ranks),
        "least_rank": min(each.rank for each in ranks),
        "matrices": len(beyond),
        "energy": min(each.energy for each in ranks),
    }


def sampled(change: Change) -> list[str]:
    """Say of how many matrices the rank was taken, where it was not of all."""
    number = sum(not is_rounding_only(each.scan) for each in change.measured)
    return [f"the rank was taken of {SAMPLED} of {number} matrices"] if number > SAMPLED else []


def _spectra(change: Change, beyond: list[Moved]) -> list[DeltaSpectrum | None]:
    if len(beyond) <= SAMPLED:
        taken = {delta.name: found for delta, found in change.diff.measured(DeltaSpectrum)}
        return [taken.get(each.name) for each in beyond]
    some = [beyond[index * len(beyond) // SAMPLED] for index in range(SAMPLED)]
    return [DeltaSpectrum.of(*change.values(each.delta)) for each in some]


def _rank(spectrum: DeltaSpectrum | None, change: Change) -> Rank | None:
    """Accept a rank that is small; over noise that is not rounding it must hold most of ‖d‖²."""
    if spectrum is None or not spectrum.rank_above_noise:
        return None
    small = min(spectrum.rows, spectrum.columns)
    energy = spectrum.extractable_at_r or 0.0
    if spectrum.rank_above_noise > change.thresholds["rank_fraction"] * small:
        return None
    plain = spectrum.noise_source == "rounding"
    if not plain and energy < change.thresholds["rank_energy"]:
        return None
    return Rank(spectrum.rank_above_noise, small, energy)
