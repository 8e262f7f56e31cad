"""Heads seen in other axes: values turned, and turned back by the matrix that reads them.

One orthogonal matrix R for each head makes R V of the values V, and O R^T of the outputs O. It need
not be known: V^T V and O V stay what they were.
"""

from __future__ import annotations

from math import isclose
from typing import TYPE_CHECKING, Any

from difflens.core.records import MOVED, Delta
from difflens.measure.scan import Scan
from difflens.models.anatomy.places import where
from difflens.models.anatomy.roles import block, is_parameter, role

from ...answer import Answer
from ...diff import Diff
from ...evidence.records import Evidence
from ..changes.explained import Explained
from .records import counted, explained, name_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TURNED = 0.9  # correlation with before below which a matrix was turned
_CLOSE = 1e-2  # rounding of BF16 leaves less


def turned_heads(diff: Diff, evidence: Evidence, answer: Answer) -> list[Explained]:  # noqa: ARG001
    """Explain the values and outputs whose product stayed; headers and scans come first."""
    names: list[str] = []
    for value, output in _pairs(diff):
        if _is_undone(*(_sides(diff, each) for each in (value, output))):
            names += [name_of(value), name_of(output)]
    if not names:
        return []
    number = len(names) // 2
    text = (
        f"the heads of {counted(number, 'layer')} rotated, and turned back by the matrix that reads"
        f" them: {where(names)}"
    )
    return [explained(diff, "rotated", names, text, {"matrices": len(names)})]


def _pairs(diff: Diff) -> list[tuple[Delta, Delta]]:
    turned = {
        (role(delta.name), block(delta.name)): delta for delta in diff.deltas if _is_turned(delta)
    }
    return [
        (delta, output)
        for (part, place), delta in turned.items()
        if part == "attention_v" and (output := turned.get(("attention_o", place)))
        if _shape(delta)[0] == _shape(output)[1]
    ]


def _shape(delta: Delta) -> tuple[int, ...]:
    return delta.pair.left.shape if delta.pair.left else ()


def _is_turned(delta: Delta) -> bool:
    """Is it a matrix of the size of before, and another one?"""
    left, right = delta.pair.left, delta.pair.right
    if delta.kind not in MOVED or not (left and right) or len(left.shape) != 2:
        return False
    scan = delta.measured(Scan)
    if scan is None or not is_parameter(delta.name, left.dtype, right.dtype):
        return False
    same = isclose(scan.left_square_sum, scan.right_square_sum, rel_tol=_CLOSE)
    ends = (scan.left_min, scan.right_min), (scan.left_max, scan.right_max)
    reordered = all(isclose(*each, rel_tol=_CLOSE) for each in ends)  # the same values elsewhere
    return same and not reordered and abs(scan.dot) < _TURNED * scan.left_square_sum


def _sides(diff: Diff, delta: Delta) -> tuple[NDArray[Any], NDArray[Any]]:
    left, right = delta.pair.left, delta.pair.right
    if left is None or right is None:
        raise ValueError(f"{delta.name} is on one side only")
    before = diff.values("left", left.name, delta.pair).array()
    after = diff.values("right", right.name, delta.pair).array()
    return before.astype("f8"), after.astype("f8")


def _is_undone(
    value: tuple[NDArray[Any], NDArray[Any]], output: tuple[NDArray[Any], NDArray[Any]]
) -> bool:
    inner = [each.T @ each for each in value]
    through = [up @ down for up, down in zip(output, value, strict=True)]
    return all(_is_near(*each) for each in (inner, through))


def _is_near(before: NDArray[Any], after: NDArray[Any]) -> bool:
    import numpy as np

    return bool(np.linalg.norm(after - before) <= _CLOSE * np.linalg.norm(before))
