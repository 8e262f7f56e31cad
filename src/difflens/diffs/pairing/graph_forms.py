"""Compares what a graph holds in another form than the model: folded into a layer, or in part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isqrt
from typing import TYPE_CHECKING, Any, NamedTuple

from difflens.core.protocols import TensorSource
from difflens.core.record import Record
from difflens.core.records import Delta, Kind, Pair, Recipe, TensorInfo
from difflens.measure.chunks import Side
from difflens.measure.values import Values

from .how import FOLDED_IN, GRAPH

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Fold(NamedTuple):
    """A pair whose weight or bias has a norm folded into it, and the parts of the norm."""

    pair: Pair
    part: str  # weight or bias
    bias: str  # of the convolution; empty if it has none
    norm: str  # the path of the norm, including the last dot
    axis: int  # of the output channels of the weight


class Graphed(NamedTuple):
    """The pairs, those with a folded batch norm, and tables of which the graph may hold a part."""

    pairs: list[Pair]
    folds: list[Fold]
    tables: list[tuple[Pair, Pair]]
    graph_is_left: bool


def is_by_heads(table: TensorInfo, piece: TensorInfo) -> bool:
    """Can the piece be a lookup in a table of relative positions: heads by queries by keys?"""
    return len(table.shape) == 2 and piece.shape[:-2] in (table.shape[1:], (1, *table.shape[1:]))


def compare_other_forms(
    graphed: Graphed, left: TensorSource, right: TensorSource
) -> dict[Pair, Delta]:
    """Return the deltas of pairs that a graph holds folded into a layer, or in part."""
    side = {"graph_is_left": graphed.graph_is_left}
    model, graph = (right, left) if graphed.graph_is_left else (left, right)
    folds = compare_folds(graphed.folds, model, graph, **side)
    return folds | compare_parts(graphed.tables, left, right, **side)


# The weight becomes weight times gain over sqrt(variance + epsilon), the bias (bias - mean) times
# the same, plus the shift. No file holds epsilon: those in use are tried. Values count as the same
# where they are within the rounding of that computation in their own type. Memory: one
# convolution's weights in F64.

_EPSILONS = (1e-5, 1e-3, 1e-6, 1e-4, 1e-12, 1e-8, 2e-5, 1e-2)
_ROUNDINGS = 8  # of one value: a root, a quotient, a product and a sum, each of rounded terms
_UNITS = {"F64": 2.0**-53, "F32": 2.0**-24, "F16": 2.0**-11, "BF16": 2.0**-8}


class Apart(Record, frozen=True):
    """How far a tensor is from the fold of its parts."""

    relative_l2: float | None
    max_abs: float
    changed_count: int
    within_storage_rounding: bool = False

    def figures(self) -> dict[str, Any]:
        """Return the numbers people see, by name."""
        return self.to_dict()


def compare_folds(
    folds: Iterable[Fold], plain: TensorSource, graph: TensorSource, *, graph_is_left: bool
) -> dict[Pair, Delta]:
    """Compare every pair with the fold of its parts: identical within its rounding, or changed."""
    deltas: dict[Pair, Delta] = {}
    for fold in folds:
        pair = fold.pair
        weight, made = (pair.right, pair.left) if graph_is_left else (pair.left, pair.right)
        if not weight or not made or weight.shape != made.shape or made.dtype not in _UNITS:
            continue
        side = "right" if graph_is_left else "left"
        described = Pair(
            pair.left,
            pair.right,
            pair.how,
            f"{side} {FOLDED_IN}",
            pair.left_recipe,
            pair.right_recipe,
        )
        apart = _apart(fold, weight, made, plain, graph)
        changed = apart is not None and apart.changed_count
        deltas[pair] = (
            Delta(described, "changed", (apart,)) if changed else Delta(described, "identical")
        )
    return deltas


def _apart(
    fold: Fold, weight: TensorInfo, made: TensorInfo, plain: TensorSource, graph: TensorSource
) -> Apart | None:
    """Measure the distance to the nearest fold; epsilon is the one that fits best."""
    import numpy as np

    wanted = _numbers(graph, made.name)
    best: Apart | None = None
    for value, size in _values(fold, weight, plain):
        off = np.abs(value - wanted)
        beyond = int(np.count_nonzero(~(off <= _ROUNDINGS * _UNITS[made.dtype] * size)))
        if best is None or beyond < best.changed_count:
            norm = float(np.linalg.norm(value))
            distance = float(np.linalg.norm(off)) / norm if norm else None
            best = Apart(distance, float(off.max(initial=0.0)), beyond)
        if not beyond:
            break
    return best


def _values(
    fold: Fold, weight: TensorInfo, plain: TensorSource
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Yield the fold for each epsilon, with the size of the terms that were rounded."""
    import numpy as np

    mean, variance = (_numbers(plain, fold.norm + end) for end in ("running_mean", "running_var"))
    gain, shift = (
        _numbers(plain, fold.norm + end) if fold.norm + end in plain.tensors else np.asarray(other)
        for end, other in (("weight", 1.0), ("bias", 0.0))
    )
    part = fold.part == "weight"
    own = _numbers(plain, weight.name if part else fold.bias) if part or fold.bias else 0 * mean
    for epsilon in _EPSILONS:
        scale = gain / np.sqrt(variance + epsilon)
        if part:
            across = [1] * own.ndim
            across[fold.axis] = -1
            value = own * scale.reshape(across)
            yield value, np.abs(value)
        else:
            size = (np.abs(own) + np.abs(mean)) * np.abs(scale) + np.abs(shift)
            yield (own - mean) * scale + shift, size


