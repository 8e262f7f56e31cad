"""How the heads of attention differ: their circuits, which no rotation inside a head moves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from difflens.core.policy import Threshold

from ..answer import Answer
from ..diff import Diff
from ..evidence.records import Evidence
from ..methods.attention.layers import (
    KINDS,
    SIDES,
    Attention,
    attention,
    cosines,
    head_table,
    parts,
    ranks,
    whole_matrices,
)
from ..methods.attention.reading import Layer, Reader
from . import analysis

if TYPE_CHECKING:
    from numpy.typing import NDArray


_COUNTS = ("head_count", "kv_heads", "head_dim", "layers", "heads_moved")
_CONFIG = "--config-left/--config-right, or `heads` in [attention_analysis] of --policy"


@analysis(
    needs="values",
    thresholds={
        "heads": Threshold(None, "the number of query heads, where no configuration says it"),
        "moved_cosine": Threshold(0.9, "below this circuit cosine a head counts as moved"),
        "listed": Threshold(5, "how many moved heads are told one by one"),
    },
    fields={
        "heads_moved": "heads with a QK or OV cosine below `moved_cosine`, of those compared",
        "layers": "attentions that both sides have",
        "head_count": "query heads a layer, by side",
        "circuit_cosine": "⟨L, R⟩ / (‖L‖ ‖R‖) of the circuits, over heads",
        "qk_rank": "median over heads of stable and effective rank of QK",
        "ov_rank": "median over heads of stable and effective rank of OV",
        "reordered_heads": "right heads that another left head fits, by the Hungarian method",
        "kv_heads": "key and value heads a layer, by side: rows of k over the width of a head",
        "head_dim": "inputs of the output projection over its heads, by side",
        "whole_matrices": "‖d‖ / ‖left‖ and cosine of each part, over tensors that are not"
        " identical",
        "per_head": "QK = WqᵀWk and OV = Wo Wv of every head: norms, cosine across sides, ranks",
    },
)
def attention_analysis(diff: Diff, evidence: Evidence, answer: Answer) -> None:
    """How each attention head's QK and OV circuits differ between the two models."""
    whole = whole_matrices(parts(diff))
    if not whole:
        why = f"none of the {len(diff.deltas)} tensors is a projection of attention on both sides"
        answer.lack_rest(needs="attention", why=why, status="not_applicable")
        return
    found = attention(diff, evidence, answer["heads"])
    rows = head_table(found.layers)
    answer.say("whole_matrices", whole, uncertainty="exact")
    answer.say("layers", len(found.layers), uncertainty="exact")
    needs, why = _missing(found)
    for name, value in _fields(diff, found, rows, answer["moved_cosine"]).items():
        exact = "exact" if name in _COUNTS else None
        answer.either(name, value, uncertainty=exact, needs=needs, why=why)
    for line in _assumptions(found, rows):
        answer.assume(line)
    _findings(answer, found, rows)


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
    """Return one number a side, or a list where layers differ; None if no layer was cut."""
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
                changes.append(
                    {"layer": layer.depth, "head": head, "left_head": partner, "cosine": cosine}
                )
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


# Heads of a group share keys and values, so groups are matched as wholes and heads within them: the
# only re-orderings that leave the function as it was.

WIDEST = 4096  # inputs of q, above which the products of all heads with all are not made


def matched_heads(diff: Diff, attention: Attention, layer: Layer) -> list[tuple[int, float]] | None:
    """Return for each right head its left partner and their mean circuit cosine.

    None if the sides are cut differently, or it would take too much memory.
    """
    left, right = layer.left, layer.right
    if left is None or right is None or layer.qk is None or layer.ov is None:
        return None
    alike = (left.heads, left.kv_heads, left.hidden) == (right.heads, right.kv_heads, right.hidden)
    if not alike or max(left.heads * left.size, right.heads * right.size) > WIDEST:
        return None
    reader = Reader(diff, attention.networks, {})
    scores = (
        _cosines(reader, layer, "q", "k", _outer(layer.qk.left_norm, layer.qk.right_norm))
        + _cosines(reader, layer, "o", "v", _outer(layer.ov.left_norm, layer.ov.right_norm))
    ) / 2
    return assigned(scores, left.group)


def assigned(scores: NDArray[Any], group: int) -> list[tuple[int, float]]:
    """Assign left heads (rows) to right heads (columns) by the largest sum, group to group.

    The Hungarian method, twice: heads within each pair of groups, then groups among themselves.
    """
    import numpy as np
    from scipy.optimize import linear_sum_assignment

    groups = len(scores) // group
    inner: dict[tuple[int, int], tuple[NDArray[Any], NDArray[Any]]] = {}
    total = np.empty((groups, groups))
    for before in range(groups):
        for after in range(groups):
            part = scores[before * group :, after * group :][:group, :group]
            rows, columns = linear_sum_assignment(part, maximize=True)
            inner[before, after] = rows, columns
            total[before, after] = part[rows, columns].sum()
    partner: dict[int, tuple[int, float]] = {}
    for before, after in zip(*linear_sum_assignment(total, maximize=True), strict=True):
        for row, column in zip(*inner[before, after], strict=True):
            left, right = int(before * group + row), int(after * group + column)
            partner[right] = left, float(scores[left, right])
    return [partner[head] for head in range(len(scores))]


def _outer(left: NDArray[Any] | None, right: NDArray[Any] | None) -> NDArray[Any]:
    import numpy as np

    if left is None or right is None:
        raise ValueError("both sides of a layer have norms where both have heads")
    return np.outer(left, right)


def _cosines(
    reader: Reader, layer: Layer, first: str, second: str, norms: NDArray[Any]
) -> NDArray[Any]:
    """Return the circuit cosine of every left head with every right head."""
    import numpy as np

    one = _across(reader, layer, first)
    other = _across(reader, layer, second)
    group = len(one) // len(other)
    inner = np.empty(norms.shape)
    for head in range(len(one)):
        shared = np.repeat(other[head // group], group, axis=1)  # right heads share keys too
        inner[head] = np.einsum("ihj,ihj->h", one[head], shared, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.nan_to_num(np.where(norms > 0, inner / norms, 0.0), posinf=0.0, neginf=0.0)


def _across(reader: Reader, layer: Layer, part: str) -> NDArray[Any]:
    """Multiply every left head's rows with every right head's: heads x size x heads x size."""
    import numpy as np

    if layer.left is None or layer.right is None:
        raise ValueError("only a layer that both sides have is matched")
    left, right = reader.rows("left", layer.left, part), reader.rows("right", layer.right, part)
    with np.errstate(invalid="ignore", over="ignore"):
        flat = left.reshape(-1, left.shape[2]) @ right.reshape(-1, right.shape[2]).T
    across: NDArray[Any] = flat.reshape(*left.shape[:2], *right.shape[:2])
    return across
