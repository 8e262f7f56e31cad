"""The residual stream seen in other axes: one orthogonal matrix Q in everything that touches it.

Q need not be known. Rows A of the embedding became A Q, a matrix W that reads the stream became
W Q, and one that writes it became Q^T W. Then A' W'^T = A W^T, and A' W' = A W: products that do
not depend on Q, and that agree for all matrices only if Q is the same everywhere. A gain that was
folded into W on the way is tried as well; where the other side of W was turned too (as QuaRot turns
values and the units before the last matrix), the lengths of these products are still the same.
"""

from __future__ import annotations

from math import isclose, sqrt
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from difflens.core.records import MOVED, Delta
from difflens.measure.scan import Scan
from difflens.models.anatomy.places import where
from difflens.models.anatomy.roles import block, is_parameter

from ...answer import Answer
from ...diff import Diff
from ...evidence.records import Evidence
from ..changes.explained import Explained
from ..representations import embedding_table
from .records import counted, explained

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ROWS = 64  # rows of the embedding
_OUTPUTS = 512  # rows of a matrix that reads
_APART = 0.1  # of what the products of unrelated matrices differ by
_TURNED = 0.5  # correlation with before below which a table was turned
_SAME_SIZE = 0.02  # relative, of all of the table


class Anchor(NamedTuple):
    """Some rows of the embedding, before and after."""

    before: NDArray[Any]
    after: NDArray[Any]

    @property
    def width(self) -> int:
        """The width of the stream."""
        return int(self.before.shape[1])


def rotated_stream(diff: Diff, evidence: Evidence, answer: Answer) -> list[Explained]:  # noqa: ARG001
    """Explain everything that was turned by one orthogonal matrix; headers and scans come first."""
    anchor, name = _anchor(diff)
    if anchor is None:
        return []
    gains = _gains(diff, anchor.width)
    names, folded, both = [name], set(), []
    for delta in diff.deltas:
        left = delta.pair.left
        if left is None or left.name == name or not _touches(delta, anchor.width):
            continue
        found = _explained(diff, delta, anchor, gains)
        if found is None:
            continue
        names.append(left.name)
        folded |= {found} - {"", "both"}
        both += [left.name] if found == "both" else []
    if len(names) < 3:
        return []
    names += sorted(folded)
    numbers = {"width": anchor.width, "matrices": len(names) - len(folded), "gains": len(folded)}
    text = f"the residual stream (width {anchor.width:,}) rotated by one orthogonal matrix"
    if folded:
        text += f", {counted(len(folded), 'gain')} folded in"
    if both:
        text += f"; {where(both)} turned on the other side too"
    return [explained(diff, "rotated", names, text, numbers)]


def _anchor(diff: Diff) -> tuple[Anchor | None, str]:
    """Return rows of the embedding if they kept their products, and are in no other order."""
    import numpy as np

    table = embedding_table(diff)
    delta = next((each for each in diff.deltas if table and each.pair.left == table.left), None)
    if table is None or delta is None or not _may_be_turned(delta):
        return None, ""
    rows = np.unique(np.linspace(0, table.left.shape[0] - 1, _ROWS).astype(np.int64)).tolist()
    before = diff.values("left", table.left.name).some_rows(rows).astype(np.float64)
    after = diff.values("right", table.right.name).some_rows(rows).astype(np.float64)
    if not (np.isfinite(before).all() and np.isfinite(after).all()):
        return None, ""
    ordered = [np.sort(np.abs(side), axis=1) for side in (before, after)]
    if np.linalg.norm(ordered[0] - ordered[1]) <= 1e-2 * np.linalg.norm(before):
        return None, ""  # the same numbers in another order
    if not _agree(before @ before.T, after @ after.T, before, before):
        return None, ""
    return Anchor(before, after), table.left.name


def _may_be_turned(delta: Delta) -> bool:
    """Has it the length of before, and no correlation with it?"""
    scan = delta.measured(Scan) if delta.kind in MOVED else None
    if scan is None or scan.pairs < scan.count or not scan.left_square_sum > 0:
        return False
    same = isclose(scan.left_square_sum, scan.right_square_sum, rel_tol=_SAME_SIZE)
    return same and scan.dot < _TURNED * scan.left_square_sum


def _agree(
    one: NDArray[Any], other: NDArray[Any], rows: NDArray[Any], columns: NDArray[Any]
) -> bool:
    """Are two tables of products the same, measured by what those of strangers differ by?"""
    import numpy as np

    size = np.outer(np.linalg.norm(rows, axis=1), np.linalg.norm(columns, axis=1))
    known = size > 0
    if not known.any():
        return False
    apart = ((one - other)[known] / size[known]) * sqrt(rows.shape[1])
    return bool(np.sqrt(np.square(apart).mean()) <= _APART)


