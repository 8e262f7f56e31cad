"""Leftovers matched by what they hold, where neither names nor roles say who is who.

One pass over each leftover gives figures that no order of its elements changes.
They only propose: a pair is taken where its bytes are the same once a transpose,
dimensions of 1 or an order of rows are undone. So what it pairs is identical, and
a wrong pair cannot come of it. What is left after that may still be similar.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from math import isclose
from typing import NamedTuple

from difflens.core.dtypes import OPAQUE, bits
from difflens.core.protocols import Engine, TensorSource
from difflens.core.records import Delta, Pair, Recipe, TensorInfo
from difflens.measure.chunks import Side, steps
from difflens.measure.pairs import deltas
from difflens.measure.scan import Scan
from difflens.models.computed import derived

from .how import SHUFFLED
from .similar import match_similar, pair_by_recipe, pair_straight, pair_transposed
from .sketches import core

_MOST = 5_000  # leftovers per side; more are two different models, not one under other names
_FEWEST = 16  # elements; a handful of equal numbers may be chance
_MOST_ROWS = 1 << 16
_CLOSE = 1e-9  # sums depend on the order of their terms by rounding alone
# Orders of gates: torch and Keras i f g o, ONNX i o f g, TensorFlow 1 i g f o; for the three
# gates of a GRU, torch r z n, ONNX and Keras z r n.
_GATES = {(0, 3, 1, 2), (0, 2, 3, 1), (0, 2, 1, 3), (0, 3, 2, 1), (1, 0, 2)}


class _Sides(NamedTuple):
    """Two open models, and how to measure their tensors."""

    left: TensorSource
    right: TensorSource
    engine: Engine
    always: bool
    epsilon: float

    def measure(self, pairs: list[Pair]) -> Iterator[Delta]:
        """Measure pairs whose tensors are stored in another layout than they are compared in."""
        left = derived(self.left, [(pair.left, pair.left_recipe) for pair in pairs])
        right = derived(self.right, [(pair.right, pair.right_recipe) for pair in pairs])
        epsilon, always = self.epsilon, self.always
        return deltas(pairs, left, right, self.engine, epsilon=epsilon, always=always)


class _Fingerprint(NamedTuple):
    """A leftover with figures that no order of its elements changes."""

    lone: Pair
    info: TensorInfo
    exact: tuple[float | str, ...]
    sums: tuple[float, float]


def match_by_content(
    lone: Iterable[Pair],
    left: TensorSource,
    right: TensorSource,
    engine: Engine,
    *,
    always: bool = False,
    epsilon: float = 0.0,
) -> dict[Pair, Delta]:
    """Match lone tensors of both sides by what they hold; each delta stands under both lone pairs.

    Copies come first, then what is similar. What two tensors of a side could be stays unpaired.
    """
    lone = list(lone)
    counts = Counter(each.left is None for each in lone)
    if len(counts) < 2 or max(counts.values()) > _MOST:
        return {}
    sides = _Sides(left, right, engine, always, epsilon)
    matches = _copies(lone, sides)
    rest = [each for each in lone if each not in matches]
    matches |= _copies_of_halves(rest, sides, whole_is_left=True)
    matches |= _copies_of_halves(rest, sides, whole_is_left=False)
    rest = [each for each in rest if each not in matches]
    return matches | _similar_ones(rest, sides)


def _similar_ones(lone: list[Pair], sides: _Sides) -> dict[Pair, Delta]:
    """Measure those whose numbers are similar, in one layout."""
    similar_ones = match_similar(lone, sides.left, sides.right)
    matches = [(each, pair) for each in similar_ones if (pair := each.pair)]
    measured = sides.measure([pair for _, pair in matches])
    deltas_by_pair: dict[Pair, Delta] = {}
    for (match, _), delta in zip(matches, measured, strict=True):
        deltas_by_pair[match.left.lone] = deltas_by_pair[match.right.lone] = delta
    return deltas_by_pair


def _copies(lone: list[Pair], sides: _Sides) -> dict[Pair, Delta]:
    """Match tensors that hold the same bytes, in the same layout or in another one."""
    lefts = [(each, each.left) for each in lone if each.left and not each.right]
    rights = [(each, each.right) for each in lone if each.right and not each.left]
    looks = {_look(info) for _, info in lefts} & {_look(info) for _, info in rights} - {None}
    fingerprints = [
        list(
            _fingerprints(
                [each for each in leftovers if _look(each[1]) in looks], source, sides.engine
            )
        )
        for leftovers, source in ((lefts, sides.left), (rights, sides.right))
    ]
    copies: dict[Pair, Delta] = {}
    for one, other in _proposals(*fingerprints):
        for pair in _layouts(Side.of(sides.left, one.info), Side.of(sides.right, other.info)):
            delta = next(sides.measure([pair]))
            if delta.kind == "identical":
                copies[one.lone] = copies[other.lone] = delta
                break
    return copies


def _copies_of_halves(lone: list[Pair], sides: _Sides, *, whole_is_left: bool) -> dict[Pair, Delta]:
    """Match vectors of which the other side keeps two in one: ONNX does so with LSTM biases."""
    vectors: list[list[tuple[Pair, TensorInfo]]] = [[], []]
    for each in lone:
        info = each.left or each.right
        if info and info.count in info.shape and _look(info):
            vectors[(each.left is not None) == whole_is_left].append((each, info))
    parts, wholes = vectors
    lengths = {(info.dtype, 2 * info.count) for _, info in parts}
    wholes = [(each, info) for each, info in wholes if (info.dtype, info.count) in lengths]
    if not wholes or len(parts) < 2:
        return {}
    source = sides.left if whole_is_left else sides.right
    flat = ((_seen_as(info, info.name, info.count), Recipe(info.name)) for _, info in wholes)
    cut = [_halves(info) for _, info in wholes]
    source = derived(derived(source, flat), (half for both in cut for half in both))
    halves = [
        [Pair(half, None) if whole_is_left else Pair(None, half) for half, _ in both]
        for both in cut
    ]
    among = [*(half for both in halves for half in both), *(each for each, _ in parts)]
    cut_sides = sides._replace(left=source) if whole_is_left else sides._replace(right=source)
    copies = _copies(among, cut_sides)
    deltas_by_pair: dict[Pair, Delta] = {}
    for (whole, _), both in zip(wholes, halves, strict=True):
        if not all(half in copies for half in both):
            continue
        deltas_by_pair[whole] = copies[both[0]]
        pairs = {copies[half].pair for half in both}
        for part, _ in parts:
            if part in copies and copies[part].pair in pairs:
                deltas_by_pair[part] = copies[part]
    return deltas_by_pair


def _halves(info: TensorInfo) -> list[tuple[TensorInfo, Recipe]]:
    half = info.count // 2
    return [
        (_seen_as(info, f"{info.name}[{at}]", half), Recipe(info.name, ((at * half, half),)))
        for at in (0, 1)
    ]


def _seen_as(info: TensorInfo, name: str, length: int) -> TensorInfo:
    return TensorInfo(name, info.dtype, (length,), info.stored)


def _look(info: TensorInfo) -> tuple[str, int] | None:
    if info.count < _FEWEST or info.dtype in OPAQUE:
        return None
    return info.dtype, info.count


def _fingerprints(
    leftovers: list[tuple[Pair, TensorInfo]], source: TensorSource, engine: Engine
) -> Iterator[_Fingerprint]:
    """Describe every leftover that is not constant."""
    scans = deltas((Pair(info, None) for _, info in leftovers), source, source, engine)
    for (lone, info), delta in zip(leftovers, scans, strict=True):
        scan = delta.measured(Scan)
        if scan and scan.left_min < scan.left_max:
            infinite = scan.left_positive_infinite, scan.left_negative_infinite
            counts = info.count, scan.left_zeros, scan.left_nan, *infinite
            exact = info.dtype, *counts, scan.left_min, scan.left_max
            yield _Fingerprint(lone, info, exact, (scan.left_abs_sum, scan.left_m2))


def _proposals(
    lefts: list[_Fingerprint], rights: list[_Fingerprint]
) -> list[tuple[_Fingerprint, _Fingerprint]]:
    """Return those that can only be each other."""
    among: dict[tuple[float | str, ...], list[_Fingerprint]] = defaultdict(list)
    for each in sorted(rights, key=lambda each: each.sums):
        among[each.exact].append(each)
    fits = [(one, other) for one in lefts for other in _alike(one, among.get(one.exact, []))]
    partners = Counter(each for fit in fits for each in fit)
    return [fit for fit in fits if partners[fit[0]] == partners[fit[1]] == 1]


def _alike(one: _Fingerprint, others: list[_Fingerprint]) -> Iterator[_Fingerprint]:
    """Yield those whose sums are the same but for rounding; the others are sorted by them."""
    first = bisect_left(others, one.sums[0] * (1 - 2 * _CLOSE), key=lambda each: each.sums[0])
    for other in others[first:]:
        if not isclose(one.sums[0], other.sums[0], rel_tol=_CLOSE):
            if other.sums[0] > one.sums[0]:
                return
        elif isclose(one.sums[1], other.sums[1], rel_tol=_CLOSE):
            yield other


def _layouts(left: Side, right: Side) -> Iterator[Pair]:
    """Yield how the two may be the same tensor, the plainest first."""
    before, after = left.info, right.info
    yield from filter(None, (pair_straight(before, after), pair_transposed(before, after)))
    whole_bytes = bits(before.dtype) % 8 == 0
    rows = core(before)
    if whole_bytes and rows == core(after) and rows[0] <= _MOST_ROWS:
        yield from _reordered(left, right, rows[0])


def _reordered(left: Side, right: Side, count: int) -> Iterator[Pair]:
    rows = _rows(left, count), _rows(right, count)
    if rows[0].keys() != rows[1].keys() or len(rows[0]) != count:
        return
    before, after = left.info, right.info
    if before.shape[0] == count:
        order = [rows[0][each] for each in rows[1]]
        yield pair_by_recipe(before, after, "left", _describe_order(order), rows=_spans(order))
    elif after.shape[0] == count:  # a leading 1 in front of the left's rows
        order = [rows[1][each] for each in rows[0]]
        yield pair_by_recipe(before, after, "right", _describe_order(order), rows=_spans(order))


def _rows(side: Side, count: int) -> dict[bytes, int]:
    """Return the place of each row by what it holds; fewer than `count` where two are equal."""
    from hashlib import blake2b  # 6 ms that few diffs need

    size = side.info.size_bytes // count
    places: dict[bytes, int] = {}
    row, room, place = blake2b(digest_size=16), size, 0
    for part in steps(side):
        at = 0
        while at < len(part):
            piece = part[at : at + room]
            row.update(piece)
            at, room = at + len(piece), room - len(piece)
            if not room:
                places[row.digest()] = place
                row, room, place = blake2b(digest_size=16), size, place + 1
    return places


def _describe_order(order: list[int]) -> str:
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
