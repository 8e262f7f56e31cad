"""Leftovers matched by what they hold, where neither names nor roles say who is who.

One pass over each leftover gives figures that no order of its elements changes.
They only propose: a pair is taken where its bytes are the same once a transpose,
dimensions of 1 or an order of rows are undone. So what it pairs is identical, and
a wrong pair cannot come of it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import isclose
from typing import NamedTuple

from ..dtypes import OPAQUE, bits
from ..protocols import Engine, TensorSource
from ..records import Delta, Pair, Recipe, TensorInfo
from .chunks import Side, steps
from .pairs import deltas
from .scan import Scan

CONTENT = "content"
SHUFFLED = "rows shuffled"

Wanted = Iterable[tuple[TensorInfo | None, Recipe | None]]
Derive = Callable[[TensorSource, Wanted], TensorSource]

_MOST = 5_000  # leftovers a side; more are two different models, not one under other names
_FEWEST = 16  # elements; a handful of equal numbers may be chance
_MOST_ROWS = 1 << 16
_CLOSE = 1e-9  # sums depend on the order of their terms by rounding alone
# Orders of gates: torch and Keras i f g o, ONNX i o f g, TensorFlow 1 i g f o; for the three
# gates of a GRU, torch r z n, ONNX and Keras z r n.
_GATES = {(0, 3, 1, 2), (0, 2, 3, 1), (0, 2, 1, 3), (0, 3, 2, 1), (1, 0, 2)}


class _Work(NamedTuple):
    """Where to measure, how to follow recipes, and whether statistics are always wanted."""

    engine: Engine
    derive: Derive
    always: bool


class _Held(NamedTuple):
    """A leftover with what one pass over it tells."""

    lone: Pair
    info: TensorInfo
    exact: tuple[float | str, ...]
    sums: tuple[float, float]


def by_content(
    lone: Iterable[Pair],
    left: TensorSource,
    right: TensorSource,
    engine: Engine,
    derive: Derive,
    *,
    always: bool = False,
) -> dict[int, Delta]:
    """Match lone tensors of both sides; each delta stands under the identities of both lone pairs.

    `derive` makes tensors by recipe. What two tensors of a side could be stays unpaired.
    """
    lone = list(lone)
    work = _Work(engine, derive, always)
    found = _matched(lone, left, right, work)
    rest = [each for each in lone if id(each) not in found]
    found |= _in_halves(rest, left, right, work, whole_is_left=True)
    found |= _in_halves(rest, left, right, work, whole_is_left=False)
    return found


def _matched(
    lone: list[Pair], left: TensorSource, right: TensorSource, work: _Work
) -> dict[int, Delta]:
    lefts = [(each, each.left) for each in lone if each.left and not each.right]
    rights = [(each, each.right) for each in lone if each.right and not each.left]
    if not (lefts and rights) or max(len(lefts), len(rights)) > _MOST:
        return {}
    looks = {_look(info) for _, info in lefts} & {_look(info) for _, info in rights} - {None}
    held = [
        list(_fingerprints([each for each in side if _look(each[1]) in looks], source, work.engine))
        for side, source in ((lefts, left), (rights, right))
    ]
    found: dict[int, Delta] = {}
    for one, other in _proposals(*held):
        for pair in _layouts(Side(left, one.info), Side(right, other.info)):
            before = work.derive(left, [(pair.left, pair.left_recipe)])
            after = work.derive(right, [(pair.right, pair.right_recipe)])
            delta = next(deltas([pair], before, after, work.engine, always=work.always))
            if delta.kind == "identical":
                found[id(one.lone)] = found[id(other.lone)] = delta
                break
    return found


def _in_halves(
    lone: list[Pair], left: TensorSource, right: TensorSource, work: _Work, *, whole_is_left: bool
) -> dict[int, Delta]:
    """Match vectors of which the other side keeps two in one: ONNX does so with LSTM biases."""
    sides: list[list[tuple[Pair, TensorInfo]]] = [[], []]
    for each in lone:
        info = each.left or each.right
        if info and info.count in info.shape and _look(info):
            sides[(each.left is not None) == whole_is_left].append((each, info))
    parts, wholes = sides
    lengths = {(info.dtype, 2 * info.count) for _, info in parts}
    wholes = [(each, info) for each, info in wholes if (info.dtype, info.count) in lengths]
    if not wholes or len(parts) < 2:
        return {}
    source = left if whole_is_left else right
    flat = ((_seen_as(info, info.name, info.count), Recipe(info.name)) for _, info in wholes)
    cut = [_halves(info) for _, info in wholes]
    source = work.derive(work.derive(source, flat), (half for both in cut for half in both))
    pieces = [
        [Pair(half, None) if whole_is_left else Pair(None, half) for half, _ in both]
        for both in cut
    ]
    among = [*(piece for both in pieces for piece in both), *(each for each, _ in parts)]
    sources = (source, right) if whole_is_left else (left, source)
    matched = _matched(among, *sources, work)
    found: dict[int, Delta] = {}
    for (whole, _), (first, second) in zip(wholes, pieces, strict=True):
        if id(first) in matched and id(second) in matched:
            both_deltas = {id(matched[id(piece)]) for piece in (first, second)}
            found[id(whole)] = matched[id(first)]
            for part, _ in parts:
                if id(part) in matched and id(matched[id(part)]) in both_deltas:
                    found[id(part)] = matched[id(part)]
    return found


def _halves(info: TensorInfo) -> list[tuple[TensorInfo, Recipe]]:
    half = info.count // 2
    return [
        (_seen_as(info, f"{info.name}[{at}]", half), Recipe(info.name, ((at * half, half),)))
        for at in (0, 1)
    ]


def _seen_as(info: TensorInfo, name: str, length: int) -> TensorInfo:
    return TensorInfo(name, info.dtype, (length,), info.stored)


def once(chosen: Iterable[Pair], known: Mapping[int, Delta]) -> Iterator[Pair]:
    """Leave out the left of two lone pairs that turned out to be one, unless it stands alone."""
    chosen = list(chosen)
    told = {id(known[id(each)]) for each in chosen if each.right and id(each) in known}
    for each in chosen:
        if each.right or id(known.get(id(each))) not in told:
            yield each


def is_known_layout(pair: Pair) -> bool:
    """Was it found by content, in a layout that converters write?

    Rows in an order that nobody writes are the same numbers, but hardly the same network.
    """
    return pair.how == CONTENT and SHUFFLED not in (pair.transform or "")


def _look(info: TensorInfo) -> tuple[str, int] | None:
    if info.count < _FEWEST or info.dtype in OPAQUE:
        return None
    return info.dtype, info.count


def _fingerprints(
    leftovers: list[tuple[Pair, TensorInfo]], source: TensorSource, engine: Engine
) -> Iterator[_Held]:
    """Describe every leftover that is not constant."""
    scans = deltas((Pair(info, None) for _, info in leftovers), source, source, engine)
    for (lone, info), delta in zip(leftovers, scans, strict=True):
        scan = delta.measured(Scan)
        if scan and scan.left_min < scan.left_max:
            infinite = scan.left_positive_infinite, scan.left_negative_infinite
            counts = info.count, scan.left_zeros, scan.left_nan, *infinite
            exact = info.dtype, *counts, scan.left_min, scan.left_max
            yield _Held(lone, info, exact, (scan.left_abs_sum, scan.left_m2))


def _proposals(lefts: list[_Held], rights: list[_Held]) -> list[tuple[_Held, _Held]]:
    """Give those that can only be each other."""
    among: dict[tuple[float | str, ...], list[_Held]] = defaultdict(list)
    for each in sorted(rights, key=lambda held: held.sums):
        among[each.exact].append(each)
    fits = [(one, other) for one in lefts for other in _alike(one, among.get(one.exact, []))]
    partners = Counter(id(held) for fit in fits for held in fit)
    return [fit for fit in fits if partners[id(fit[0])] == partners[id(fit[1])] == 1]


def _alike(one: _Held, others: list[_Held]) -> Iterator[_Held]:
    """Yield those whose sums are the same but for rounding; the others are sorted by them."""
    first = bisect_left(others, one.sums[0] * (1 - 2 * _CLOSE), key=lambda held: held.sums[0])
    for other in others[first:]:
        if not isclose(one.sums[0], other.sums[0], rel_tol=_CLOSE):
            if other.sums[0] > one.sums[0]:
                return
        elif isclose(one.sums[1], other.sums[1], rel_tol=_CLOSE):
            yield other


def _layouts(left: Side, right: Side) -> Iterator[Pair]:
    """Yield how the two may be the same tensor, the plainest first."""
    before, after = left.info, right.info
    core, other = (tuple(d for d in info.shape if d != 1) for info in (before, after))
    if core == other:
        seen = f"{list(after.shape)} seen as {list(before.shape)}"
        same = before.shape == after.shape
        yield Pair(before, after, CONTENT) if same else _undone(before, after, "right", seen)
    whole_bytes = bits(before.dtype) % 8 == 0
    if whole_bytes and len(core) == 2 and core == other[::-1]:
        if before.shape[0] == core[0]:
            yield _undone(before, after, "left", "transposed", transposed=True)
        elif after.shape[0] == other[0]:
            yield _undone(before, after, "right", "transposed", transposed=True)
    if whole_bytes and core == other and core[0] <= _MOST_ROWS:
        yield from _reordered(left, right, core[0])


def _reordered(left: Side, right: Side, count: int) -> Iterator[Pair]:
    rows = _rows(left, count), _rows(right, count)
    if rows[0].keys() != rows[1].keys() or len(rows[0]) != count:
        return
    before, after = left.info, right.info
    if before.shape[0] == count:
        order = [rows[0][each] for each in rows[1]]
        yield _undone(before, after, "left", _said(order), rows=_spans(order))
    elif after.shape[0] == count:  # a leading 1 in front of the left's rows
        order = [rows[1][each] for each in rows[0]]
        yield _undone(before, after, "right", _said(order), rows=_spans(order))


def _rows(side: Side, count: int) -> dict[bytes, int]:
    """Give the place of each row by what it holds; fewer than `count` where two are equal."""
    from hashlib import blake2b  # 6 ms that few diffs need

    size = side.info.size_bytes // count
    found: dict[bytes, int] = {}
    row, room, place = blake2b(digest_size=16), size, 0
    for part in steps(side):
        at = 0
        while at < len(part):
            piece = part[at : at + room]
            row.update(piece)
            at, room = at + len(piece), room - len(piece)
            if not room:
                found[row.digest()] = place
                row, room, place = blake2b(digest_size=16), size, place + 1
    return found


def _said(order: list[int]) -> str:
    """Tell an order of gates from rows that are merely shuffled."""
    for gates in (3, 4):
        size, rest = divmod(len(order), gates)
        blocks = tuple(order[at] // size for at in range(0, len(order), size)) if size > 1 else ()
        straight = [block * size + row for block in blocks for row in range(size)]
        if not rest and blocks in _GATES and straight == order:
            return "gates re-ordered"
    return SHUFFLED


def _spans(order: list[int]) -> tuple[tuple[int, int], ...]:
    """Write an order of rows as runs: first row and length."""
    spans: list[tuple[int, int]] = []
    for row in order:
        first, length = spans[-1] if spans else (-1, 0)
        if spans and row == first + length:
            spans[-1] = first, length + 1
        else:
            spans.append((row, 1))
    return tuple(spans)


def _undone(
    before: TensorInfo,
    after: TensorInfo,
    side: str,
    said: str,
    *,
    rows: tuple[tuple[int, int], ...] = (),
    transposed: bool = False,
) -> Pair:
    """Pair the two, one of them as a recipe makes it: in the shape of the other."""
    made, shape = (before, after.shape) if side == "left" else (after, before.shape)
    look = TensorInfo(made.name, made.dtype, shape, made.stored)
    recipe = Recipe(made.name, rows, transposed)
    said = f"{side} {said}"
    if side == "left":
        return Pair(look, after, CONTENT, said, recipe, None)
    return Pair(before, look, CONTENT, said, None, recipe)