def _numbers(source: TensorSource, name: str) -> NDArray[Any]:
    import numpy as np

    return np.asarray(Values(Side.of(source, source.tensors[name])).array(), np.float64)


_MOST = 1 << 24  # elements of what the graph holds: a context of 16,384 by 1,024

Spans = tuple[tuple[int, int], ...]


class Rounded(Record, frozen=True):
    """Rows that are the same once they are rounded to the coarser type."""

    changed_count: int
    within_storage_rounding: bool = True

    def figures(self) -> dict[str, Any]:
        """Return the numbers people see, by name."""
        return self.to_dict()


def compare_parts(
    proposed: Iterable[tuple[Pair, Pair]],
    left: TensorSource,
    right: TensorSource,
    *,
    graph_is_left: bool,
) -> dict[Pair, Delta]:
    """Find the proposals whose rows are rows of the table, in a run or one again and again.

    Each delta stands under the identities of both lone pairs.
    """
    deltas: dict[Pair, Delta] = {}
    plain, graph = (right, left) if graph_is_left else (left, right)
    for table, piece in proposed:
        whole, part = (table.right, piece.left) if graph_is_left else (table.left, piece.right)
        if not whole or not part or table in deltas or piece in deltas:
            continue
        rounds = part.dtype == "F16" and whole.dtype in ("F32", "F64")
        if not (rounds or part.dtype == whole.dtype) or not 0 < part.count <= _MOST:
            continue
        sides = plain, graph, whole, part
        if is_by_heads(whole, part) and _is_looked_up(*sides, rounds=rounds):
            look = TensorInfo(whole.name, whole.dtype, part.shape, whole.stored)
            delta = _delta(look, part, "positions looked up", None, graph_is_left=graph_is_left)
        elif (spans := _spans(*sides, rounds=rounds)) is not None:
            delta = _rows(whole, part, spans, graph_is_left=graph_is_left)
        else:
            continue
        deltas[table] = deltas[piece] = delta
    return deltas


def _is_looked_up(
    plain: TensorSource, graph: TensorSource, whole: TensorInfo, part: TensorInfo, *, rounds: bool
) -> bool:
    """Is the part what a rule of relative positions takes out of the table?"""
    import numpy as np

    table: Any = Values(Side.of(plain, whole)).array()
    table = (table.astype(np.float16) if rounds else table).T
    wanted: Any = Values(Side.of(graph, part)).array().reshape(part.shape[-3:])
    rules = row_numbers(whole.name, whole.shape[0], *part.shape[-2:])
    return any(np.array_equal(table[:, rows], wanted) for rows in rules)


