"""What changed, in one sentence, a few figures and a tag."""

from __future__ import annotations

from collections import Counter
from typing import Any

from difflens.core.policy import Threshold
from difflens.measure.resources import one_thread_each
from difflens.models.anatomy.roles import layer
from difflens.stats.kendall import kendall

from ..answer import Answer
from ..diff import Diff
from ..evidence.records import Evidence
from ..methods.changes.change import Change, Numbers, take_in
from ..methods.changes.energy import (
    KEPT,
    Moved,
    concentration,
    depth_profile,
    is_comparable,
    is_float,
    is_rounding_only,
    median_relative_l2,
    moved_parameters,
    relative_l2,
    share_by_role,
    whole_relative_l2,
)
from ..methods.changes.explain import explain
from ..methods.changes.groups import Summary, summarise
from ..methods.changes.patterns import patterns, tested
from ..methods.changes.sentence import sentence
from . import analysis

_OVER_MOVED = "over float parameters that are not bit-identical (norms of the rest are not needed)"
_COUNTS = ("layers_changed", "layers", "frozen", "rounding_only")


@analysis(
    needs="values",
    thresholds={
        "sparse_fraction": Threshold(0.25, "below this part of changed elements a delta is sparse"),
        "full_fraction": Threshold(
            0.9, "from this part of moved parameters on it is a full fine-tune"
        ),
        "scale_tolerance": Threshold(
            1e-3, "how far a uniform scale may miss, relative to the change"
        ),
        "permuted_gain": Threshold(
            0.6, "part of the distance that an alignment may leave to permuted"
        ),
        "row_fraction": Threshold(0.25, "up to this part of its rows a matrix was edited by row"),
        "edited_matrices": Threshold(6, "changes of rank one in more matrices are no edit of rows"),
        "rank_fraction": Threshold(
            0.5,
            "part of the numbers that moved that the factors of a low rank hold at most,"
            " where more than rounding is left, or no gap follows it",
        ),
        "rank_energy": Threshold(
            0.9, "part of ‖d‖² a low rank holds over noise that is no rounding"
        ),
    },
    fields={
        "sentence": "all of the above",
        "changes": "what was done to the left model to make the right one, main thing first;"
        " `share` is its part of sum ‖d‖²",
        "layers_changed": "layers (names without their last part) with a tensor that differs",
        "layers": "layers of both models together",
        "magnitude": f"sqrt(sum ‖d‖²) / sqrt(sum ‖left‖²) {_OVER_MOVED}",
        "patterns": "the primary tag: the first of those tested that explains every difference",
        "unexplained": "part of sum ‖d‖² that no record of `changes` explains",
        "magnitude_over": "what `magnitude` and `median_relative_l2` are over: the float parameters"
        " that moved, of all that both models have in one shape",
        "whole_magnitude": "sqrt(sum ‖d‖²) / sqrt(sum ‖left‖²) over all float parameters of both"
        " models; norms of bit-identical tensors from samples of 4,096 elements",
        "also": "the other tags that explain every difference",
        "median_relative_l2": f"median of ‖d‖ / ‖left‖ {_OVER_MOVED}",
        "frozen": "tensors whose bytes are the same on both sides",
        "rounding_only": "differing tensors of which no element moved by more than half a unit in"
        " the last place of the coarser dtype",
        "share_by_role": f"part of sum ‖d‖² {_OVER_MOVED}; roles are told by name",
        "depth_correlation": "Kendall's tau-b of relative change with depth, blocks of one stack",
        "concentration": f"of ‖d‖² by tensor, {_OVER_MOVED}",
        "depth_profile": f"relative L2 and part of sum ‖d‖² by block, {_OVER_MOVED}",
        "evidence": "the numbers behind each tag",
    },
)
def change_summary(diff: Diff, evidence: Evidence, answer: Answer) -> None:
    """What changed: how many layers, how far, where, and what kind of change it was."""
    moved = moved_parameters(diff)
    change = take_in(diff, evidence, answer, moved)
    with one_thread_each():  # of small matrices: several would wait for each other
        summary = summarise(change, explain(change))
    tags = patterns(change, summary)
    fields = _fields(diff, change, moved, summary, tags)
    reasons = _reasons(diff, moved)
    for name, value in fields.items():
        needs, why = reasons.get(name, reasons["magnitude"])
        exact = "exact" if name in _COUNTS else None
        answer.either(name, value, uncertainty=exact, needs=needs, why=why)
    for line in (*tested(change, summary), *_assumptions(change)):
        answer.assume(line)
    for name, number in change.new_nonfinite.items():
        text = f"{number} NaN/Inf values more than before"
        answer.find(name, text, {"appeared": number}, "critical")
    for name in change.new_zero:
        answer.find(name, "all zeros now, and not before", {"zeros": 1.0}, "high")


