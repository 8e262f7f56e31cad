"""Records of `changes`: tensors that one name explains, together, and what is left unexplained."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import fsum, isfinite
from typing import Any, NamedTuple

from difflens.core.records import SAME, Delta
from difflens.measure.precision import sample
from difflens.models.anatomy.places import where
from difflens.models.anatomy.roles import is_parameter

from .change import Change
from .drift import looks_drawn
from .explain import Found, left_name
from .explained import Explained
from .parts import UNCORRELATED, Part, Tensor
from .texts import text_of

_STRANGER = 0.98  # part of the weights that must be others for two models to be unrelated
_STORAGE = "cast"
_DIRECTIONS = frozenset({"low_rank", "outer_product", "abliterated"})
_HIDDEN = 0.1  # part of a change that must be left without rounding, for its size to be known
_FEW = 3  # matrices that must be others, for two models to be unrelated
_ASKED = 8  # matrices that are asked whether they were only drawn


class Summary(NamedTuple):
    """What was done, main thing first, and the part of ‖d‖² that it does not explain."""

    records: list[Explained]
    unexplained: float | None
    found: Found


def summarise(change: Change, found: Found) -> Summary:
    """Group the named tensors into records."""
    whole = fsum(tensor.energy for tensor in found.tensors)
    whole += _claimed_energy(change, found)
    if is_unrelated(change, found) and not _are_drawn(found):
        return Summary([_unrelated(change, whole)], None if whole <= 0 else 0.0, found)
    groups: dict[tuple[str, tuple[Any, ...]], list[tuple[Tensor, Part]]] = {}
    for tensor in found.tensors:
        for part in tensor.parts:
            groups.setdefault((part.kind, _key(part)), []).append((tensor, part))
    records = [_record(change, kind, group, whole) for (kind, _), group in groups.items()]
    records += _of_shapes(change, found)
    ordered = sorted(records, key=_order) + list(found.structural)
    if any(record.kind in _BEFORE for record in found.structural):
        ordered = sorted(ordered, key=_order)
    return Summary(ordered, _unexplained(found, whole), found)


_BEFORE = frozenset({"averaged", "slerp", "extrapolated", "layers_swapped", "adapter_merged"})
_LAST = {_STORAGE: 3, "config_changed": 2, "tokens_changed": 2, "state_changed": 4}


def _order(record: Explained) -> tuple[int, float]:
    return _LAST.get(record.kind, 0), -(record.share or 0.0)


def _key(part: Part) -> tuple[Any, ...]:
    return part.key if part.kind not in {"trained", "noise", "reinitialised"} else ()


def _claimed_energy(change: Change, found: Found) -> float:
    claimed = {name for record in found.structural for name in record.names}
    return fsum(
        each.scan.square_sum
        for each in change.measured
        if left_name(each.delta) in claimed
        and isfinite(each.scan.square_sum)
        and _is_weight(each.delta)
    )


def _record(change: Change, kind: str, group: list[tuple[Tensor, Part]], whole: float) -> Explained:
    names = [left_name(tensor.delta) for tensor, _ in group]
    numbers = _NUMBERS.get(kind, _first)(group)
    share = fsum(part.energy for _, part in group) / whole if whole > 0 else None
    if share is not None and not isfinite(share):
        share = None
    made = Explained(kind, names, len(change.deltas), where(names), share, numbers, "")
    return made._replace(text=text_of(change, made))


def _first(group: list[tuple[Tensor, Part]]) -> dict[str, Any]:
    return dict(group[0][1].numbers)


def _scaled(group: list[tuple[Tensor, Part]]) -> dict[str, Any]:
    """Return the factor over all of them, and the largest miss, relative to ‖d‖."""
    from .values import residual_of

    left = fsum(tensor.scan.left_square_sum for tensor, _ in group)
    along = fsum(tensor.scan.dot - tensor.scan.left_square_sum for tensor, _ in group)
    worst = max(residual_of(tensor, part.numbers["c"]) for tensor, part in group)
    return {"c": 1 + along / left, "residual": worst}


def _pruned(group: list[tuple[Tensor, Part]]) -> dict[str, Any]:
    sums = {
        key: sum(part.numbers[key] for _, part in group)
        for key in ("newly_zeroed", "zeros", "elements")
    }
    elements = sums["elements"]
    found: dict[str, Any] = {
        "sparsity": sums["zeros"] / elements,
        "newly_zeroed": sums["newly_zeroed"] / elements,
        "pattern": group[0][1].numbers["pattern"],
    }
    for key, choose in (("two_of_four", min), ("four_of_eight", min), ("pruning_auc", _middle)):
        values = [v for _, part in group if (v := part.numbers.get(key)) is not None]
        if values:
            found[key] = choose(values)
    return found


def _middle(values: Iterable[float]) -> float:
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


def _low_rank(group: list[tuple[Tensor, Part]]) -> dict[str, Any]:
    from difflens.models.anatomy.roles import role

    return {
        "rank": group[0][1].numbers["rank"],
        "least_rank": min(part.numbers["least_rank"] for _, part in group),
        "ranks": {role(tensor.name): part.numbers["least_rank"] for tensor, part in group},
        "energy": min(part.numbers["energy"] for _, part in group),
        "matrices": len(group),
    }


def _matrices(group: list[tuple[Tensor, Part]]) -> dict[str, Any]:
    return {"matrices": len(group), "rank": 1}


def _drift(group: list[tuple[Tensor, Part]]) -> dict[str, Any]:
    scans = [tensor.scan for tensor, _ in group]
    left, right, moved, dot = (
        fsum(getattr(scan, name) for scan in scans)
        for name in ("left_square_sum", "right_square_sum", "square_sum", "dot")
    )
    sizes = (left * right) ** 0.5 if isfinite(left * right) else 0.0
    rounding = fsum(tensor.rounding for tensor, _ in group)
    moved = moved - rounding if moved - rounding > _HIDDEN * moved else float("nan")
    parameters = sum(scan.count for scan in scans)
    found: dict[str, Any] = {
        "relative_l2": (moved / left) ** 0.5 if left > 0 and isfinite(moved) else None,
        "cosine": dot / sizes if sizes > 0 else None,
        "parameters": parameters,
    }
    fractions = [part.numbers["fraction"] for _, part in group if "fraction" in part.numbers]
    constants = {part.numbers.get("constant") for _, part in group}
    if fractions and len(fractions) == len(group):
        elements = fsum(part.numbers["fraction"] * tensor.scan.count for tensor, part in group)
        found["fraction"] = elements / parameters
    if len(constants) == 1 and None not in constants:
        found["constant"] = constants.pop()
    return found


def _noise(group: list[tuple[Tensor, Part]]) -> dict[str, Any]:
    found = _drift(group)
    return {"relative": found["relative_l2"], **found}


def _edits(group: list[tuple[Tensor, Part]]) -> dict[str, Any]:
    elements = sum(part.numbers["elements"] for _, part in group)
    count = sum(tensor.scan.count for tensor, _ in group)
    return {
        "elements": elements,
        "fraction": elements / count,
        "relative_l2": _drift(group)["relative_l2"],
    } | ({"scattered": True} if "scattered" in group[0][1].numbers else {})


def _rows(group: list[tuple[Tensor, Part]]) -> dict[str, Any]:
    changed = sum(part.numbers["rows_changed"] for _, part in group)
    of = sum(part.numbers["rows"] for _, part in group)
    return {"rows": changed, "rows_changed": changed, "of_rows": of}


def _worst(group: list[tuple[Tensor, Part]]) -> dict[str, Any]:
    return {
        "nonfinite": sum(part.numbers["nonfinite"] for _, part in group),
        "largest": max(part.numbers["largest"] for _, part in group),
        "byte_swapped": group[0][1].numbers["byte_swapped"],
    }


def _moved(group: list[tuple[Tensor, Part]]) -> dict[str, Any]:
    after = max(part.numbers.get("relative_l2_after", 0.0) for _, part in group)
    return {"moved": max(part.numbers["moved"] for _, part in group), "relative_l2_after": after}


def _decibels(group: list[tuple[Tensor, Part]]) -> dict[str, Any]:
    known = [v for _, part in group if (v := part.numbers.get("sqnr_db")) is not None]
    return group[0][1].numbers | {"sqnr_db": _middle(known) if known else None}


_NUMBERS: dict[str, Callable[[list[tuple[Tensor, Part]]], dict[str, Any]]] = {
    "scaled": _scaled,
    "sign_flipped": _scaled,
    "pruned": _pruned,
    "low_rank": _low_rank,
    "outer_product": _matrices,
    "abliterated": _matrices,
    "trained": _drift,
    "reinitialised": _drift,
    "noise": _noise,
    "sparse_edit": _edits,
    "row_edit": _rows,
    "corrupted": _worst,
    "permuted": _moved,
    "permuted_inconsistently": _moved,
    "quantised": _decibels,
    "dequantised": _decibels,
    "palette": _decibels,
}


# What is on one side only, has another shape, or is no weight.


def _is_weight(delta: Delta) -> bool:
    sides = (delta.pair.left, delta.pair.right)
    return is_parameter(delta.name, *(info.dtype for info in sides if info))


def _of_shapes(change: Change, found: Found) -> list[Explained]:
    claimed = {name for record in found.structural for name in record.names}
    turned = [left_name(delta) for delta in found.transposed]
    records = []
    if turned:
        records.append(_record_of_names(change, "transposed", turned))
    known = claimed | set(turned)
    for kind, title in (
        ("reshaped", "reshaped"),
        ("added", "tensors_added"),
        ("removed", "tensors_removed"),
    ):
        names = [
            left_name(delta)
            for delta in change.deltas
            if delta.kind == kind and left_name(delta) not in known
        ]
        if names:
            records.append(_record_of_names(change, title, names))
    named = {left_name(tensor.delta) for tensor in found.tensors} | known
    other = [
        left_name(each.delta) for each in change.measured if left_name(each.delta) not in named
    ]
    if other:
        records.append(_record_of_names(change, "state_changed", other))
    return records


def _record_of_names(change: Change, kind: str, names: list[str]) -> Explained:
    made = Explained(kind, names, len(change.deltas), where(names), None, {}, "")
    return made._replace(text=text_of(change, made))


def _unexplained(found: Found, whole: float) -> float | None:
    if not (whole > 0 and isfinite(whole)):
        return None
    rest = 0.0
    for tensor in found.tensors:
        if not tensor.parts:
            continue
        told = fsum(
            part.energy + float(part.numbers["rounding"])
            if part.kind in _DIRECTIONS
            else part.energy
            for part in tensor.parts
        )
        kinds = {part.kind for part in tensor.parts}
        if _STORAGE not in kinds or kinds & _DIRECTIONS:
            rest += max(0.0, tensor.energy - told)
    rest = rest / whole
    return rest if rest > 1e-9 else 0.0


# Two models that have nothing to do with each other.


def is_unrelated(change: Change, found: Found) -> bool:
    """Is (nearly) no matrix of the left on the right in any form?"""
    drawn = {
        tensor.name
        for tensor in found.tensors
        if {p.kind for p in tensor.parts} <= {"reinitialised"}
    }
    claimed = {name for record in found.structural for name in record.names}
    sums = {tensor.name: tensor for tensor in found.tensors}
    other = whole = number = 0
    for delta in change.deltas:
        info = delta.pair.left or delta.pair.right
        if info is None or len(info.shape) < 2 or not _is_weight(delta):
            continue
        whole += info.count
        lost = delta.kind in {"added", "removed", "reshaped"} and left_name(delta) not in claimed
        gone = delta.name in drawn and _is_stranger(sums[delta.name])
        other += info.count if lost or gone else 0
        number += lost or gone
    kinds = {delta.kind for delta in change.deltas}
    paired = kinds & {"changed", "recast", "reshaped"} or not kinds & SAME
    turned = sum(delta.pair.left.count for delta in found.transposed if delta.pair.left)
    strange = whole and paired and number >= _FEW and other - turned >= _STRANGER * whole
    return bool(strange) and _shared(change) < _FEW


def _shared(change: Change) -> int:
    """Count the tensors that both models have in common, bit by bit, and no constant made so."""
    import numpy as np

    number = 0
    for delta in change.deltas:
        info = delta.pair.left
        if delta.kind == "identical" and info and _is_weight(delta):
            numbers = sample(change.diff.values("left", info.name, delta.pair))
            number += len(np.unique(numbers)) > info.count // 2
    return number


def _are_drawn(found: Found) -> bool:
    """Are the matrices on the right white, as an initialisation leaves them?"""
    matrices = [tensor for tensor in found.tensors if tensor.is_matrix]
    return bool(matrices) and all(map(looks_drawn, matrices[:_ASKED]))


def _is_stranger(tensor: Tensor) -> bool:
    r = tensor.correlation
    constant = tensor.scan.right_m2 == 0
    return r is not None and abs(r) < 2 * UNCORRELATED and not constant


def _unrelated(change: Change, whole: float) -> Explained:
    names = [left_name(delta) for delta in change.differing]
    numbers = {"tensors": len(names)}
    share = 1.0 if whole > 0 and isfinite(whole) else None
    text = "the models are not related: no matrix of one resembles its namesake in the other"
    return Explained(
        "unrelated", names, len(change.deltas), "the whole model", share, numbers, text
    )
