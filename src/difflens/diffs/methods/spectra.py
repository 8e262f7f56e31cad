"""Spectra of changed matrices: ranks, the bulk of noise, heavy tails, a merged LoRA."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any, NamedTuple

from difflens.core.records import Delta
from difflens.measure.scan import Scan
from difflens.measure.spectrum import DeltaSpectrum, SideSpectrum
from difflens.models.anatomy.roles import role
from difflens.stats.spectrum import (
    PowerLaw,
    bulk_distance,
    bulk_sigma,
    power_law,
    tracy_widom_threshold,
)

from ..diff import Diff
from .changes.energy import Moved


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
        """‖d‖ / ‖left‖; 0 if that cannot be said, for ordering."""
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


def outliers(
    values: Sequence[float], rows: int, columns: int, alpha: float, distance: float
) -> dict[str, Any]:
    """Count singular values above what noise reaches with probability alpha.

    edge = sigma sqrt(Tracy-Widom threshold), sigma from the median (Johnstone 2001). Where the bulk
    is further than `distance` from the Marchenko-Pastur law the count has no meaning, and is null.
    """
    sigma = bulk_sigma(values, rows, columns)
    apart = bulk_distance(values, rows, columns, alpha)
    edge = sigma * sqrt(tracy_widom_threshold(rows, columns, alpha))
    fits = apart is not None and apart <= distance
    return {
        "outliers": sum(value > edge for value in values) if fits else None,
        "edge": edge,
        "sigma_bulk": sigma,
        "bulk_fit_ks": apart,
        "verdict": "bulk_MP" if fits else "bulk_not_MP",
    }


SEED = 0
_FEWEST = 2  # resamples of a fit whose interval nobody sees


def heavy_tail(values: Sequence[float], limits: Mapping[str, Any]) -> dict[str, Any]:
    """Fit the squared singular values; alpha is null, with a reason, where nothing was fitted.

    `weightwatcher_label` is what Martin & Mahoney's tool would call it, not a judgement of ours.
    """
    largest = max(values, default=0.0)
    squares = [(value / largest) ** 2 for value in values] if largest > 0 else []
    fit = power_law(squares, seed=SEED, resamples=_FEWEST)
    if fit is None:
        return {"alpha": None, "why": "fewer than four distinct eigenvalues"}
    told: dict[str, Any] = {
        "x_min": fit.x_min * largest**2,
        "tail": fit.tail,
        "distance": fit.distance,
        "lognormal_ratio": fit.lognormal_ratio,
        "lognormal_p": fit.lognormal_p,
    }
    if why := _doubt(fit, limits):
        return {"alpha": None, "why": why, **told}
    sure = power_law(squares, seed=SEED) or fit
    return {
        "alpha": fit.alpha,
        "low": sure.low,
        "high": sure.high,
        "standard_error": fit.standard_error,
        "weightwatcher_label": _label(fit.alpha, limits),
        **told,
    }


def _doubt(fit: PowerLaw, limits: Mapping[str, Any]) -> str:
    if fit.tail < limits["tail_least"]:
        return f"{fit.tail} eigenvalues in the tail, fewer than {limits['tail_least']}"
    if fit.distance > limits["tail_distance"]:
        return f"distance {fit.distance:.3g} from a power law, above {limits['tail_distance']:g}"
    if fit.lognormal_ratio < 0 and fit.lognormal_p < limits["lognormal_p"]:
        return f"a lognormal fits more closely (p = {fit.lognormal_p:.2g})"
    return ""


def _label(alpha: float, limits: Mapping[str, Any]) -> str:
    if alpha < limits["weightwatcher_low"]:
        return "over-trained"
    return "under-trained" if alpha > limits["weightwatcher_high"] else "none"


# A merged adapter is of low rank, plus what rounding to storage added; everything it was not meant
# for stays bit-identical (Hu et al. 2021, "LoRA").


class Verdict(NamedTuple):
    """The word, the ranks by role behind it, and what speaks against it."""

    word: str
    ranks: dict[str, list[int]]
    against: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"verdict": self.word, "rank_by_role": self.ranks, "against": self.against}


def merged_lora(
    diff: Diff, matrices: list[Changed], ranks: dict[str, int | None], fraction: float
) -> Verdict:
    """Weigh it: equal and small ranks within each role, and nothing else changed at all."""
    against = [*_others(diff, matrices), *_too_high(matrices, ranks, fraction)]
    by_role: dict[str, set[int]] = {}
    for each in matrices:
        by_role.setdefault(role(each.name), set()).add(ranks[each.name] or 0)
    uneven = [f"{name}: {sorted(found)}" for name, found in by_role.items() if len(found) > 1]
    if uneven:
        against.append(f"ranks differ within a role: {'; '.join(uneven)}")
    word = "not_consistent" if against else "consistent"
    return Verdict(word, {name: sorted(found) for name, found in by_role.items()}, against)


def _others(diff: Diff, matrices: list[Changed]) -> list[str]:
    """Count tensors beside the changed matrices that are not bit-identical."""
    known = {id(each.delta) for each in matrices}
    same = {"identical", "tied", "paired"}
    others = sum(delta.kind not in same and id(delta) not in known for delta in diff.deltas)
    return [f"{others} tensors that are no matrices changed too"] if others else []


def _too_high(matrices: list[Changed], ranks: dict[str, int | None], fraction: float) -> list[str]:
    """Find ranks that are unknown, zero, or above a fraction of the smaller side."""
    unknown = sum(ranks[each.name] is None for each in matrices)
    nothing = sum(ranks[each.name] == 0 for each in matrices)
    high = sum(
        (ranks[each.name] or 0) > fraction * min(each.change.rows, each.change.columns)
        for each in matrices
    )
    diffuse = sum(_is_diffuse(each) for each in matrices)
    return [
        text
        for count, text in (
            (unknown, f"{unknown} matrices are too large for their rank to be known"),
            (nothing, f"{nothing} matrices have no direction above their noise"),
            (high, f"{high} matrices have a rank above {fraction:g} of their smaller side"),
            (diffuse, f"in {diffuse} matrices the rest is more than rounding explains"),
        )
        if count
    ]


def _is_diffuse(each: Changed) -> bool:
    """Is there a bulk of change that storage does not explain? Blocks of a quantised one do."""
    right = each.delta.pair.right
    return each.change.noise_source == "median" and not (right and right.stored)