def _spans(
    plain: TensorSource, graph: TensorSource, whole: TensorInfo, part: TensorInfo, *, rounds: bool
) -> Spans | None:
    """Say which rows of the table the part is, once; None if it is not."""
    import numpy as np

    copies: Any = Values(Side.of(graph, part)).array().reshape(-1, *part.shape[-2:])
    rows = copies[0]
    if not bool((copies == rows).all()):
        return None
    look = TensorInfo(whole.name, whole.dtype, (whole.count // part.shape[-1], part.shape[-1]))
    table, count, begin = Values(Side.of(plain, look)), len(rows), 0
    for exact in table.rows():
        some = exact.astype(np.float16) if rounds else exact
        for at in np.flatnonzero((some == rows[0]).all(axis=1)):
            start = begin + int(at)
            if bool((rows == rows[0]).all()):
                return ((start, 1),) * count
            if start + count <= look.shape[0]:
                run = table.some_rows(range(start, start + count))
                if np.array_equal(run.astype(np.float16) if rounds else run, rows):
                    return ((start, count),)
        begin += len(some)
    return None


def _rows(whole: TensorInfo, part: TensorInfo, spans: Spans, *, graph_is_left: bool) -> Delta:
    first, count = spans[0]
    transform = f"rows {first} to {first + count - 1} of {whole.count // part.shape[-1]}"
    copies = part.count // (part.shape[-1] * part.shape[-2])
    look = TensorInfo(whole.name, whole.dtype, part.shape, whole.stored)
    recipe = Recipe(whole.name, spans * copies, length=whole.count // part.shape[-1])
    return _delta(look, part, transform, recipe, graph_is_left=graph_is_left)


def _delta(
    look: TensorInfo,
    part: TensorInfo,
    transform: str,
    recipe: Recipe | None,
    *,
    graph_is_left: bool,
) -> Delta:
    rounded = (Rounded(part.count),) if part.dtype != look.dtype else ()
    kind: Kind = "recast" if rounded else "identical"
    if graph_is_left:
        return Delta(Pair(part, look, GRAPH, f"right {transform}", None, recipe), kind, rounded)
    return Delta(Pair(look, part, GRAPH, f"left {transform}", recipe, None), kind, rounded)


# An exporter with fixed sizes looks the rows up once and keeps the result: heads by queries by
# keys.

_FARTHEST = 128  # T5's `relative_attention_max_distance`, in all that were published


def row_numbers(name: str, rows: int, queries: int, keys: int) -> Iterator[NDArray[Any]]:
    """Yield, for each rule that may be meant, the row of every query (down) and key (across)."""
    import numpy as np

    ahead = np.arange(keys)[None, :] - np.arange(keys - queries, keys)[:, None]
    if 4 <= rows < 2 * _FARTHEST and ("encoder" in name or "decoder" in name):
        yield _buckets(ahead, rows, both_ways="encoder" in name)
    side = isqrt(queries)
    reach = 2 * side - 1
    if side * side == queries == keys and reach * reach == rows:
        down, across = np.divmod(np.arange(queries), side)
        yield np.asarray(  # a window of Swin
            (down[:, None] - down[None, :] + side - 1) * reach
            + (across[:, None] - across[None, :] + side - 1)
        )


def _buckets(ahead: NDArray[Any], rows: int, *, both_ways: bool) -> NDArray[Any]:
    """Count T5's buckets: one for each near distance, then wider ones, as the logarithm grows."""
    import numpy as np

    half = rows // 2 if both_ways else rows
    start = np.where(ahead > 0, half, 0) if both_ways else 0
    distance = np.abs(ahead) if both_ways else np.maximum(-ahead, 0)
    near = max(half // 2, 1)
    grown = np.log(np.maximum(distance, 1) / near) / np.log(_FARTHEST / near) * (half - near)
    far = np.minimum(near + grown.astype(np.int64), half - 1)
    return np.asarray(start + np.where(distance < near, distance, far))
