"""In how many directions each matrix changed, and what the spectra of both sides say."""

from __future__ import annotations

from math import acos, degrees, sqrt
from statistics import median
from typing import Any

from difflens.core.policy import Threshold
from difflens.measure.gram import DIRECTIONS
from difflens.measure.ranks import MARGIN
from difflens.measure.spectrum import DeltaSpectrum, SideSpectrum

from ..answer import Answer
from ..diff import Diff
from ..evidence.records import Evidence
from ..methods.changes.energy import Moved, is_comparable, moved_parameters, relative_l2, total
from ..methods.spectra import (
    SEED,
    Changed,
    Verdict,
    changed_matrices,
    heavy_tail,
    merged_lora,
    outliers,
    ranks,
)
from . import analysis

DRAWN = 12  # spectra for charts


@analysis(
    needs="values",
    measures=(SideSpectrum, DeltaSpectrum),
    thresholds={
        "noise_margin": Threshold(
            MARGIN, "how far above the modelled noise its edge is put, relative"
        ),
        "low_rank_fraction": Threshold(
            0.125, "rank over smaller side up to which a delta is low-rank"
        ),
        "intruder_directions": Threshold(10, "leading directions looked at, at most 10"),
        "intruder_cosine": Threshold(
            0.5, "a direction below this |cosine| to all of left's intrudes"
        ),
        "outlier_alpha": Threshold(
            0.05, "how often pure noise may exceed the Marchenko-Pastur edge"
        ),
        "bulk_distance": Threshold(
            0.1, "KS distance above which a bulk is no Marchenko-Pastur bulk"
        ),
        "tail_matrices": Threshold(12, "matrices, those that moved most, whose tails are fitted"),
        "tail_least": Threshold(50, "eigenvalues a fitted tail must have for its alpha to be told"),
        "tail_distance": Threshold(0.1, "KS distance above which no power law fits"),
        "lognormal_p": Threshold(0.1, "p below which a lognormal is preferred to the power law"),
        "weightwatcher_low": Threshold(2.0, "alpha below which WeightWatcher says over-trained"),
        "weightwatcher_high": Threshold(6.0, "alpha above which WeightWatcher says under-trained"),
    },
    fields={
        "matrices_changed": "changed float tensors with 16 rows and columns at least",
        "rank_above_noise": "singular values of d above what rounding (or the median one) explains",
        "stable_rank": "median over changed matrices of ‖d‖² / s₁²",
        "merged_lora_evidence": "ranks equal and small within each role, nothing else changed",
        "effective_rank": "median over changed matrices of exp(-sum p ln p), p = s / sum s, s of d",
        "relative_l2": "sqrt(sum ‖d‖²) / sqrt(sum ‖left‖²) over float parameters that moved",
        "cosine": "⟨left, right⟩ / (‖left‖ ‖right‖) over float parameters that moved",
        "intruders": "leading left singular vectors of right that resemble none of left's",
        "outliers": "singular values above the Tracy-Widom edge of the bulk, where there is a bulk",
        "alpha": "median exponent of the power-law tails of the eigenvalues that were fitted",
        "tensors_skipped": "changed float parameters that are no such matrix",
        "merged_lora": "ranks by role, and what speaks against a merged LoRA",
        "matrices": "every changed matrix, the one that moved most first",
        "spectra": "largest singular values of d of the matrices that moved most",
    },
)
def spectral_analysis(diff: Diff, evidence: Evidence, answer: Answer) -> None:  # noqa: ARG001
    """In how many directions each matrix changed: ranks, noise, intruders, outliers, tails."""
    moved = moved_parameters(diff)
    matrices = changed_matrices(diff, moved)
    limits = answer.limits
    rows = [_row(each, place, limits) for place, each in enumerate(matrices)]
    _say_distance(answer, diff, moved, matrices)
    _say_ranks(answer, diff, matrices, rows)
    _say_sides(answer, rows)
    answer.say("matrices", rows)
    answer.say("spectra", [_spectrum(each) for each in matrices[:DRAWN]])
    _assume(answer, matrices)
    answer.seeded(SEED)


