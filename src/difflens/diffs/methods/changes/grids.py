"""Floats that lie on the grid of a quantiser: how many bits, and how many share a scale.

A group of weights lies on a grid where dividing by its largest magnitude (or by its range) gives
levels of the grid, each as exactly as its storage allows. Every value that fits says how unlikely
chance is to do so, less what it takes to write the step down: bits of evidence add up over the
groups, and must pass a bar. Any number of bits and any size of groups is looked for in this way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from difflens.core.dtypes import ROUNDING
from difflens.measure.edits import digits
from difflens.measure.precision import unit

from .lattice import (
    ANYWHERE,
    BAR,
    EXACT,
    FINEST,
    FIRST,
    PALETTE,
    SLACK,
    Group,
    first_of_each,
    whole_multiples,
)
from .parts import Part, Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NEARLY = 0.8  # of the evidence for the best size of groups that is enough for a coarser one
_RUNS = (256, 128, 64, 32, 16)  # sizes of groups that may run from one row into the next
_SMALLEST = 8  # size of a group
_FINE = 20  # bits of a mantissa from which no two weights are equal by chance
_NEIGHBOURS = 32  # among which equal values are looked for
_FEW, _MOST = 4, 64  # groups of a sample that are looked at, at least and at most
_VALUES = 4096  # of a tensor that shares one scale
_PER_BIT = 6.02  # dB of signal over noise that a bit adds: with one bit more, values moved less
_NF4 = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
    -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
    0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
    0.7229568362236023, 1.0,
)  # fmt: skip
_FP4 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
_FP4_BNB = (0.0, 0.0052083333, 0.6666667, 1.0, 0.3333333, 0.5, 0.1666667, 0.25)
_F8 = {"F8_E5M2": 57344.0, "F8_E4M3": 448.0}  # the coarser one first


def _both_signs(table: Sequence[float]) -> list[float]:
    largest = max(table)
    return [sign * value / largest for value in table for sign in (-1, 1)]


_TABLES = {"NF4": _NF4, "FP4": _both_signs(_FP4), "FP4/bnb": _both_signs(_FP4_BNB)}
_TURNS = ((FIRST, -1.0), (None, BAR))  # few groups first: most tables fail there


class Grid(NamedTuple):
    """Bits of a weight, what shares a scale, and the name of the levels."""

    bits: float
    group: int | str
    scheme: str


def by_grid(tensor: Tensor, kind: str) -> bool:
    """Name a tensor that lies on a grid of its own on the right (`quantised`), or on the left."""
    if not len(tensor.shape) > 1 or tensor.scan.right_nonfinite:
        return False
    if tensor.is_uncorrelated and not _repeats(tensor.sample.right):
        return False
    if not _is_as_far(tensor, FINEST):
        return False
    side, other = ("right", "left") if kind == "quantised" else ("left", "right")
    grid = grid_of(tensor, side)
    if grid is None or not _is_as_far(tensor, grid.bits):
        return False
    if (kind == "dequantised" and not _is_of_other(tensor, grid)) or grid_of(tensor, other) == grid:
        return False
    tensor.parts.append(_part(tensor, kind, grid))
    return True


def _is_of_other(tensor: Tensor, grid: Grid) -> bool:
    """Does the grid on the left hold the values of the right? No quantiser reverses an order."""
    import numpy as np

    left, right, _ = tensor.sample
    if grid.scheme == "palette" or grid.group == "tensor":
        left, right = left.reshape(1, -1), right.reshape(1, -1)
    elif isinstance(grid.group, int):
        if left.shape[1] % grid.group:
            left, right = (_cut(_beginning(tensor, index), grid.group) for index in (0, 1))
        left, right = (side.reshape(-1, grid.group) for side in (left, right))
    ordered = np.take_along_axis(right, np.lexsort((right, left)), axis=1)
    return bool((ordered[:, 1:] >= ordered[:, :-1]).all())


def _is_as_far(tensor: Tensor, bits: float) -> bool:
    """Did the values move as far as rounding to a grid of so many bits moves them?"""
    db = tensor.scan.figures()["sqnr_db"]
    return db is not None and db <= _PER_BIT * (bits + 1)


def agree(tensors: Iterable[Tensor], kind: str) -> list[Tensor]:
    """Let tensors that the scheme of most explains have that one; return those newly named."""
    known = list(tensors)
    named = [part for each in known for part in each.parts if part.kind in {kind, "palette"}]
    grids = Counter(Grid(*part.key) for part in named)
    if sum(grids.values()) < 2:
        return []
    open_ = [each for each in known if not each.parts or each.parts[0].kind in _GRIDS]
    side = "left" if kind == "dequantised" else "right"
    fitting = {grid: [each for each in open_ if _has(each, side, grid)] for grid in grids}
    grid = max(grids, key=lambda each: (len(fitting[each]), grids[each]))
    if len(fitting[grid]) < 2:
        return []
    fresh = [each for each in fitting[grid] if not each.parts]
    for tensor in fitting[grid]:
        tensor.parts = [_part(tensor, kind, grid)]
    return fresh


def _has(tensor: Tensor, side: str, grid: Grid) -> bool:
    named = {part.key for part in tensor.parts if part.kind in _GRIDS}
    if tuple(grid) in named:
        return True
    found = grid_of(tensor, side, grid) is not None
    return found and (side == "right" or _is_of_other(tensor, grid))


_GRIDS = frozenset({"quantised", "dequantised", "palette"})


def _part(tensor: Tensor, kind: str, grid: Grid) -> Part:
    db = tensor.scan.figures()["sqnr_db"]
    numbers = {"bits": grid.bits, "group": grid.group, "scheme": grid.scheme, "sqnr_db": db}
    if grid.scheme == "palette":
        return Part("palette", tuple(grid), {"colours": grid.group, "sqnr_db": db}, tensor.energy)
    return Part(kind, tuple(grid), numbers, tensor.energy)


def grid_of(tensor: Tensor, side: str, only: Grid | None = None) -> Grid | None:
    """Find the grid of one side, the coarsest group first."""
    rows = tensor.sample.right if side == "right" else tensor.sample.left
    scan, index = tensor.scan, 1 if side == "right" else 0
    ends = (scan.right_min, scan.right_max) if index else (scan.left_min, scan.left_max)
    if tensor.formats[index] in _F8:
        return None
    if only is None and digits(tensor.formats[index]) > _FINE and not _repeats(rows):
        return None
    return _find(rows, _beginning(tensor, index), ends, tensor.formats[index], only)


def _beginning(tensor: Tensor, index: int) -> NDArray[Any]:
    """Return the first values of a tensor in a line: groups may run from one row into the next."""
    columns = tensor.scan.count // tensor.rows
    number = min(tensor.rows, -(-_MOST * _RUNS[2] // columns))
    rows = tensor.change.values(tensor.delta)[index].some_rows(list(range(number)))
    line: NDArray[Any] = rows.reshape(-1)
    return line


def _repeats(rows: NDArray[Any]) -> bool:
    """Do values occur twice among few neighbours? Those of fine floats never do."""
    import numpy as np

    some = rows[:: max(1, len(rows) // 8)][:8].reshape(-1)
    size = min(_NEIGHBOURS, some.size)
    groups = np.sort(some[: some.size - some.size % size].reshape(-1, size), axis=1)
    return bool(((groups[:, 1:] == groups[:, :-1]) & (groups[:, 1:] != 0)).any())


def _find(
    rows: NDArray[Any],
    beginning: NDArray[Any],
    ends: tuple[float, float],
    dtype: str,
    only: Grid | None = None,
) -> Grid | None:
    import numpy as np

    step = max(1, len(rows) // 16)
    some = rows[::step][:16].astype(np.float64)
    low, high = (np.full((1, 1), end) for end in ends)
    whole = some.reshape(1, -1)[:, :: 1 + some.size // _VALUES]
    candidates: list[tuple[int | str, Any, Any, Any]] = [("tensor", whole, low, high)]
    candidates.append(("row", some, *_ends(some)))
    line, width = beginning.astype(np.float64), some.shape[1]
    for size in _sizes(width):
        pieces = some.reshape(-1, size)[:_MOST] if width % size == 0 else _cut(line, size)
        if len(pieces) >= _FEW:
            candidates.append((size, pieces, *_ends(pieces)))
    if only is not None:
        wanted = "row" if only.group == width else only.group
        candidates = [each for each in candidates if each[0] == wanted]
    groups = [(each[0], made) for each in candidates if (made := _grouped(*each[1:], dtype))]
    if grid := _of_integers(groups, only) or _of_table(groups, dtype, only):
        return grid
    return _palette(some, rows, only) if only is None or only.scheme == "palette" else None


def _of_integers(groups: list[tuple[int | str, Group]], only: Grid | None) -> Grid | None:
    """Take the coarsest groups for which the evidence is nearly the best."""
    found = [(size, codes) for size, group in groups if (codes := whole_multiples(group))]
    best = max((codes.gain for _, codes in found), default=0.0)
    for size, codes in found:
        if codes.gain < _NEARLY * best:
            continue
        grid = Grid(codes.bits, size, "ternary" if 1 < codes.bits < 2 else f"int{codes.bits:g}")
        if only is None or grid == only:
            return grid
        return only if codes.bits <= only.bits and only.scheme.startswith("int") else None
    return None


def _of_table(groups: list[tuple[int | str, Group]], dtype: str, only: Grid | None) -> Grid | None:
    for size, group in groups:
        for bits, scheme in _tables(group, dtype):
            grid = Grid(bits, size, scheme)
            if only is None or grid._replace(group=only.group) == only:
                return only or grid
    return None


def _sizes(width: int) -> list[int]:
    """List the sizes that groups may have, the largest first: the coarsest says the least."""
    inside = {size for size in range(_SMALLEST, width // 2 + 1) if width % size == 0}
    return sorted(inside | {size for size in _RUNS if size != width}, reverse=True)


def _cut(line: NDArray[Any], size: int) -> NDArray[Any]:
    return line[: line.size - line.size % size].reshape(-1, size)[:_MOST]


def _ends(pieces: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    return pieces.min(axis=1, keepdims=True), pieces.max(axis=1, keepdims=True)


def _grouped(
    pieces: NDArray[Any], low: NDArray[Any], high: NDArray[Any], dtype: str
) -> Group | None:
    """Return the groups that are not zero throughout."""
    import numpy as np

    largest = np.maximum(np.abs(low), np.abs(high))
    alive = (largest > 0).reshape(-1)
    if not alive.any():
        return None
    errors = unit(pieces[alive], dtype) / 2
    return Group(pieces[alive], low[alive], high[alive], largest[alive], errors)


def _tables(group: Group, dtype: str) -> Iterator[tuple[float, str]]:
    """Find the levels of NF4, FP4 and scaled eight-bit floats."""
    import numpy as np

    shares = group.values / group.largest
    errors = group.errors / group.largest
    errors = errors + np.abs(shares) * errors.max()
    for name, table in _TABLES.items():
        levels = np.array(sorted(table))
        if all(_is_of(shares[:part], levels, errors[:part], bar) for part, bar in _TURNS):
            yield 4, name.partition("/")[0]
    for name, top in _F8.items():
        places = np.abs(shares) * top
        if digits(dtype) > digits(name) and _is_float(places, name, errors * top):
            yield 8, name


def _is_of(shares: NDArray[Any], table: NDArray[Any], errors: NDArray[Any], bar: float) -> bool:
    import numpy as np

    place = np.clip(np.searchsorted(table, shares), 1, len(table) - 1)
    miss = np.minimum(np.abs(shares - table[place - 1]), np.abs(shares - table[place]))
    allowed = SLACK * errors + EXACT
    if not (miss <= allowed).all():
        return False
    chance = np.log2(np.minimum(0.9, 2 * allowed * len(table)))
    return bool(-chance[first_of_each(shares)].sum() > bar)


def _is_float(places: NDArray[Any], name: str, errors: NDArray[Any]) -> bool:
    import numpy as np

    least, mantissa = ROUNDING[name]
    step = np.ldexp(1.0, np.maximum(np.frexp(places)[1] - 1, least) - mantissa)
    ratio = places / step
    miss = np.abs(ratio - np.rint(ratio))
    allowed = SLACK * errors / step + EXACT
    useful = allowed < ANYWHERE
    if not useful.any() or not (miss[useful] <= allowed[useful]).all():
        return False
    bits = -np.log2(2 * allowed[useful & first_of_each(places)])
    return bool(bits.sum() > BAR and useful.mean() > 0.5)


def _palette(some: NDArray[Any], rows: NDArray[Any], only: Grid | None) -> Grid | None:
    """Are there few values in all, wherever they lie, or just as many as in other tensors?"""
    import numpy as np

    if only is not None:
        return only if len(np.unique(rows)) == only.group else None
    if rows.size < 16 * len(np.unique(some)):
        return None
    colours = len(np.unique(rows))
    if colours > PALETTE or rows.size < 16 * colours or colours < 3:
        return None
    return Grid(float(np.ceil(np.log2(colours))), colours, "palette")
