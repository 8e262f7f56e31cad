"""How several models are built differently: every field, every pair, every named tensor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import combinations

from ..analyses.anatomy.roles import is_parameter, role
from ..comparisons import ArchitectureDiff, TensorChanges
from ..records import Missing
from ..snapshots import ArchitectureInfo, ModelSnapshot, WeightsSummary
from .tensors import tensor_changes

FIELDS = tuple(name for name in ArchitectureInfo.__struct_fields__ if name != "missing")
NOTABLE = 0.01  # of the base's parameters: a smaller difference gets no sentence
_NEEDS = "--weights or --config"


def architecture_diff(models: Mapping[str, ModelSnapshot]) -> ArchitectureDiff:
    """Compare every field of every model with the first, and every pair as a whole."""
    base, *others = models
    fields = {
        field: {name: getattr(model.architecture, field) for name, model in models.items()}
        for field in FIELDS
    }
    similarities: dict[str, dict[str, float | None]] = {name: {name: 1.0} for name in models}
    for left, right in combinations(models, 2):
        alike = similarity(models[left], models[right])
        similarities[left][right] = similarities[right][left] = alike
    pairs = [similarities[left][right] for left, right in combinations(models, 2)]
    known = [each for each in pairs if each is not None]
    tensors = {name: _tensors(models[base], models[name]) for name in others}
    return ArchitectureDiff(
        parameter_diff=_gaps(fields["parameter_count"], base),
        layer_diff=_gaps(fields["layer_count"], base),
        similarity_score=sum(known) / len(known) if known else None,
        notable_differences=tuple(
            sentence for name in others for sentence in _sentences(base, name, models, tensors)
        ),
        base=base,
        fields=fields,
        similarities=similarities,
        tensors={name: each for name, each in tensors.items() if each is not None},
        missing=_missing(fields, known),
    )


def similarity(left: ModelSnapshot, right: ModelSnapshot) -> float | None:
    """Say how alike two models are built, from 0 to 1; None where nothing is known of them.

    Of the tensors, where both list them: Σ min(parameters) / Σ max(parameters) over roles and
    shapes. Else the mean over fields of min/max, 0/0 being 1 and a field of one side only 0.
    """
    counts = [_parameters(side.weights_summary) for side in (left, right)]
    if all(counts):
        return (counts[0] & counts[1]).total() / (counts[0] | counts[1]).total()
    pairs = [(getattr(left.architecture, field), getattr(right.architecture, field))
             for field in FIELDS]  # fmt: skip
    ratios = [_ratio(one, other) for one, other in pairs if one is not None or other is not None]
    return sum(ratios) / len(ratios) if ratios else None


def _parameters(weights: WeightsSummary) -> Counter[tuple[str, tuple[int, ...]]]:
    counts: Counter[tuple[str, tuple[int, ...]]] = Counter()
    for each in weights.tensors:
        if is_parameter(each.name, each.dtype) and each.count:
            counts[role(each.name), each.shape] += each.count
    return counts


def _ratio(left: int | str | None, right: int | str | None) -> float:
    if isinstance(left, int) and isinstance(right, int):
        return 1.0 if left == right else min(left, right) / max(left, right)
    return float(left == right)


def _gaps(values: Mapping[str, int | str | None], base: str) -> dict[str, int | None]:
    first = values[base]
    return {
        name: value - first if isinstance(value, int) and isinstance(first, int) else None
        for name, value in values.items()
        if name != base
    }


def _tensors(base: ModelSnapshot, other: ModelSnapshot) -> TensorChanges | None:
    return tensor_changes(base.weights_summary, other.weights_summary)


def _sentences(
    base: str,
    name: str,
    models: Mapping[str, ModelSnapshot],
    tensors: Mapping[str, TensorChanges | None],
) -> list[str]:
    """Name what differs, with both numbers."""
    before, after = models[base].architecture, models[name].architecture
    found = []
    for field in FIELDS:
        left, right = getattr(before, field), getattr(after, field)
        if left is None or right is None or left == right:
            continue
        small = field == "parameter_count" and abs(right - left) <= NOTABLE * left
        if not small:
            found.append(f"{name} against {base}: {field} {left} -> {right}")
    changes = tensors[name]
    counts = {
        kind: len(getattr(changes, kind))
        for kind in ("added", "removed", "reshaped", "recast", "renamed")
        if changes and getattr(changes, kind)
    }
    if counts:
        told = ", ".join(f"{count} {kind}" for kind, count in counts.items())
        found.append(f"{name} against {base}: tensors {told}")
    return found


def _missing(
    fields: Mapping[str, Mapping[str, int | str | None]], known: list[float]
) -> tuple[Missing, ...]:
    found = [
        Missing(what, _NEEDS, f"{field} is not known of every model")
        for what, field in (("parameter_diff", "parameter_count"), ("layer_diff", "layer_count"))
        if None in fields[field].values()
    ]
    if not known:
        found.append(Missing("similarity_score", _NEEDS, "nothing is known of the architectures"))
    return tuple(found)
