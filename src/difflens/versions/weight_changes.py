"""How the weights moved between two versions: element by element where both files are at hand.

Without the files the fingerprints tell which tensors changed, and the percentiles how far the
distributions lie apart: both are blind to where a weight is, and say so.
"""

from __future__ import annotations

from math import isfinite, sqrt
from pathlib import Path

from difflens.core.dtypes import FLOATS
from difflens.core.errors import DifflensError
from difflens.core.findings import Missing
from difflens.core.records import SAME, Delta
from difflens.diffs import story as pipeline
from difflens.diffs.diff import Diff
from difflens.measure.scan import Scan
from difflens.models.opening import Model

from .differences import changed_names, tensor_changes
from .records.comparisons import LayerChange, TensorChanges, WeightChangesSummary
from .records.snapshots import WeightsSummary
from .weights import fingerprint

_MOVES = ("avg_magnitude", "max_change", "significant_change_ratio", "relative_l2", "cosine")

_STRUCTURE = ("added", "removed", "reshaped", "recast", "renamed")


def weight_changes(
    left: WeightsSummary,
    right: WeightsSummary,
    left_file: Model | None = None,
    right_file: Model | None = None,
) -> tuple[WeightChangesSummary, list[str]]:
    """Measure the change by the best evidence there is; also return warnings."""
    warnings: list[str] = []
    listed = tensor_changes(left, right)
    if left_file is not None and right_file is not None:
        diff = pipeline.diff(left_file, right_file, always=True)
        return _by_elements(diff, listed, _distance(left, right)), warnings
    files = [_file(side, warnings) for side in (left, right)]
    if files[0] and files[1]:
        diff = pipeline.diff(files[0], files[1], always=True)
        return _by_elements(diff, listed, _distance(left, right)), warnings
    if listed is not None and listed.changed is not None:
        return _by_hashes(left, right, listed), warnings
    return _by_percentiles(left, right, listed), warnings


def _file(weights: WeightsSummary, warnings: list[str]) -> str | None:
    """Return the file a summary was made of, if it is still there and still the same."""
    if not weights.source or not weights.content_hash or not Path(weights.source).exists():
        return None
    try:
        found = fingerprint(weights.source)
    except DifflensError as error:
        warnings.append(f"the weights cannot be read any more: {error}")
        return None
    if found != weights.content_hash:
        warnings.append(f"{weights.source} is not the file that was recorded")
        return None
    return weights.source


def _by_elements(
    diff: Diff, listed: TensorChanges | None, distance: float | None
) -> WeightChangesSummary:
    """Sum up a diff: mean |d|, max |d|, ‖d‖/‖w‖, share of elements beyond storage rounding."""
    elements = moved = 0
    abs_sum = square_sum = left_square = right_square = dot = largest = 0.0
    layers = []
    for delta in diff.deltas:
        layers.append(_layer(delta))
        pair, scan = delta.pair, delta.measured(Scan)
        if not (pair.left and pair.right and scan and pair.left.dtype in FLOATS):
            continue
        elements += scan.count
        abs_sum += scan.abs_sum
        square_sum += scan.square_sum
        left_square += scan.left_square_sum
        right_square += scan.right_square_sum
        dot += scan.dot
        largest = max(largest, scan.max_abs)
        moved += scan.over_rounding
    changed = [each for each in layers if each.kind not in SAME]
    norm = sqrt(left_square) * sqrt(right_square)
    same = bool(elements) and not square_sum
    figures = {
        "avg_magnitude": abs_sum / elements if elements else None,
        "max_change": largest if elements else None,
        "significant_change_ratio": moved / elements if elements else None,
        "relative_l2": 0.0 if same else sqrt(square_sum / left_square) if left_square else None,
        "cosine": 1.0 if same else dot / norm if norm else None,
    }
    known = {
        name: value if value is not None and isfinite(value) else None
        for name, value in figures.items()
    }
    why = "the left weights are zero, or too large to square" if elements else "none has a partner"
    return WeightChangesSummary(
        avg_magnitude=known["avg_magnitude"],
        max_change=known["max_change"],
        significant_change_ratio=known["significant_change_ratio"],
        layer_changes={each.name: each.relative_l2 for each in changed},
        basis="elements",
        relative_l2=known["relative_l2"],
        cosine=known["cosine"],
        distribution_distance=distance,
        layers=tuple(changed),
        tensors=listed,
        missing=tuple(
            Missing(field, "elements in both files", why)
            for field, value in known.items()
            if value is None
        ),
    )


def _layer(delta: Delta) -> LayerChange:
    figures = delta.figures()
    known = {
        name: figures.get(name)
        for name in ("relative_l2", "cosine", "mean_abs", "max_abs", "changed_fraction")
    }
    finite = {n: v for n, v in known.items() if v is not None and isfinite(v)}
    if delta.kind == "identical":
        finite = {"relative_l2": 0.0, "mean_abs": 0.0, "max_abs": 0.0, "changed_fraction": 0.0}
    return LayerChange(name=delta.name, kind=delta.kind, **finite)


def _by_hashes(
    left: WeightsSummary, right: WeightsSummary, listed: TensorChanges
) -> WeightChangesSummary:
    if not listed.changed and not any(getattr(listed, kind) for kind in _STRUCTURE):
        return WeightChangesSummary(
            avg_magnitude=0.0,
            max_change=0.0,
            significant_change_ratio=0.0,
            relative_l2=0.0,
            cosine=1.0,
            distribution_distance=0.0,
            basis="hashes",
            tensors=listed,
        )
    why = "summary only: fingerprints tell which tensors changed, not how far"
    return WeightChangesSummary(
        layer_changes=dict.fromkeys(changed_names(left, right)),
        basis="hashes",
        distribution_distance=_distance(left, right),
        tensors=listed,
        missing=tuple(Missing(field, "both weight files", why) for field in _MOVES),
    )


def _by_percentiles(
    left: WeightsSummary, right: WeightsSummary, listed: TensorChanges | None
) -> WeightChangesSummary:
    distance = _distance(left, right)
    if distance is None:
        missing = [*_MOVES, "distribution_distance", *(["tensors"] if listed is None else [])]
        why = "no weights were recorded of both versions"
        return WeightChangesSummary(
            tensors=listed,
            missing=tuple(Missing(field, "snapshot add --weights", why) for field in missing),
        )
    why = "summary only: percentiles do not tell which weight moved"
    return WeightChangesSummary(
        basis="summary",
        distribution_distance=distance,
        tensors=listed,
        missing=tuple(Missing(field, "both weight files", why) for field in _MOVES),
    )


def _distance(left: WeightsSummary, right: WeightsSummary) -> float | None:
    """Return Wasserstein-1, the area between the quantile functions at the percentiles of both."""
    sides = [_quantiles(side) for side in (left, right)]
    shared = sorted(sides[0].keys() & sides[1].keys())
    if len(shared) < 2:
        return None
    gaps = [abs(sides[0][rank] - sides[1][rank]) for rank in shared]
    steps = zip(shared, shared[1:], gaps, gaps[1:], strict=False)
    area = sum((after - before) * (one + other) / 2 for before, after, one, other in steps)
    return area / (shared[-1] - shared[0])


def _quantiles(weights: WeightsSummary) -> dict[float, float]:
    found = {0.0: weights.min, 100.0: weights.max}
    for label, value in weights.percentiles.items():
        try:
            found[float(label.removeprefix("p"))] = value
        except ValueError:
            continue
    return {rank: value for rank, value in found.items() if value is not None}
