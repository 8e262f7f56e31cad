"""Leftovers matched by similar content: correlated beyond chance, and far above the next best.

Under other names a tensor that was trained on, rounded or quantised is no copy, but it still
correlates with what it came from. Shapes propose; a correlation decides that strangers would reach
with a probability of `FALSE` at most, over all candidates together; and it must be above that of
every other candidate by as much. So what two tensors could equally be stays unpaired.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from math import atanh, log, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

from difflens.core.dtypes import FLOATS, OPAQUE, bits
from difflens.core.protocols import TensorSource
from difflens.core.records import Pair, Recipe, TensorInfo
from difflens.measure.chunks import Side
from difflens.measure.values import Values

from .how import CONTENT, SIMILAR
from .sketches import (
    FEWEST,
    Shape,
    Sketch,
    core,
    independent_elements,
    likeness,
    log_orders,
    sample,
    shape_of,
    sketch,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

FALSE = 1e-6  # chance that two unrelated models have any pair
_MOST = 1_000  # tensors of one shape per side, so that a million candidates are the most
_PERFECT = 1 - 1e-12  # ranks that all agree: of two such candidates neither is the better one

Key = tuple[int, ...]


class Sampled(NamedTuple):
    """A leftover with its sketch, and where it is square also that of its transpose."""

    lone: Pair
    info: TensorInfo
    sketch: Sketch
    turned: Sketch | None


class Match(NamedTuple):
    """Two leftovers that are each other's best; `how` tells the correlation and the next best."""

    left: Sampled
    right: Sampled
    how: str
    is_turned: bool

    @property
    def pair(self) -> Pair | None:
        """Put the two in one layout."""
        before, after = self.left.info, self.right.info
        turned = self.is_turned or core(before) != core(after)
        return (pair_transposed if turned else pair_straight)(before, after, self.how)


def match_similar(lone: Iterable[Pair], left: TensorSource, right: TensorSource) -> list[Match]:
    """Match lone tensors whose numbers are alike; nothing is read where no shape is on both sides.

    Where matrices could be compared and none is alike, the models are strangers, and vectors are
    not asked: their one axis may be in an order that all models share.
    """
    groups = {key: sides for key, sides in _groups(lone).items() if _is_bounded(*sides)}
    matrices = {key: sides for key, sides in groups.items() if not _is_vector(sides)}
    vectors = {key: sides for key, sides in groups.items() if _is_vector(sides)}
    candidates = sum(len(one) * len(other) * 2 for one, other in groups.values())
    pairs = [
        match for each in matrices.values() for match in _matches(each, left, right, candidates)
    ]
    if pairs or not matrices:
        pairs += [
            match for each in vectors.values() for match in _matches(each, left, right, candidates)
        ]
    return pairs


Sides = tuple[list[tuple[Pair, TensorInfo]], list[tuple[Pair, TensorInfo]]]


def _groups(lone: Iterable[Pair]) -> dict[Key, Sides]:
    """Put the leftovers together that have one shape but for a transpose and dimensions of 1."""
    groups: dict[Key, Sides] = defaultdict(lambda: ([], []))
    for each in lone:
        info = each.left or each.right
        if info and info.count >= FEWEST and info.dtype in FLOATS - OPAQUE - {"C64"}:
            lengths = core(info)
            key = tuple(sorted(lengths, reverse=True)) if len(lengths) == 2 else lengths
            groups[key][each.left is None].append((each, info))
    return groups


def _is_bounded(lefts: list[Any], rights: list[Any]) -> bool:
    return min(len(lefts), len(rights)) > 0 and max(len(lefts), len(rights)) <= _MOST


def _is_vector(sides: Sides) -> bool:
    return shape_of(sides[0][0][1]).is_vector


def _matches(
    sides: Sides, left: TensorSource, right: TensorSource, candidates: int
) -> Iterator[Match]:
    """Yield those that are the best of each other, by a margin that chance does not give."""
    lefts, rights = (
        list(_sampled(each, source)) for each, source in zip(sides, (left, right), strict=True)
    )
    if not (lefts and rights):
        return
    alike, is_turned = _correlations(lefts, rights)
    for row, one in enumerate(lefts):
        column = int(alike[row].argmax())
        other, turned = rights[column], bool(is_turned[row, column])
        best = _precisely(one, other, turned=turned)
        rivals = [*_without(alike[row], column), *_without(alike[:, column], row)]
        following = max(rivals, default=None)
        if best is None or not _is_sure(best, following, log(FALSE / candidates)):
            continue
        beside = "no other candidate" if following is None else f"next best {following:.3f}"
        yield Match(one, other, f"{SIMILAR} {best.correlation:.3f}, {beside}", turned)


