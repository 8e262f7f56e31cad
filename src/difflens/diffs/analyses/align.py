"""Are the units of the right model those of the left one in another order?"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite, sqrt
from typing import Any

from difflens.core.policy import Threshold

from ..answer import Answer
from ..diff import Diff
from ..evidence.records import Evidence
from ..methods.networks import network
from ..methods.symmetry.matching import COLUMNS, FEW
from ..methods.symmetry.parts import SEED, Limits, Part, changed_components, parts
from . import analysis


@analysis(
    needs="values",
    thresholds={
        "max_units": Threshold(
            4096, "groups of more units are aligned only where no search is needed"
        ),
        "max_elements": Threshold(1 << 27, "layers that hold more numbers together are not loaded"),
        "restarts": Threshold(
            3, "further starts from a random order where groups depend on another"
        ),
        "permuted_gain": Threshold(
            0.6, "below this part of its distance before, a model was permuted"
        ),
    },
    fields={
        "relative_l2_before": "sqrt(sum ‖left - right‖² / sum ‖left‖²) over the tensors of the"
        " groups",
        "relative_l2_after": "the same with the right model's units in the order found",
        "fixed_points": "part of the units that stay in their place",
        "units": "units of the groups that were aligned",
        "objective_gain": "(sum <left, P right> - sum <left, right>) / (‖left‖ ‖right‖)",
        "groups": "one entry a group, in the order of the model",
        "skipped": "groups that were not aligned, and why",
    },
)
def align(diff: Diff, evidence: Evidence, answer: Answer) -> None:
    """Whether units were reordered: hidden units, heads, channels, recurrent units."""
    answer.seeded(SEED)
    limits = Limits(answer["max_units"], answer["max_elements"], answer["restarts"])
    found = list(parts(diff, changed_components(diff, evidence), limits))
    if not found:
        needs = "feed-forward, attention, recurrent or chained layers in one shape on both sides"
        why = "no tensor that changed belongs to a group of units that may change places"
        answer.lack_rest(needs=needs, why=why, status="not_applicable")
        return
    _say(answer, found)
    answer.assume(
        "units are told by names and shapes; orders inside a head, and of the residual"
        " stream, are not tried"
    )
    if any(len(part.groups) > 1 for part in found):
        answer.assume("groups that share a tensor are solved in turn: a local optimum is possible")
    answer.assume(
        f"a unit is compared by at most {COLUMNS} of its weights in a tensor, {FEW} where units"
        " are many"
    )
    if not (network(diff, evidence, "left").heads):
        answer.assume("heads were not tried: their number is unknown (--config-left)")


def _say(answer: Answer, found: list[Part]) -> None:
    done = [part for part in found if part.aligned]
    entries = [entry for part in done for entry in _entries(part)]
    left, right, before, after = (
        sum(getattr(part.aligned, size) for part in done)
        for size in ("left_norm", "right_norm", "before", "after")
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
            for part in found
            if not part.aligned
            for group in part.groups
        ],
    }
    for field, value in values.items():
        needs = "a higher `max_units` or `max_elements`" if not done else "weights that are not 0"
        why = "no group was aligned, see `skipped`" if not done else "the left side is all zeros"
        answer.either(field, value, needs=needs, why=why)
    if moved and after <= (answer["permuted_gain"] ** 2) * before:
        _report(answer, values, moved)


def _report(answer: Answer, values: dict[str, Any], moved: int) -> None:
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
