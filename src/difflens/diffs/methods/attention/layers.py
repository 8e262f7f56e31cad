"""The attention of every layer, read once, and its heads as rows of a table."""

from __future__ import annotations

from math import isfinite, sqrt
from statistics import fmean, median
from typing import TYPE_CHECKING, Any, NamedTuple

from difflens.core.records import Delta
from difflens.measure.resources import one_thread_each
from difflens.measure.scan import Scan
from difflens.models.anatomy.network import Network

from ...diff import Diff
from ...evidence.records import Evidence
from ..networks import network
from .heads import sites
from .reading import Layer, Reader

if TYPE_CHECKING:
    from numpy.typing import NDArray


SIDES = ("left", "right")
_WEIGHTS = ("q", "k", "v", "o", "qkv")


class Attention(NamedTuple):
    """All layers with attention, and where the number of heads comes from on each side."""

    layers: tuple[Layer, ...]
    heads: dict[str, int | None]
    basis: dict[str, str]
    networks: dict[str, Network]
    parts: dict[str, list[Delta]]


def attention(diff: Diff, evidence: Evidence, heads: int | None) -> Attention:
    """Read the heads of every layer, once a diff; `heads` is the user's word on their number."""
    with one_thread_each():  # many small products: threads would wait for each other
        made: tuple[Attention, Evidence] = diff.remember(
            ("attention", id(evidence), heads),
            lambda: (_attention(diff, evidence, heads), evidence),
        )
    return made[0]


def parts(diff: Diff) -> dict[str, list[Delta]]:
    """Return the pairs of every part of attention (q, k, v, o, qkv), told by name."""
    paired = {
        delta.pair.right.name: delta
        for delta in diff.deltas
        if delta.pair.right and delta.pair.left
    }
    found: dict[str, list[Delta]] = {}
    for site in sites(delta.pair.right for delta in diff.deltas if delta.pair.right):
        for part, info in site.tensors.items():
            if part in _WEIGHTS and info.name in paired:
                found.setdefault(part, []).append(paired[info.name])
    return found


def _attention(diff: Diff, evidence: Evidence, said: int | None) -> Attention:
    networks = {side: network(diff, evidence, side) for side in SIDES}
    counts, basis = _heads(networks, said)
    by_right = {delta.pair.right.name: delta for delta in diff.deltas if delta.pair.right}
    left = {
        site.tensors["o"].name: site
        for site in sites(delta.pair.left for delta in diff.deltas if delta.pair.left)
    }
    reader = Reader(diff, networks, by_right)
    layers: list[Layer] = []
    for right in sites(delta.pair.right for delta in diff.deltas if delta.pair.right):
        paired = by_right[right.tensors["o"].name].pair.left
        before = left.get(paired.name) if paired else None
        if before is not None:
            layers.append(reader.layer(len(layers), before, right, counts))
    return Attention(tuple(layers), counts, basis, networks, parts(diff))


def _heads(
    networks: dict[str, Network], said: int | None
) -> tuple[dict[str, int | None], dict[str, str]]:
    """Say how many heads each side has: told by the user, its settings, or the other side's."""
    if said:
        return dict.fromkeys(SIDES, said), dict.fromkeys(SIDES, "policy: heads")
    counts = {side: networks[side].heads for side in SIDES}
    basis = {side: networks[side].basis.get("heads", "") for side in SIDES}
    for side, other in (SIDES, SIDES[::-1]):
        if counts[side] is None and counts[other] is not None:
            counts[side], basis[side] = counts[other], f"the {other} side's {basis[other]}"
    return counts, basis


KINDS = ("qk", "ov")


def head_table(layers: tuple[Layer, ...]) -> list[dict[str, Any]]:
    """Return one row a head, layer after layer."""
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
    """Return the median ranks of one kind of circuit on each side."""
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
    return {part: _table(deltas) for part, deltas in sorted(parts.items())}


def number(values: NDArray[Any] | None, head: int) -> float | None:
    """Return one head's figure; None if there is none."""
    if values is None or head >= len(values):
        return None
    value = float(values[head])
    return value if isfinite(value) else None


def _table(deltas: list[Delta]) -> dict[str, Any]:
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
