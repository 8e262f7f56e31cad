"""How the heads of attention differ: their circuits, which no rotation inside a head moves."""

from __future__ import annotations

from typing import Any

from ..answers import Answer
from ..diffs import Diff
from ..evidences import Evidence
from ..measure.scan import Scan
from ..records import Envelope, Policy, Threshold
from . import analysis
from .attention.layers import SIDES, Attention, attention, parts
from .attention.matching import WIDEST, matched_heads
from .attention.tables import KINDS, cosines, head_table, ranks, whole_matrices

NAME = "attention_analysis"
THRESHOLDS = {
    "heads": Threshold(None, "the number of query heads, where no configuration says it"),
    "moved_cosine": Threshold(0.9, "below this circuit cosine a head counts as moved"),
    "listed": Threshold(5, "how many moved heads are told one by one"),
}

_BASIS = {
    "head_count": "query heads a layer, by side",
    "kv_heads": "key and value heads a layer, by side: rows of k over the width of a head",
    "head_dim": "inputs of the output projection over its heads, by side",
    "layers": "attentions that both sides have",
    "per_head": "QK = WqᵀWk and OV = Wo Wv of every head: norms, cosine across sides, ranks",
    "circuit_cosine": "⟨L, R⟩ / (‖L‖ ‖R‖) of the circuits, over heads",
    "heads_moved": "heads with a QK or OV cosine below `moved_cosine`, of those compared",
    "reordered_heads": "right heads that another left head fits, by the Hungarian method",
    "qk_rank": "median over heads of stable and effective rank of QK",
    "ov_rank": "median over heads of stable and effective rank of OV",
    "whole_matrices": "‖d‖ / ‖left‖ and cosine of each part, over tensors that are not identical",
}
_COUNTS = ("head_count", "kv_heads", "head_dim", "layers", "heads_moved")
_CONFIG = "--config-left/--config-right, or `heads` in [attention_analysis] of --policy"


@analysis(needs=[Scan], thresholds=THRESHOLDS)
def attention_analysis(diff: Diff, evidence: Evidence, policy: Policy) -> Envelope:
    """How each attention head's QK and OV circuits differ between the two models."""
    answer = Answer(NAME, policy, THRESHOLDS)
    if not diff.has_values:
        return _silent(answer, "tensor values", "only headers were read", known=True)
    whole = whole_matrices(parts(diff))
    if not whole:
        why = f"none of the {len(diff.deltas)} tensors is a projection of attention on both sides"
        return _silent(answer, "attention", why, known=False)
    found = attention(diff, evidence, answer["heads"])
    rows = head_table(found.layers)
    answer.say("whole_matrices", whole, basis=_BASIS["whole_matrices"], uncertainty="exact")
    answer.say("layers", len(found.layers), basis=_BASIS["layers"], uncertainty="exact")
    needs, why = _missing(found)
    for name, value in _fields(diff, found, rows, answer["moved_cosine"]).items():
        exact = "exact" if name in _COUNTS else None
        answer.either(name, value, basis=_BASIS[name], uncertainty=exact, needs=needs, why=why)
    for line in _assumptions(found, rows):
        answer.assume(line)
    _findings(answer, found, rows)
    return answer.envelope()


def _fields(
    diff: Diff, found: Attention, rows: list[dict[str, Any]], moved: float
) -> dict[str, Any]:
    compared = [row for row in rows if _lowest(row) is not None]
    far = sum((_lowest(row) or 0.0) < moved for row in compared)
    return {
        "head_count": _by_side(found, "heads"),
        "kv_heads": _by_side(found, "kv_heads"),
        "head_dim": _by_side(found, "size"),
        "per_head": rows or None,
        "circuit_cosine": cosines(rows),
        "heads_moved": {"count": far, "of": len(compared)} if compared else None,
        "reordered_heads": _reordered(diff, found, moved) if compared else None,
        "qk_rank": ranks(rows, "qk"),
        "ov_rank": ranks(rows, "ov"),
    }


def _by_side(found: Attention, what: str) -> dict[str, Any] | None:
    """Give one number a side, or a list where layers differ; None where no layer was cut."""
    by_side = {}
    for side in SIDES:
        seen = [getattr(cut, what) for layer in found.layers if (cut := getattr(layer, side))]
        if not seen:
            return None
        by_side[side] = seen[0] if len(set(seen)) == 1 else seen
    return by_side


def _reordered(diff: Diff, found: Attention, moved: float) -> list[dict[str, Any]]:
    """Look for the partner of heads that moved: a permutation is no change of the function."""
    changes = []
    for layer in found.layers:
        low = [_lowest(row) for row in head_table((layer,))]
        if not any(value is not None and value < moved for value in low):
            continue
        for head, (partner, cosine) in enumerate(matched_heads(diff, found, layer) or ()):
            if partner != head and cosine >= moved:
                changes.append({"layer": layer.depth, "head": head, "left_head": partner,
                                "cosine": cosine})  # fmt: skip
    return changes


def _lowest(row: dict[str, Any]) -> float | None:
    known = [row[f"{kind}_cosine"] for kind in KINDS if row[f"{kind}_cosine"] is not None]
    return min(known, default=None)


def _missing(found: Attention) -> tuple[str, str]:
    if not found.layers:
        return (
            "an attention on both sides with q, k, v and o",
            "no layer has all four on both sides",
        )
    if None in found.heads.values():
        return _CONFIG, "the number of heads is in no shape, and is never guessed"
    why = next((layer.why for layer in found.layers if layer.why), "")
    return "the same width and number of heads on both sides", why or "the two sides differ there"


def _assumptions(found: Attention, rows: list[dict[str, Any]]) -> list[str]:
    known = [side for side in SIDES if found.heads[side]]
    lines = [f"{side}: {found.heads[side]} heads ({found.basis[side]})" for side in known]
    if rows:
        lines.append(
            "with rotary positions QK is the product at distance 0; rotations inside a head that"
            " do not commute with them change the function and not this figure"
        )
        cut = [layer.right for layer in found.layers if layer.right]
        folded = sum(layout.gain is not None for layout in cut)
        lines.append(f"the gain of the norm before is folded into q, k and v in {folded} layers")
        lines.append(f"{len(rows)} heads are compared; none of the cosines is a test")
    if any(cut and cut.heads * cut.size > WIDEST for cut in (each.right for each in found.layers)):
        lines.append(f"heads are matched up to a width of {WIDEST}; here the order is taken as is")
    left_out = [layer.why for layer in found.layers if layer.why]
    if left_out and found.heads["right"]:
        lines.append(f"{len(left_out)} layers are left out: {left_out[0]}")
    return lines


def _findings(answer: Answer, found: Attention, rows: list[dict[str, Any]]) -> None:
    subjects = {layer.depth: layer.subject for layer in found.layers}
    low = sorted(
        (value, row["layer"], row["head"], row)
        for row in rows
        if (value := _lowest(row)) is not None and value < answer["moved_cosine"]
    )
    for value, layer, head, row in low[: answer["listed"]]:
        text = f"head {head} of layer {layer}: circuit cosine {value:.3f}"
        numbers = {f"{kind}_cosine": row[f"{kind}_cosine"] for kind in KINDS}
        answer.find(subjects[layer], text, numbers | {"heads_compared": len(rows)}, "info")


def _silent(answer: Answer, needs: str, why: str, *, known: bool) -> Envelope:
    for field in _BASIS:
        answer.lack(field, needs=needs, why=why)
    return answer.envelope("not_enough_information" if known else "not_applicable")
