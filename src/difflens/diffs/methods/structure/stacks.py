"""Stacks of numbered blocks on both sides, and which block of the left each of the right is."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from difflens.core.dtypes import FLOATS, OPAQUE
from difflens.core.records import Delta, TensorInfo
from difflens.measure.scan import Scan

from ...diff import Diff
from .records import is_rounded

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NUMBER = re.compile(r"(?<![^.])[0-9]{1,5}(?![^.])")
_MOST = 512  # blocks of a stack that are compared
_TENSORS = 8  # matrices of a block that are sampled
_RUNS, _RUN = 32, 128  # runs of a matrix, and elements of a run, that are read
_SAME = 0.7  # correlation above which two matrices are one, trained on: half of the variance
_LEAST = 64  # elements that speak of a correlation

Block = dict[str, TensorInfo]  # what is in a block, by the rest of the name


class Stack(NamedTuple):
    """One stack as both sides have it: its blocks by their number."""

    left: dict[int, Block]
    right: dict[int, Block]
    name: str  # on the left, without the last dot


class Mapping(NamedTuple):
    """For each block of the right the block of the left that it is; None where it is new."""

    stack: Stack
    sources: dict[int, int | None]
    partial: dict[int, dict[str, bool]]  # matrices a copy does not share: are they all zeros?

    @property
    def is_straight(self) -> bool:
        """Is every block still in its place?"""
        return self.stack.left.keys() == self.stack.right.keys() and all(
            source in (None, place) for place, source in self.sources.items()
        )


def stacks(diff: Diff) -> list[Stack]:
    """List the stacks that both sides have, by the names of their paired tensors."""
    sides = [_by_stack(_infos(diff, side)) for side in ("left", "right")]
    votes: dict[str, Counter[str]] = defaultdict(Counter)
    for delta in diff.deltas:
        left, right = delta.pair.left, delta.pair.right
        if left and right:
            for one, two in zip(_places(left.name), _places(right.name), strict=False):
                votes[one[0]][two[0]] += 1
    found = []
    for name, blocks in sides[0].items():
        partner = votes[name].most_common(1)[0][0] if votes[name] else name
        other = sides[1].get(partner)
        if other and 2 <= max(len(blocks), len(other)) <= _MOST:
            found.append(Stack(blocks, other, name.removesuffix(".")))
    return found


def _infos(diff: Diff, side: Literal["left", "right"]) -> Iterable[TensorInfo]:
    sides = (getattr(delta.pair, side) for delta in diff.deltas)
    return (info for info in sides if info is not None)


def _by_stack(infos: Iterable[TensorInfo]) -> dict[str, dict[int, Block]]:
    found: dict[str, dict[int, Block]] = defaultdict(lambda: defaultdict(dict))
    for info in infos:
        for stack, index, rest in _places(info.name):
            found[stack][index][rest] = info
    return found


def _places(name: str) -> list[tuple[str, int, str]]:
    """List the stacks a tensor is in, the outermost first: prefix, number, rest of the name."""
    return [
        (name[: match.start()], int(match[0]), name[match.end() + 1 :])
        for match in _NUMBER.finditer(name)
    ]


def suspects(diff: Diff) -> list[Stack]:
    """List the stacks whose blocks could have changed places; headers and scans decide."""
    elsewhere = {name for each in diff.deltas if _is_elsewhere(each) for name in [_left(each)]}
    if not elsewhere and all(each.pair.left and each.pair.right for each in diff.deltas):
        return []
    return [each for each in stacks(diff) if _is_suspicious(each, elsewhere)]


def _is_suspicious(stack: Stack, elsewhere: set[str]) -> bool:
    if stack.left.keys() != stack.right.keys():
        return True
    mains = (_matrices(block) for block in stack.left.values())
    return any(info.name in elsewhere for block in mains for info in block.values())


def _left(delta: Delta) -> str:
    return delta.pair.left.name if delta.pair.left else ""


def _is_elsewhere(delta: Delta) -> bool:
    """Has a matrix of one shape nothing to do any more with what it was?"""
    scan = delta.measured(Scan) if delta.kind in ("changed", "recast") else None
    return scan is not None and scan.count >= _LEAST and abs(scan.pearson or 0.0) < _SAME


def _matrices(block: Block) -> Block:
    """Choose the largest float matrices of a block."""
    usable = {
        rest: info
        for rest, info in block.items()
        if len(info.shape) > 1 and info.count >= _LEAST and _is_number(info)
    }
    chosen = sorted(usable, key=lambda rest: (-usable[rest].count, rest))[:_TENSORS]
    return {rest: usable[rest] for rest in chosen}


def _is_number(info: TensorInfo) -> bool:
    return info.dtype in FLOATS and info.dtype not in OPAQUE and info.dtype != "C64"


def match_blocks(diff: Diff, stack: Stack) -> Mapping | None:
    """Find the block of the left that each block of the right is; None if nothing can be compared.

    Matrices of one name and shape are compared on a sample; the median over a block decides. A
    block that could be several (equal ones) is taken to be the one in its place, or the nearest.
    """
    sketches = (
        {index: _sketch(diff, "left", block) for index, block in stack.left.items()},
        {index: _sketch(diff, "right", block) for index, block in stack.right.items()},
    )
    if not any(sketches[0].values()) or not any(sketches[1].values()):
        return None
    sources: dict[int, int | None] = {}
    partial: dict[int, dict[str, bool]] = {}
    for place, sketch in sketches[1].items():
        scores = {index: _likeness(other, sketch) for index, other in sketches[0].items() if other}
        source = _best(scores, place)
        sources[place] = source
        if source is not None:
            unlike = {
                rest: not sketch[rest].any()
                for rest, value in scores[source].items()
                if value < _SAME
            }
            if unlike:
                partial[place] = unlike
    return Mapping(stack, sources, partial)


def _best(scores: dict[int, dict[str, float]], place: int) -> int | None:
    """Return the block that is alike in most of its matrices; of equal ones the nearest."""
    from statistics import median  # with decimals and random numbers: 2 ms

    medians = {index: median(each.values()) for index, each in scores.items() if each}
    top = max(medians.values(), default=0.0)
    if top < _SAME:
        return None
    equal = [index for index, value in medians.items() if value >= top - 1e-6]
    return min(equal, key=lambda index: (abs(index - place), index))


def _likeness(left: dict[str, NDArray[Any]], right: dict[str, NDArray[Any]]) -> dict[str, float]:
    """Correlate the samples of matrices that both blocks have; nothing if most are missing."""
    common = [rest for rest in right if rest in left and left[rest].shape == right[rest].shape]
    if 2 * len(common) < max(len(left), len(right)):
        return {}
    return {rest: float(left[rest] @ right[rest]) for rest in common}


def _sketch(diff: Diff, side: Literal["left", "right"], block: Block) -> dict[str, NDArray[Any]]:
    """Sample the matrices of a block at places that depend on their shapes alone."""
    sketches = {rest: _sample(diff, side, info) for rest, info in _matrices(block).items()}
    return {rest: sample for rest, sample in sketches.items() if sample is not None}


def _sample(diff: Diff, side: Literal["left", "right"], info: TensorInfo) -> NDArray[Any] | None:
    """Read some runs, centred, with length one; None if a number is not finite."""
    import numpy as np

    values = diff.values(side, info.name)
    starts = np.linspace(0, max(0, info.count - _RUN), min(_RUNS, -(-info.count // _RUN)))
    ends = {int(start): min(int(start) + _RUN, info.count) for start in starts}
    numbers = np.concatenate([values.span(*span) for span in ends.items()]).astype(np.float64)
    if not np.isfinite(numbers).all():
        return None
    numbers -= numbers.mean()
    size = float(np.sqrt(numbers @ numbers))
    return numbers / size if size > 0 else np.zeros_like(numbers)


class Residual(NamedTuple):
    """How far a tensor is from the one that it was: ‖right - source‖², ‖source‖²."""

    apart: float
    size: float
    rounded: bool  # moved by rounding at most


def residuals(diff: Diff, mapping: Mapping) -> dict[str, Residual]:
    """Compare each tensor that is not in its place with its source, by its right name."""
    import numpy as np

    found = {}
    for place, source in mapping.sources.items():
        if source is None or source == place:
            continue
        for rest, info in mapping.stack.right[place].items():
            other = mapping.stack.left[source].get(rest)
            if other is None or other.shape != info.shape or not _is_number(info):
                continue
            if rest in mapping.partial.get(place, {}):
                continue
            sides = diff.values("left", other.name), diff.values("right", info.name)
            apart, size, rounded = 0.0, 0.0, True
            for one, two in zip(sides[0].pieces(), sides[1].pieces(), strict=True):
                wide = one.astype(np.float64)
                apart += float(np.square(two - wide).sum())
                size += float(np.square(wide).sum())
                rounded = rounded and is_rounded(wide, two)
            found[info.name] = Residual(apart, size, rounded)
    return found


def spans(numbers: Iterable[int]) -> str:
    """Write numbers as runs: `0-3, 7 and 9-11`.

    >>> spans([0, 1, 2, 3, 7, 9, 10])
    '0-3, 7, 9 and 10'
    """
    ordered = sorted(numbers)
    runs: list[list[int]] = [[ordered[0], ordered[0]]] if ordered else []
    for before, after in pairwise(ordered):
        if after == before + 1:
            runs[-1][1] = after
        else:
            runs.append([after, after])
    parts = []
    for first, last in runs:
        parts += (
            [f"{first}-{last}"] if last > first + 1 else [str(n) for n in range(first, last + 1)]
        )
    *most, last_part = parts or [""]
    return f"{', '.join(most)} and {last_part}" if most else last_part