def _fields(
    diff: Diff, change: Change, moved: list[Moved], summary: Summary, tags: dict[str, Numbers]
) -> dict[str, Any]:
    profile = depth_profile(diff, moved)
    compared = is_comparable(diff)
    return {
        "sentence": sentence(change, summary),
        "changes": [record.as_dict() for record in summary.records],
        "unexplained": summary.unexplained,
        "layers_changed": len({layer(delta.name) for delta in change.differing}),
        "layers": len({layer(delta.name) for delta in change.deltas}),
        "magnitude": relative_l2(moved) if compared else None,
        "median_relative_l2": median_relative_l2(moved) if compared else None,
        "magnitude_over": _counts(diff, moved) if compared else None,
        "whole_magnitude": whole_relative_l2(diff, moved) if compared else None,
        "patterns": list(tags)[:1],
        "also": list(tags)[1:],
        "evidence": tags,
        "frozen": sum(delta.kind == "identical" for delta in change.deltas),
        "rounding_only": sum(is_rounding_only(each.scan) for each in change.measured),
        "share_by_role": share_by_role(moved),
        "depth_profile": profile,
        "depth_correlation": depth_correlation(profile),
        "concentration": concentration(moved),
    }


def _counts(diff: Diff, moved: list[Moved]) -> dict[str, int]:
    kept = [delta for delta in diff.deltas if delta.kind in KEPT and is_float(delta)]
    return {
        "tensors": len(moved),
        "of_tensors": len(kept),
        "parameters": sum(each.scan.count for each in moved),
        "of_parameters": sum(delta.pair.left.count for delta in kept if delta.pair.left),
    }


def _reasons(diff: Diff, moved: list[Moved]) -> dict[str, tuple[str, str]]:
    energy = any(each.scan.square_sum for each in moved)
    needs = "parameters with finite norms" if energy else "parameters whose values moved"
    norms = "what moved is all zeros on the left, or too large for a float64 to square"
    if not is_comparable(diff):
        norms = "no parameter is in both models in one shape"
    share = "no finite value of a parameter moved, so there is nothing to share"
    return {
        "depth_correlation": ("three blocks that did not move alike", "depth has no order to tell"),
        "magnitude": (needs, norms),
        "unexplained": ("values that differ by a finite distance", "no distance exists"),
        "share_by_role": (needs, share),
        "concentration": (needs, norms if energy else share),
    }


def _assumptions(change: Change) -> list[str]:
    uncompared = sum(delta.kind == "uncompared" for delta in change.deltas)
    dropped = sum(each.scan.count - each.scan.pairs for each in change.measured)
    lines = []
    if uncompared:
        lines.append(f"{uncompared} tensors could not be compared and are in no figure")
    if dropped:
        lines.append(f"{dropped} elements not finite on both sides are left out of the norms")
    return lines


def depth_correlation(profile: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Correlate relative change with depth by Kendall's tau-b (Kendall 1945).

    Over the blocks of the longest stack; p is exact where no two blocks moved alike.
    """
    stacks = Counter(_stack(each) for each in profile)
    longest = max(stacks, key=lambda stack: (stacks[stack], stack), default="")
    blocks = [each["relative_l2"] for each in profile if _stack(each) == longest]
    known = [(place, value) for place, value in enumerate(blocks) if value is not None]
    if len(known) < 3 or len({value for _, value in known}) < 2:
        return None
    values = [value for _, value in known]
    found = kendall(values)
    if found is None:
        return None
    tau, p, method = found
    return {"tau": tau, "p": p, "n": len(known), "p_method": method}


def _stack(entry: dict[str, Any]) -> str:
    return str(entry["block"]).rpartition(".")[0]
