"""The changed matrices of a diff, each with the spectra of its change and of both sides."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...diffs import Diff
from ...measure.scan import Scan
from ...measure.spectrum import DeltaSpectrum, SideSpectrum
from ...records import Delta
from ..anatomy.roles import role
from ..changes.energy import Moved


class Changed(NamedTuple):
    """A matrix that changed: how far, and its spectra."""

    delta: Delta
    scan: Scan
    change: DeltaSpectrum
    sides: SideSpectrum | None

    @property
    def name(self) -> str:
        """The name of its pair."""
        return self.delta.name

    @property
    def relative_l2(self) -> float:
        """‖d‖ / ‖left‖; 0 where that cannot be said, for ordering."""
        return self.scan.relative_l2 or 0.0

    def rank_above(self, margin: float, default: float) -> int | None:
        """Count singular values above the noise edge, raised by `margin` and not by the default."""
        spectrum = self.change
        if spectrum.noise_edge is None or spectrum.rank_above_noise is None:
            return None
        edge = spectrum.noise_edge * (1 + margin) / (1 + default)
        return sum(value > edge for value in spectrum.values)


def changed_matrices(diff: Diff, moved: list[Moved]) -> list[Changed]:
    """List the matrices whose change has a spectrum, the one that moved most first."""
    scans = {id(each.delta): each.scan for each in moved}
    sides = {id(delta): spectrum for delta, spectrum in diff.measured(SideSpectrum)}
    found = [
        Changed(delta, scans[id(delta)], spectrum, sides.get(id(delta)))
        for delta, spectrum in diff.measured(DeltaSpectrum)
        if id(delta) in scans
    ]
    return sorted(found, key=lambda each: (-each.relative_l2, each.name))


def ranks(matrix: Changed, rank: int | None) -> dict[str, Any]:
    """Tell how far a matrix moved and in how many directions."""
    spectrum, figures = matrix.change, matrix.scan.figures()
    told: dict[str, Any] = {
        "name": matrix.name,
        "role": role(matrix.name),
        "rows": spectrum.rows,
        "columns": spectrum.columns,
        "relative_l2": figures["relative_l2"],
        "cosine": figures["cosine"],
        "stable_rank": spectrum.stable_rank,
        "effective_rank": spectrum.effective_rank,
        "participation_ratio": spectrum.participation_ratio,
        "rank_above_noise": rank,
        "noise_edge": spectrum.noise_edge,
        "noise_source": spectrum.noise_source,
        "energy_at_rank": {str(at): share for at, share in spectrum.energy_at_rank.items()},
        "extractable_at_r": spectrum.extractable_at(rank) if rank else None,
    }
    if spectrum.stack > 1:
        told |= {"expert": spectrum.which, "experts": spectrum.stack}
    if spectrum.dropped:
        told["not_finite"] = spectrum.dropped
    return told
