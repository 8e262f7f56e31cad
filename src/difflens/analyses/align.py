"""Are the units of the right model those of the left one in another order?"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite, sqrt
from typing import Any

from ..answers import Answer, Status
from ..diffs import Diff
from ..evidences import Evidence
from ..measure.scan import Scan
from ..records import Envelope, Policy, Threshold
from . import analysis
from .anatomy.network import network
from .symmetry.descent import COLUMNS, FEW
from .symmetry.parts import SEED, Limits, Part, changed_components, parts

NAME = "align"
THRESHOLDS = {
    "max_units": Threshold(4096, "groups of more units are aligned only where no search is needed"),
    "max_elements": Threshold(1 << 27, "layers that hold more numbers together are not loaded"),
    "restarts": Threshold(3, "further starts from a random order where groups depend on another"),
    "permuted_gain": Threshold(0.6, "below this part of its distance before, a model was permuted"),
}
_BASIS = {
    "relative_l2_before": "sqrt(sum ‖left - right‖² / sum ‖left‖²) over the tensors of the groups",
    "relative_l2_after": "the same with the right model's units in the order found",
    "objective_gain": "(sum <left, P right> - sum <left, right>) / (‖left‖ ‖right‖)",
    "fixed_points": "part of the units that stay in their place",
    "units": "units of the groups that were aligned",
    "groups": "one entry a group, in the order of the model",
    "skipped": "groups that were not aligned, and why",
}


@analysis(needs=[Scan], thresholds=THRESHOLDS)
def align(diff: Diff, evidence: Evidence, policy: Policy) -> Envelope:
    """Whether units were reordered: hidden units, heads, channels, recurrent units."""
    answer = Answer(NAME, policy, THRESHOLDS)
    answer.seeded(SEED)
    if not diff.has_values or not diff.deltas:
        status: Status = "not_enough_information" if diff.deltas else "not_applicable"
        return _silent(answer, status, "tensor values", "no value was read")
    limits = Limits(answer["max_units"], answer["max_elements"], answer["restarts"])
    found = list(parts(diff, changed_components(diff, evidence), limits))
    if not found:
        needs = "feed-forward, attention, recurrent or chained layers in one shape on both sides"
        why = "no tensor that changed belongs to a group of units that may change places"
        return _silent(answer, "not_applicable", needs, why)
    _say(answer, found)
    answer.assume("units are told by names and shapes; orders inside a head, and of the residual"
                  " stream, are not tried")  # fmt: skip
    if any(len(part.groups) > 1 for part in found):
        answer.assume("groups that share a tensor are solved in turn: a local optimum is possible")
    answer.assume(
        f"a unit is compared by at most {COLUMNS} of its weights in a tensor, {FEW} where units"
        " are many"
    )
    if not (network(diff, evidence, "left").heads):
        answer.assume("heads were not tried: their number is unknown (--config-left)")
    return answer.envelope()


def _say(answer: Answer, found: list[Part]) -> None:
    done = [part for part in found if part.aligned]
    entries = [entry for part in done for entry in _entries(part)]
    left, right = (
        sum(getattr(part.aligned, side) for part in done) for side in ("left_norm", "right_norm")
    )
    before, after = (
        sum(getattr(part.aligned, side) for part in done) for side in ("before", "after")
    )
    units = sum(entry["units"] for entry in entries)
    moved = sum(entry["units"] - entry["fixed"] for entry in entries)
    gain = (before - after) / 2 / sqrt(left * right) if left > 0 and right > 0 else None
    values = {
        "relative_l2_before": _relative(before, left),
        "relative_l2_after": _relative(after, left),
        "objective_gain": gain if gain is not None and isfinite(gain) else None,
        "fixed_points": (units - moved) / units if units else None,
        "units": units,
        "groups": entries,
        "skipped": [
            {"group": group.name, "kind": group.kind, "units": group.units, "why": part.why}
            for part in found if not part.aligned for group in part.groups
        ],
    }  # fmt: skip
    for field, value in values.items():
        needs = "a higher `max_units` or `max_elements`" if not done else "weights that are not 0"
        why = "no group was aligned, see `skipped`" if not done else "the left side is all zeros"
        answer.either(field, value, basis=_BASIS[field], needs=needs, why=why)
    if moved and after <= (answer["permuted_gain"] ** 2) * before:
        _found(answer, values, moved)


def _found(answer: Answer, values: dict[str, Any], moved: int) -> None:
    before, after = values["relative_l2_before"], values["relative_l2_after"]
    if before is None or after is None:
        return
    numbers = {"relative_l2_before": before, "relative_l2_after": after, "moved": float(moved)}
    text = f"{moved} units lie in another order: relative L2 {before:.3g}, in order {after:.3g}"
    answer.find("", text, numbers, "medium")


def _entries(part: Part) -> Iterator[dict[str, Any]]:
    import numpy as np

    aligned = part.aligned
    if aligned is None:
        return
    for group in part.groups:
        order = aligned.orders[group.name][group.units]
        yield {
            "group": group.name,
            "kind": group.kind,
            "units": group.units,
            "fixed": int((order == np.arange(group.units)).sum()),
            "relative_l2_before": _relative(aligned.before, aligned.left_norm),
            "relative_l2_after": _relative(aligned.after, aligned.left_norm),
        }


def _relative(apart: float, norm: float) -> float | None:
    return sqrt(apart / norm) if norm > 0 and isfinite(apart / norm) else None


def _silent(answer: Answer, status: Status, needs: str, why: str) -> Envelope:
    for field in _BASIS:
        answer.lack(field, needs=needs, why=why)
    return answer.envelope(status)