def _row(matrix: Changed, place: int, limits: dict[str, Any]) -> dict[str, Any]:
    """Tell all there is about one matrix."""
    row = ranks(matrix, matrix.rank_above(limits["noise_margin"], MARGIN))
    row["intruders"] = intruders(matrix, limits["intruder_directions"], limits["intruder_cosine"])
    for side in ("left", "right"):
        row[side] = _side(matrix, side, limits, tail=place < limits["tail_matrices"])
    return row


def _side(
    matrix: Changed, side: str, limits: dict[str, Any], *, tail: bool
) -> dict[str, Any] | None:
    sides = matrix.sides
    if sides is None:
        return None
    told: dict[str, Any] = {
        "stable_rank": getattr(sides, f"{side}_stable_rank"),
        "effective_rank": getattr(sides, f"{side}_effective_rank"),
        "marchenko_pastur": None,
        "heavy_tail": None,
    }
    values = getattr(sides, f"{side}_values")
    if sides.is_full(side) and values[0] > 0:
        noise = limits["outlier_alpha"], limits["bulk_distance"]
        told["marchenko_pastur"] = outliers(values, sides.rows, sides.columns, *noise)
        told["heavy_tail"] = heavy_tail(values, limits) if tail else None
    return told


def _say_distance(answer: Answer, diff: Diff, moved: list[Moved], matrices: list[Changed]) -> None:
    norms = "what moved has norms that are finite and not zero"
    why = "what moved is all zeros on a side or too large to square, or nothing was compared"
    distance = relative_l2(moved) if is_comparable(diff) else None
    values = {"relative_l2": distance, "cosine": _cosine(moved)}
    for name, value in values.items():
        answer.either(name, value, needs=norms, why=why)
    counts = {"matrices_changed": len(matrices), "tensors_skipped": len(moved) - len(matrices)}
    for name, count in counts.items():
        answer.say(name, count, uncertainty="exact")


def _cosine(moved: list[Moved]) -> float | None:
    left = total(each.scan.left_square_sum for each in moved)
    right = total(each.scan.right_square_sum for each in moved)
    size = sqrt(left) * sqrt(right)
    if not 0 < size < float("inf"):
        return None
    return max(-1.0, min(1.0, total(each.scan.dot for each in moved) / size))


def _say_ranks(
    answer: Answer, diff: Diff, matrices: list[Changed], rows: list[dict[str, Any]]
) -> None:
    needs = "changed float matrices of at least 16 by 16"
    why = "none is known: no such matrix changed, or all are too large for a whole spectrum"
    for name in ("effective_rank", "stable_rank", "rank_above_noise"):
        known = [row[name] for row in rows if row[name] is not None]
        value = median(known) if known else None
        answer.either(name, value, needs=needs, why=why)
    if not matrices:
        for name in ("merged_lora_evidence", "merged_lora"):
            answer.lack(name, needs=needs, why="no such matrix changed")
        return
    found = {row["name"]: row["rank_above_noise"] for row in rows}
    verdict = merged_lora(diff, matrices, found, answer["low_rank_fraction"])
    answer.say("merged_lora_evidence", verdict.word)
    answer.say("merged_lora", verdict.to_dict())
    _find_lora(answer, verdict, len(matrices))


def _find_lora(answer: Answer, verdict: Verdict, matrices: int) -> None:
    if verdict.word == "consistent":
        answer.assume(
            "low rank is evidence of a merged LoRA, not proof: a short full fine-tune can be"
        )
        highest = max(rank for found in verdict.ranks.values() for rank in found)
        text = f"{matrices} matrices changed by rank {highest} at most, like a merged LoRA"
        answer.find("", text, {"rank": highest, "matrices": matrices})


