"""What changed, in one sentence, a few figures and a tag."""

from __future__ import annotations

from typing import Any

from ..diffs import Diff
from ..measure.scan import Scan
from ..records import Envelope, Evidence, Finding, Missing, Policy
from . import analysis
from .change import Change, take_in
from .energy import (
    Moved,
    concentration,
    depth_profile,
    median_relative_l2,
    moved_parameters,
    relative_l2,
    share_by_role,
)
from .patterns import TAGS, is_rounding_only, patterns
from .roles import layer
from .sentence import sentence

NAME = "change_summary"
THRESHOLDS = {"sparse_fraction": 0.01, "full_fraction": 0.9, "scale_tolerance": 1e-3}

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
    "patterns": "the tags that explain every difference, the primary one first",
    "evidence": "the numbers behind each tag",
    "sentence": "all of the above",
}
_COUNTS = ("layers_changed", "layers", "frozen", "rounding_only")


@analysis(needs=[Scan])
def change_summary(diff: Diff, evidence: Evidence, policy: Policy) -> Envelope:  # noqa: ARG001
    """What changed: how many layers, how far, where, and what kind of change it was."""
    thresholds = {
        name: policy.threshold(NAME, name, default) for name, default in THRESHOLDS.items()
    }
    if not diff.deltas:
        return _silent("not_applicable", "tensors", "neither model holds any")
    if any(delta.kind == "paired" for delta in diff.deltas):
        return _silent("not_enough_information", "tensor values", "only headers were read")
    moved = moved_parameters(diff)
    change = take_in(diff, moved, thresholds)
    fields = _fields(diff, change, moved)
    missing = tuple(_missing(fields, moved))
    return Envelope(
        NAME,
        "partial" if missing else "ok",
        fields,
        basis=_BASIS,
        uncertainty=dict.fromkeys(_COUNTS, "exact"),
        missing=missing,
        assumptions=(f"tags tested: {', '.join(TAGS)}", *_assumptions(change)),
        policy=_policy(thresholds, policy),
        method=f"{NAME}/1",
        findings=tuple(_findings(change)),
    )


def _fields(diff: Diff, change: Change, moved: list[Moved]) -> dict[str, Any]:
    tags = patterns(change)
    return {
        "sentence": sentence(change, tags),
        "layers_changed": len({layer(delta.name) for delta in change.differing}),
        "layers": len({layer(delta.name) for delta in change.deltas}),
        "magnitude": relative_l2(moved),
        "median_relative_l2": median_relative_l2(moved),
        "patterns": list(tags),
        "evidence": tags,
        "frozen": sum(delta.kind == "identical" for delta in change.deltas),
        "rounding_only": sum(is_rounding_only(each.scan) for each in change.measured),
        "share_by_role": share_by_role(moved),
        "depth_profile": depth_profile(diff, moved),
        "concentration": concentration(moved),
    }


def _missing(fields: dict[str, Any], moved: list[Moved]) -> list[Missing]:
    energy = any(each.scan.square_sum for each in moved)
    why = {
        "magnitude": "what moved is all zeros on the left, or too large for a float64 to square",
        "share_by_role": "no finite value of a parameter moved, so there is nothing to share",
    }
    why["median_relative_l2"] = why["magnitude"]
    why["concentration"] = why["share_by_role"] if not energy else why["magnitude"]
    needs = "parameters with finite norms" if energy else "parameters whose values moved"
    return [
        Missing(field, needs, why.get(field, why["magnitude"]))
        for field, value in fields.items()
        if value is None
    ]


def _assumptions(change: Change) -> list[str]:
    uncompared = sum(delta.kind == "uncompared" for delta in change.deltas)
    dropped = sum(each.scan.count - each.scan.pairs for each in change.measured)
    lines = []
    if uncompared:
        lines.append(f"{uncompared} tensors could not be compared and are in no figure")
    if dropped:
        lines.append(f"{dropped} elements not finite on both sides are left out of the norms")
    return lines


def _policy(thresholds: dict[str, float], policy: Policy) -> dict[str, Any]:
    named = policy.thresholds.get(NAME, {})
    return {
        name: {"value": value, "source": "user" if name in named else "default"}
        for name, value in thresholds.items()
    }


def _findings(change: Change) -> list[Finding]:
    return [
        Finding(NAME, name, f"{number} NaN/Inf values more than before", {"appeared": number})
        for name, number in change.new_nonfinite.items()
    ]


def _silent(status: Any, needs: str, why: str) -> Envelope:
    fields = dict.fromkeys(_BASIS)
    missing = tuple(Missing(field, needs, why) for field in fields)
    return Envelope(NAME, status, fields, missing=missing, method=f"{NAME}/1")