def _without(values: NDArray[Any], place: int) -> list[float]:
    return [float(value) for at, value in enumerate(values) if at != place]


def _sampled(leftovers: list[tuple[Pair, TensorInfo]], source: TensorSource) -> Iterator[Sampled]:
    for lone, info in leftovers:
        numbers = sample(Values(Side.of(source, info)))
        made = None if numbers is None else sketch(numbers, shape_of(info))
        if numbers is not None and made:
            lengths = core(info)
            square = len(lengths) == 2 and lengths[0] == lengths[1]
            turned = sketch(numbers.T, Shape(*lengths)) if square else None
            yield Sampled(lone, info, made, turned)


def _correlations(lefts: list[Sampled], rights: list[Sampled]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Correlate all with all; also say where the transpose is the better fit."""
    import numpy as np

    rows = np.stack([each.sketch.unit for each in lefts])
    alike = rows @ np.stack([each.sketch.unit for each in rights]).T
    if rights[0].turned is None:
        return alike, np.zeros(alike.shape, bool)
    turned = rows @ np.stack([(each.turned or each.sketch).unit for each in rights]).T
    return np.maximum(alike, turned), turned > alike


class _Likeness(NamedTuple):
    correlation: float
    elements: float  # that speak for themselves
    least: float  # logarithm of the smallest p that so many orders allow


def _precisely(one: Sampled, other: Sampled, *, turned: bool) -> _Likeness | None:
    after = other.turned if turned else other.sketch
    if after is None:
        return None
    elements = independent_elements(one.sketch, after)
    least = -min(log_orders(one.sketch), log_orders(after))
    return _Likeness(likeness(one.sketch, after), elements, least)


def _is_sure(best: _Likeness, following: float | None, bar: float) -> bool:
    """Is it beyond what chance gives, and beyond the next best by as much?

    Fisher's z of a correlation has a standard deviation of 1/√(n - 3), the difference of two at
    most √2 times that.
    """
    from scipy.special import log_ndtr

    if best.elements <= 3 or best.least > bar:
        return False
    top = atanh(min(best.correlation, _PERFECT))
    rest = atanh(min(max(following or 0.0, 0.0), _PERFECT))
    beyond = top * sqrt(best.elements - 3), (top - rest) * sqrt((best.elements - 3) / 2)
    return all(float(log_ndtr(-each)) < bar for each in beyond)


# Two tensors that may be one in another layout, as the pair that undoes it.


def pair_straight(before: TensorInfo, after: TensorInfo, how: str = CONTENT) -> Pair | None:
    """Pair two tensors whose elements come in one order, whatever dimensions of 1 they have."""
    if core(before) != core(after):
        return None
    if before.shape == after.shape:
        return Pair(before, after, how)
    seen = f"{list(after.shape)} seen as {list(before.shape)}"
    return pair_by_recipe(before, after, "right", seen, how=how)


def pair_transposed(before: TensorInfo, after: TensorInfo, how: str = CONTENT) -> Pair | None:
    """Pair two matrices of which one is the other turned on its side."""
    rows, columns = core(before), core(after)
    whole_bytes = all(bits(info.dtype) % 8 == 0 for info in (before, after))
    if not whole_bytes or len(rows) != 2 or rows != columns[::-1]:
        return None
    if before.shape[0] == rows[0]:
        return pair_by_recipe(before, after, "left", "transposed", how=how, transposed=True)
    if after.shape[0] == columns[0]:
        return pair_by_recipe(before, after, "right", "transposed", how=how, transposed=True)
    return None


def pair_by_recipe(
    before: TensorInfo,
    after: TensorInfo,
    side: str,
    transform: str,
    *,
    how: str = CONTENT,
    rows: tuple[tuple[int, int], ...] = (),
    transposed: bool = False,
) -> Pair:
    """Pair the two, one of them as a recipe makes it: in the shape of the other."""
    made, shape = (before, after.shape) if side == "left" else (after, before.shape)
    look = TensorInfo(made.name, made.dtype, shape, made.stored)
    recipe = Recipe(made.name, rows, transposed)
    transform = f"{side} {transform}"
    if side == "left":
        return Pair(look, after, how, transform, recipe, None)
    return Pair(before, look, how, transform, None, recipe)