def _say_sides(answer: Answer, rows: list[dict[str, Any]]) -> None:
    needs = "changed float matrices of at least 16 by 16, with a whole spectrum"
    told = [(row["name"], row["intruders"]) for row in rows if row["intruders"]]
    value = {
        "count": sum(each["count"] for _, each in told),
        "matrices": sum(each["count"] > 0 for _, each in told),
        "looked_at": len(told),
    }
    why = "no leading directions were taken of any matrix"
    answer.either("intruders", value if told else None, needs=needs, why=why)
    for name, each in told:
        if each["count"]:
            _find_intruders(answer, name, each)
    sides = {side: [row[side] for row in rows if row[side]] for side in ("left", "right")}
    bulks = {side: _bulks(found) for side, found in sides.items()}
    known = any(each["bulk_MP"] for each in bulks.values())
    why = "no bulk follows the Marchenko-Pastur law, as in most trained matrices"
    answer.either(
        "outliers", bulks if known else None, needs="a matrix with a bulk of noise", why=why
    )
    tails = {side: _alphas(found) for side, found in sides.items()}
    known = any(each["fitted"] for each in tails.values())
    why = "no tail was long enough and close enough to a power law; `matrices` says why for each"
    answer.either("alpha", tails if known else None, needs="a matrix with a heavy tail", why=why)


def _find_intruders(answer: Answer, name: str, told: dict[str, Any]) -> None:
    text = (
        f"{told['count']} of {told['directions']} leading directions resemble none of left's"
        " (associated with forgetting in Shuttleworth et al. 2024)"
    )
    least = min(told["max_cosines"])
    numbers = {"intruders": told["count"], "max_cosine": least, "share": told["share"]}
    answer.find(name, text, numbers, "low")


def _bulks(found: list[dict[str, Any]]) -> dict[str, int]:
    told = [each["marchenko_pastur"] for each in found if each["marchenko_pastur"]]
    fitting = [each for each in told if each["verdict"] == "bulk_MP"]
    return {
        "bulk_MP": len(fitting),
        "bulk_not_MP": len(told) - len(fitting),
        "outliers": sum(each["outliers"] for each in fitting),
    }


def _alphas(found: list[dict[str, Any]]) -> dict[str, Any]:
    fits = [each["heavy_tail"] for each in found if each["heavy_tail"]]
    known = [fit["alpha"] for fit in fits if fit["alpha"] is not None]
    return {"median": median(known) if known else None, "fitted": len(known), "tried": len(fits)}


def _spectrum(matrix: Changed) -> dict[str, Any]:
    spectrum = matrix.change
    return {
        "name": matrix.name,
        "singular_values": list(spectrum.top),
        "noise_edge": spectrum.noise_edge,
    }


def _assume(answer: Answer, matrices: list[Changed]) -> None:
    answer.assume(
        "a convolution is seen as [out, in x k x k]; of a stack of experts the one that"
        " moved most is told"
    )
    answer.assume("alpha depends much on how it is fitted, and says nothing of quality on its own")
    large = sum(not each.change.is_full for each in matrices)
    if large:
        answer.assume(
            f"{large} matrices have more than 4096 rows and columns: their 64 largest"
            " singular values come from a randomised projection, whole spectra are"
            " unknown"
        )
    lost = sum(each.change.dropped for each in matrices)
    if lost:
        answer.assume(f"{lost} elements not finite on both sides count as not moved")


# Shuttleworth et al. (2024), "LoRA vs Full Fine-tuning: An Illusion of Equivalence".


def intruders(matrix: Changed, directions: int, limit: float) -> dict[str, Any] | None:
    """Count directions whose largest |cosine| to any of the left's is below the limit.

    `share` is their part of the sum of all singular values; None if vectors were not taken.
    """
    sides = matrix.sides
    if sides is None or sides.alignment is None:
        return None
    cosines = sides.alignment.cosines[: min(directions, DIRECTIONS)]
    found = [at for at, cosine in enumerate(cosines) if cosine < limit]
    total = sum(sides.right_values)
    return {
        "count": len(found),
        "directions": len(cosines),
        "max_cosines": list(cosines),
        "share": sum(sides.right_values[at] for at in found) / total if total else None,
        "subspace_angle_degrees": degrees(acos(sides.alignment.subspace_cosine)),
    }
