"""Floats that lie on the grid of a quantiser: how many bits, and how many share a scale.

A group of weights lies on a grid where dividing by its largest magnitude (or by its range) gives
levels of the grid, each as exactly as its storage allows. Every value that fits says how unlikely
chance is to do so: bits of evidence add up, and must pass a bar.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from difflens.core.dtypes import ROUNDING
from difflens.measure.edits import digits
from difflens.measure.precision import unit

from .parts import Part, Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BAR = 24.0  # bits of evidence, in all groups of a sample together
_GROUPS = (256, 128, 64, 32, 16)  # the coarsest that fits is the shortest description
_SLACK = 1.5  # times the error of storage that a value may be off its level
_EXACT = 1e-5  # and beside it, for scales that were rounded themselves
_ALIKE = 0.5  # correlation of a grid that is a poor likeness: one bit, or a few colours
_FINE = 20  # bits of a mantissa from which no two weights are equal by chance
_FEWEST = 32  # values without which nothing is a grid
_FEW, _MOST = 4, 64  # groups of a sample that are looked at, at least and at most
_PALETTE = 256
# The largest code of symmetric integer grids, with their bits; and levels less one of others.
_SYMMETRIC = (
    (1, 1.58),
    (3, 3),
    (4, 3),
    (7, 4),
    (8, 4),
    (15, 5),
    (16, 5),
    (31, 6),
    (32, 6),
    (127, 8),
    (128, 8),
)
_RANGES = ((1, 1), (3, 2), (7, 3), (15, 4), (31, 5), (63, 6), (255, 8))
_NF4 = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
    -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
    0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
    0.7229568362236023, 1.0,
)  # fmt: skip
_FP4 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
_FP4_BNB = (0.0, 0.0052083333, 0.6666667, 1.0, 0.3333333, 0.5, 0.1666667, 0.25)
_F8 = {"F8_E5M2": 57344.0, "F8_E4M3": 448.0}  # the coarser one first


class Grid(NamedTuple):
    """Bits of a weight, what shares a scale, and the name of the levels."""

    bits: float
    group: int | str
    scheme: str


def by_grid(tensor: Tensor) -> bool:
    """Name a tensor that lies on a grid on one side only; True if nothing is left to explain."""
    db = tensor.scan.figures()["sqnr_db"]
    if db is None or tensor.scan.right_nonfinite or not len(tensor.shape) > 1:
        return False
    if not tensor.change.answer["quantised_db"] <= db and not _is_coarse(tensor):
        return False
    for kind, side in (("quantised", "right"), ("dequantised", "left")):
        grid = grid_of(tensor, side)
        other = grid and grid_of(tensor, "left" if side == "right" else "right")
        if grid and not other:
            tensor.parts.append(_part(tensor, kind, grid))
            return True
    return False


def agree(tensors: Iterable[Tensor]) -> list[Tensor]:
    """Let tensors that the scheme of most explains have that one; return those newly named."""
    known = list(tensors)
    votes: Counter[tuple[str, Grid]] = Counter()
    for tensor in known:
        votes.update((part.kind, Grid(*part.key)) for part in tensor.parts if part.kind in _GRIDS)
    if not votes or votes.most_common(1)[0][1] < 2:
        return []
    kind, grid = votes.most_common(1)[0][0]
    fresh = []
    for tensor in known:
        named = [part for part in tensor.parts if part.kind in _GRIDS]
        if (named and named[0].key == tuple(grid)) or (tensor.parts and not named):
            continue
        if grid_of(tensor, "left" if kind == "dequantised" else "right", grid):
            fresh += [tensor] * (not named)
            tensor.parts = [_part(tensor, kind, grid)]
    return fresh


_GRIDS = frozenset({"quantised", "dequantised", "palette"})


def _part(tensor: Tensor, kind: str, grid: Grid) -> Part:
    db = tensor.scan.figures()["sqnr_db"]
    numbers = {"bits": grid.bits, "group": grid.group, "scheme": grid.scheme, "sqnr_db": db}
    if grid.scheme == "palette":
        return Part("palette", tuple(grid), {"colours": grid.group, "sqnr_db": db}, tensor.energy)
    return Part(kind, tuple(grid), numbers, tensor.energy)


def _is_coarse(tensor: Tensor) -> bool:
    """Are there so few values that even a poor likeness is a grid (ternary, one bit)?"""
    r = tensor.correlation
    return r is not None and r > _ALIKE and _repeats(tensor.sample.right)


def grid_of(tensor: Tensor, side: str, only: Grid | None = None) -> Grid | None:
    """Find the grid of one side, the coarsest group first."""
    rows = tensor.sample.right if side == "right" else tensor.sample.left
    scan, index = tensor.scan, 1 if side == "right" else 0
    ends = (scan.right_min, scan.right_max) if index else (scan.left_min, scan.left_max)
    if tensor.formats[index] in _F8:
        return None
    if digits(tensor.formats[index]) > _FINE and not _repeats(rows):
        return None
    return _find(rows, _beginning(tensor, index), ends, tensor.formats[index], only)


def _beginning(tensor: Tensor, index: int) -> NDArray[Any]:
    """Return the first values of a tensor in a line: groups may run from one row into the next."""
    columns = tensor.scan.count // tensor.rows
    number = min(tensor.rows, -(-_MOST * _GROUPS[2] // columns))
    rows = tensor.change.values(tensor.delta)[index].some_rows(list(range(number)))
    line: NDArray[Any] = rows.reshape(-1)
    return line


def _repeats(rows: NDArray[Any]) -> bool:
    """Do values occur twice among few neighbours? Those of fine floats never do."""
    import numpy as np

    some = rows[:: max(1, len(rows) // 8)][:8].reshape(-1)
    size = min(_FEWEST, some.size)
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
    whole = some.reshape(1, -1)
    candidates: list[tuple[int | str, Any, Any, Any]] = [("tensor", whole, low, high)]
    candidates.append(("row", some, *_ends(some)))
    line = beginning.astype(np.float64)
    for size in _GROUPS:
        if some.shape[1] % size == 0:
            pieces = some.reshape(-1, size)[:_MOST]
        else:
            pieces = line[: line.size - line.size % size].reshape(-1, size)[:_MOST]
        if some.shape[1] != size and len(pieces) >= _FEW:
            candidates.append((size, pieces, *_ends(pieces)))
    for group, pieces, least, most in candidates:
        for bits, scheme in _levels(pieces, least, most, dtype):
            grid = Grid(bits, group, scheme)
            if only is None or grid == only:
                return grid
    return _palette(some, rows) if only is None else None


def _ends(pieces: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    return pieces.min(axis=1, keepdims=True), pieces.max(axis=1, keepdims=True)


class Group(NamedTuple):
    """Groups of values by rows, with the ends of each, and how far storage may put a value off."""

    values: NDArray[Any]
    low: NDArray[Any]
    high: NDArray[Any]
    largest: NDArray[Any]
    errors: NDArray[Any]  # half a unit in the last place


def _levels(
    pieces: NDArray[Any], low: NDArray[Any], high: NDArray[Any], dtype: str
) -> Iterator[tuple[float, str]]:
    import numpy as np

    largest = np.maximum(np.abs(low), np.abs(high))
    alive = (largest > 0).reshape(-1)
    if not alive.any() or pieces[alive].size < _FEWEST:
        return
    errors = unit(pieces[alive], dtype) / 2
    group = Group(pieces[alive], low[alive], high[alive], largest[alive], errors)
    yield from _integers(group)
    yield from _tables(group, dtype)


def _integers(group: Group) -> Iterator[tuple[float, str]]:
    """Find whole multiples of a step: the largest code is known, or the ends, or the gaps."""
    import numpy as np

    shares = np.abs(group.values) / group.largest
    errors = group.errors / group.largest
    ends = errors.max()
    for top, bits in _SYMMETRIC:
        if _fits(shares * top, top * (errors + shares * ends)):
            yield bits, "ternary" if top == 1 else f"int{bits:g}"
    span = np.where(group.high > group.low, group.high - group.low, 1.0)
    for top, bits in _RANGES:
        error = top * (group.errors + 2 * group.errors.max(axis=1, keepdims=True)) / span
        if _fits((group.values - group.low) / span * top, error):
            yield bits, f"int{bits:g} asymmetric"
    if found := _lattice(group):
        yield found


def _lattice(group: Group) -> tuple[float, str] | None:
    """Take the smallest gap of each group for its step: the ends of a range need not be codes."""
    import numpy as np

    ordered = np.sort(group.values, axis=1)
    off = 4 * group.errors.max(axis=1, keepdims=True)
    gaps = np.diff(ordered, axis=1)
    gaps[gaps <= off] = np.inf
    step = gaps.min(axis=1, keepdims=True, initial=np.inf)
    if not np.isfinite(step).all():
        return None
    low, span = ordered[:, :1], ordered[:, -1:] - ordered[:, :1]
    tops = np.rint(span / step)
    if not 3 <= tops.max() <= _PALETTE or group.values.shape[1] < 2 * tops.max():
        return None
    step = span / np.maximum(tops, 1)
    if not _fits((group.values - low) / step, off / step):
        return None
    bits = float(np.ceil(np.log2(tops.max() + 1)))
    return bits, f"int{bits:g} asymmetric"


def _tables(group: Group, dtype: str) -> Iterator[tuple[float, str]]:
    """Find the levels of NF4, FP4 and scaled eight-bit floats."""
    import numpy as np

    shares = group.values / group.largest
    errors = group.errors / group.largest
    errors = errors + np.abs(shares) * errors.max()
    for name, table in (("NF4", _NF4), ("FP4", _both_signs(_FP4)), ("FP4", _both_signs(_FP4_BNB))):
        if _is_of(shares, np.sort(np.array(table)), errors):
            yield 4, name
    for name, top in _F8.items():
        if digits(dtype) > digits(name) and _is_float(np.abs(shares) * top, name, errors * top):
            yield 8, name


def _both_signs(table: Sequence[float]) -> list[float]:
    largest = max(table)
    return [sign * value / largest for value in table for sign in (-1, 1)]


def _fits(places: NDArray[Any], errors: NDArray[Any]) -> bool:
    """Do all lie at whole numbers, within the error of storage, and beyond chance?"""
    import numpy as np

    nearest = np.rint(places)
    allowed = _SLACK * errors + _EXACT + 0 * places
    useful = allowed < 0.25
    miss = np.abs(places - nearest)
    if not useful.any() or not (miss[useful] <= allowed[useful]).all():
        return False
    if nearest.max() <= 1:  # two or three levels: every weight tells
        return bool(-np.log2(2 * allowed[useful]).sum() > _BAR)
    inner = useful & (nearest > 0) & (nearest < nearest.max()) & _first(nearest)
    return bool(-np.log2(2 * allowed[inner]).sum() > _BAR)


def _first(places: NDArray[Any]) -> NDArray[Any]:
    """Mark the first of equal places of a group: the others say nothing new."""
    import numpy as np

    order = np.argsort(places, axis=1, kind="stable")
    ordered = np.take_along_axis(places, order, axis=1)
    new = np.ones(places.shape, bool)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    first = np.empty_like(new)
    np.put_along_axis(first, order, new, axis=1)
    return first


def _is_of(shares: NDArray[Any], table: NDArray[Any], errors: NDArray[Any]) -> bool:
    import numpy as np

    place = np.clip(np.searchsorted(table, shares), 1, len(table) - 1)
    miss = np.minimum(np.abs(shares - table[place - 1]), np.abs(shares - table[place]))
    allowed = _SLACK * errors + _EXACT
    if not (miss <= allowed).all():
        return False
    chance = np.log2(np.minimum(0.9, 2 * allowed * len(table)))
    return bool(-chance[_first(shares)].sum() > _BAR)


def _is_float(places: NDArray[Any], name: str, errors: NDArray[Any]) -> bool:
    import numpy as np

    least, mantissa = ROUNDING[name]
    step = np.ldexp(1.0, np.maximum(np.frexp(places)[1] - 1, least) - mantissa)
    ratio = places / step
    miss = np.abs(ratio - np.rint(ratio))
    allowed = _SLACK * errors / step + _EXACT
    useful = allowed < 0.25
    if not useful.any() or not (miss[useful] <= allowed[useful]).all():
        return False
    bits = -np.log2(2 * allowed[useful & _first(places)])
    return bool(bits.sum() > _BAR and useful.mean() > 0.5)


def _palette(some: NDArray[Any], rows: NDArray[Any]) -> Grid | None:
    """Are there few values in all, wherever they lie?"""
    import numpy as np

    if rows.size < 16 * len(np.unique(some)):
        return None
    colours = len(np.unique(rows))
    if colours > _PALETTE or rows.size < 16 * colours or colours < 3:
        return None
    return Grid(float(np.ceil(np.log2(colours))), colours, "palette")