def _touches(delta: Delta, width: int) -> bool:
    """Is it a parameter of the width of the stream that moved?"""
    left, right = delta.pair.left, delta.pair.right
    if delta.kind not in MOVED or not (left and right) or left.shape != right.shape:
        return False
    return (
        len(left.shape) <= 2
        and width in left.shape
        and is_parameter(delta.name, left.dtype, right.dtype)
        and not delta.pair.transform
    )


def _gains(diff: Diff, width: int) -> dict[str, NDArray[Any]]:
    """Read the vectors of the stream's width that are gone, or that are all ones now."""
    found = {}
    for delta in diff.deltas:
        left = delta.pair.left
        if left is None or left.shape != (width,) or not is_parameter(left.name, left.dtype):
            continue
        scan = delta.measured(Scan) if delta.kind in MOVED else None
        ones = scan is not None and scan.right_min == scan.right_max == 1.0
        if ones or delta.kind == "removed":
            found[left.name] = diff.values("left", left.name).array().astype("f8")
    return found


def _explained(
    diff: Diff, delta: Delta, anchor: Anchor, gains: dict[str, NDArray[Any]]
) -> str | None:
    """Return the gain that was folded in, "" without one, "both" if its other side turned too."""
    left = delta.pair.left
    if left is None or left.name in gains:
        return None
    if left.shape[-1] == anchor.width:
        found = _read(diff, delta, anchor, gains)
        if found is not None:
            return found
    if len(left.shape) == 2 and left.shape[0] == anchor.width:
        return _written(diff, delta, anchor)
    return None


def _read(diff: Diff, delta: Delta, anchor: Anchor, gains: dict[str, NDArray[Any]]) -> str | None:
    import numpy as np

    one, other = (_some(diff, delta, side) for side in ("left", "right"))
    product = anchor.after @ other.T
    is_whole = delta.pair.left is not None and delta.pair.left.shape[0] == len(one) > 1
    near = [name for name in gains if block(name) == block(delta.name)]
    for name in ["", *near]:
        gain = gains[name] if name else np.ones(anchor.width)
        before = anchor.before * gain
        wanted = before @ one.T
        if _agree(wanted, product, before, one):
            return name
        if is_whole and _has_same(wanted, product):
            return name or "both"
    return None


def _some(diff: Diff, delta: Delta, side: Any) -> NDArray[Any]:
    """Read rows of a matrix that reads: all of one that is not large, for lengths need them all."""
    import numpy as np

    info = delta.pair.left if side == "left" else delta.pair.right
    values = diff.values(side, info.name if info else "")
    rows = values.matrix_shape[0] if len(values.shape) > 1 else 1
    if rows == 1:
        return np.asarray(values.array().reshape(1, -1), np.float64)
    if rows <= 8 * _OUTPUTS:
        return np.concatenate(list(values.rows())).astype(np.float64)
    chosen = np.unique(np.linspace(0, rows - 1, _OUTPUTS).astype(np.int64))
    return np.asarray(values.some_rows(chosen.tolist()), np.float64)


def _has_same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Have the rows of two tables of products the same lengths?

    Those of strangers of one size differ by about 1 / sqrt(2 n), where n products make a length.
    """
    import numpy as np

    lengths = [np.linalg.norm(each, axis=1) for each in (one, other)]
    if not (lengths[0] > 0).all():
        return False
    apart = np.sqrt(np.square(lengths[1] / lengths[0] - 1).mean())
    return bool(apart <= _APART / sqrt(2 * one.shape[1]))


def _written(diff: Diff, delta: Delta, anchor: Anchor) -> str | None:
    import numpy as np

    products = []
    sizes = np.zeros(0)
    for side, rows in _sides(anchor):
        info = delta.pair.left if side == "left" else delta.pair.right
        values, at = diff.values(side, info.name if info else ""), 0
        total = np.zeros((len(rows), values.matrix_shape[1]))
        squares = np.zeros(values.matrix_shape[1])
        for part in values.rows():
            wide = part.astype(np.float64)
            total += rows[:, at : at + len(part)] @ wide
            squares += np.square(wide).sum(axis=0)
            at += len(part)
        products.append(total)
        sizes = sizes if len(sizes) else np.sqrt(squares)
    lengths = np.linalg.norm(anchor.before, axis=1)
    size = np.outer(lengths, sizes)
    known = size > 0
    apart = (products[0] - products[1])[known] / size[known] * sqrt(anchor.width)
    if known.any() and np.sqrt(np.square(apart).mean()) <= _APART:
        return ""
    return "both" if _has_same(*products) else None


def _sides(anchor: Anchor) -> list[tuple[Literal["left", "right"], NDArray[Any]]]:
    return [("left", anchor.before), ("right", anchor.after)]
