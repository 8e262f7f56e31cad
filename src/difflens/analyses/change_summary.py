"""What changed, in one sentence, a few figures and a tag."""

from __future__ import annotations

from typing import Any

from ..answers import Answer, Status
from ..diffs import Diff
from ..evidences import Evidence
from ..measure.scan import Scan
from ..records import Envelope, Policy, Threshold
from . import analyse, analysis
from .anatomy.roles import layer
from .changes.change import Change, Numbers, take_in
from .changes.depth import depth_correlation
from .changes.energy import (
    Moved,
    concentration,
    depth_profile,
    median_relative_l2,
    moved_parameters,
    relative_l2,
    share_by_role,
)
from .changes.patterns import patterns, tested
from .changes.rounding import is_rounding_only
from .changes.sentence import sentence

NAME = "change_summary"
THRESHOLDS = {
    "sparse_fraction": Threshold(0.01, "below this part of changed elements a delta is sparse"),
    "full_fraction": Threshold(0.9, "from this part of moved parameters on it is a full fine-tune"),
    "scale_tolerance": Threshold(1e-3, "how far a uniform scale may miss, relative to the change"),
    "permuted_gain": Threshold(0.6, "part of the distance that an alignment may leave to permuted"),
    "quantised_db": Threshold(6.0, "signal-to-noise that quantised weights have at least, in dB"),
    "row_fraction": Threshold(0.05, "up to this part of its rows a matrix was edited by row"),
    "edited_matrices": Threshold(6, "changes of rank one in more matrices are no edit of rows"),
    "rank_fraction": Threshold(0.125, "rank over the smaller side up to which it is low"),
    "rank_energy": Threshold(0.9, "part of ‖d‖² a low rank holds over noise that is no rounding"),
}

_OVER_MOVED = "over float parameters that are not bit-identical (norms of the rest are not needed)"
_BASIS = {
    "layers_changed": "layers (names without their last part) with a tensor that differs",
    "layers": "layers of both models together",
    "frozen": "tensors whose bytes are the same on both sides",
    "rounding_only": "differing tensors of which no element moved by more than half a unit in the"
    " last place of the coarser dtype",
    "magnitude": f"sqrt(sum ‖d‖²) / sqrt(sum ‖left‖²) {_OVER_MOVED}",
    "median_relative_l2": f"median of ‖d‖ / ‖left‖ {_OVER_MOVED}",
    "share_by_role": f"part of sum ‖d‖² {_OVER_MOVED}; roles are told by name",
    "depth_profile": f"relative L2 and part of sum ‖d‖² by block, {_OVER_MOVED}",
    "concentration": f"of ‖d‖² by tensor, {_OVER_MOVED}",
    "depth_correlation": "Kendall's tau-b of relative change with depth, blocks of one stack",
    "patterns": "the primary tag: the first of those tested that explains every difference",
    "also": "the other tags that explain every difference",
    "evidence": "the numbers behind each tag",
    "sentence": "all of the above",
}
_COUNTS = ("layers_changed", "layers", "frozen", "rounding_only")


@analysis(needs=[Scan], thresholds=THRESHOLDS)
def change_summary(diff: Diff, evidence: Evidence, policy: Policy) -> Envelope:
    """What changed: how many layers, how far, where, and what kind of change it was."""
    answer = Answer(NAME, policy, THRESHOLDS)
    if not diff.deltas:
        return _silent(answer, "not_applicable", "tensors", "neither model holds any")
    if not diff.has_values:
        why = "only headers were read"
        return _silent(answer, "not_enough_information", "tensor values", why)
    moved = moved_parameters(diff)
    thresholds = {name: answer[name] for name in THRESHOLDS}
    change = take_in(
        diff, moved, thresholds, evidence, lambda name: analyse(name, diff, evidence, policy)
    )
    tags = patterns(change)
    fields = _fields(diff, change, moved, tags)
    reasons = _reasons(moved)
    for name, value in fields.items():
        needs, why = reasons.get(name, reasons["magnitude"])
        exact = "exact" if name in _COUNTS else None
        answer.either(name, value, basis=_BASIS[name], uncertainty=exact, needs=needs, why=why)
    for line in (*tested(change, tags), *_assumptions(change)):
        answer.assume(line)
    for name, number in change.new_nonfinite.items():
        text = f"{number} NaN/Inf values more than before"
        answer.find(name, text, {"appeared": number}, "critical")
    for name in change.new_zero:
        answer.find(name, "all zeros now, and not before", {"zeros": 1.0}, "high")
    return answer.envelope()


def _fields(
    diff: Diff, change: Change, moved: list[Moved], tags: dict[str, Numbers]
) -> dict[str, Any]:
    profile = depth_profile(diff, moved)
    return {
        "sentence": sentence(change, tags),
        "layers_changed": len({layer(delta.name) for delta in change.differing}),
        "layers": len({layer(delta.name) for delta in change.deltas}),
        "magnitude": relative_l2(moved),
        "median_relative_l2": median_relative_l2(moved),
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


def _reasons(moved: list[Moved]) -> dict[str, tuple[str, str]]:
    energy = any(each.scan.square_sum for each in moved)
    needs = "parameters with finite norms" if energy else "parameters whose values moved"
    norms = "what moved is all zeros on the left, or too large for a float64 to square"
    share = "no finite value of a parameter moved, so there is nothing to share"
    return {
        "depth_correlation": ("three blocks that did not move alike", "depth has no order to tell"),
        "magnitude": (needs, norms),
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


def _silent(answer: Answer, status: Status, needs: str, why: str) -> Envelope:
    for field in _BASIS:
        answer.lack(field, needs=needs, why=why)
    return answer.envelope(status)
