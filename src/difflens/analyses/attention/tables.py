"""Heads as rows of a table, and what they come to together: plain numbers, None where unknown."""

from __future__ import annotations

from math import isfinite, sqrt
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from ...measure.scan import Scan
from ...records import Delta
from .reading import Layer

if TYPE_CHECKING:
    from numpy.typing import NDArray

KINDS = ("qk", "ov")


def head_table(layers: tuple[Layer, ...]) -> list[dict[str, Any]]:
    """Give one row a head, layer after layer."""
    return [row for layer in layers for row in _rows(layer)]


def cosines(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]] | None:
    """Sum the circuit cosines up, each kind by itself."""
    found = {}
    for kind in KINDS:
        known = [row[f"{kind}_cosine"] for row in rows if row[f"{kind}_cosine"] is not None]
        if known:
            found[kind] = {"mean": fmean(known), "median": median(known), "min": min(known)}
    return found or None


def ranks(rows: list[dict[str, Any]], kind: str) -> dict[str, dict[str, float]] | None:
    """Give the median ranks of one kind of circuit on each side."""
    found: dict[str, dict[str, float]] = {}
    for side in ("left", "right"):
        for name in ("stable", "effective"):
            known = [row[f"{kind}_{name}_rank_{side}"] for row in rows]
            known = [value for value in known if value is not None]
            if known:
                found.setdefault(side, {})[name] = median(known)
    return found or None


def whole_matrices(parts: dict[str, list[Delta]]) -> dict[str, dict[str, Any]]:
    """Say how far each part moved as a whole: over its tensors that are not the same bytes."""
    return {part: _whole(deltas) for part, deltas in sorted(parts.items())}


def number(values: NDArray[Any] | None, head: int) -> float | None:
    """Give one head's figure; None where there is none."""
    if values is None or head >= len(values):
        return None
    value = float(values[head])
    return value if isfinite(value) else None


def _whole(deltas: list[Delta]) -> dict[str, Any]:
    scans = [scan for delta in deltas if (scan := delta.measured(Scan)) is not None]
    moved = sum(scan.square_sum for scan in scans)
    left = sum(scan.left_square_sum for scan in scans)
    right = sum(scan.right_square_sum for scan in scans)
    dot = sum(scan.dot for scan in scans)
    size = sqrt(left) * sqrt(right)
    return {
        "tensors": len(deltas),
        "identical": sum(delta.kind == "identical" for delta in deltas),
        "relative_l2": _finite(sqrt(moved) / sqrt(left)) if left else None,
        "cosine": _finite(dot / size) if size else None,
    }


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None


def _rows(layer: Layer) -> list[dict[str, Any]]:
    if layer.left is None or layer.right is None or layer.qk is None or layer.ov is None:
        return []
    rows = []
    for head in range(max(layer.left.heads, layer.right.heads)):
        row: dict[str, Any] = {
            "layer": layer.depth,
            "site": layer.site,
            "head": head,
            "kv_head": head // layer.right.group,
        }
        for kind, circuit in (("qk", layer.qk), ("ov", layer.ov)):
            row[f"{kind}_cosine"] = number(circuit.cosine, head)
            for side in ("left", "right"):
                for name in ("norm", "stable_rank", "effective_rank"):
                    values = getattr(circuit, f"{side}_{name}")
                    row[f"{kind}_{name}_{side}"] = number(values, head)
        row["raw_relative_l2"] = number(layer.raw, head)
        rows.append(row)
    return rows
