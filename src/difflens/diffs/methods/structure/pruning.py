"""Units, heads or channels removed: rows of one tensor, and the columns of the next with them."""

from __future__ import annotations

from collections import defaultdict
from math import sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

from difflens.core.records import Delta
from difflens.models.anatomy.places import where
from difflens.models.anatomy.roles import is_parameter, layer, role

from ...answer import Answer
from ...diff import Diff
from ...evidence.records import Evidence
from ..changes.explained import Explained
from ..networks import network
from .records import counted, explained, moved_text
from .selections import Axes, Fit, Shrunk, find_selection, fit

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WORDS = {"heads": "head", "units": "unit", "channels": "channel", "width": "dimension"}


class Cut(NamedTuple):
    """Tensors that lost the same slices."""

    size: tuple[int, int]
    chosen: tuple[int, ...]  # of the left, in the order of the right
    rows: list[str]  # tensors that lost rows
    columns: list[str]  # tensors that lost columns

    @property
    def removed(self) -> list[int]:
        """The slices that went."""
        return sorted(set(range(self.size[0])) - set(self.chosen))


def pruned_structurally(diff: Diff, evidence: Evidence, answer: Answer) -> list[Explained]:  # noqa: ARG001
    """Explain smaller tensors by the slices that were removed, where both ends of them agree."""
    tensors = [_shrunk(diff, delta) for delta in diff.deltas if _is_smaller(delta)]
    if not tensors:
        return []
    solved = _solve([each for each in tensors if not each.is_vector])
    fits = {each.name: fit(each, solved[each.name]) for each in tensors if each.name in solved}
    solved = {name: axes for name, axes in solved.items() if fits[name].is_same}
    cuts = [cut for cut in _cuts(tensors, solved) if cut.rows and cut.columns]
    for vector in (each for each in tensors if each.is_vector):
        _add_vector(vector, cuts, fits)
    covered = {name for cut in cuts for name in (*cut.rows, *cut.columns)}
    complete = {each.name for each in tensors if _is_complete(each, cuts)}
    groups: dict[str, list[Cut]] = defaultdict(list)
    for cut in cuts:
        groups[_what(cut, tensors)].append(cut)
    kept = {name: found for name, found in fits.items() if name in covered & complete}
    head_dim = network(diff, evidence, "left").head_dim
    return [_record(diff, what, group, kept, head_dim) for what, group in groups.items()]


def _is_smaller(delta: Delta) -> bool:
    """Is it a parameter that is smaller along rows or columns, and nowhere larger?"""
    left, right = delta.pair.left, delta.pair.right
    if delta.kind != "reshaped" or not (left and right) or len(left.shape) != len(right.shape):
        return False
    if not is_parameter(delta.name, left.dtype, right.dtype) or "C64" in (left.dtype, right.dtype):
        return False
    sizes = list(zip(left.shape, right.shape, strict=True))
    return all(0 < after <= before for before, after in sizes) and sizes[2:] == [
        (before, before) for before, _ in sizes[2:]
    ]


def _shrunk(diff: Diff, delta: Delta) -> Shrunk:
    left, right = delta.pair.left, delta.pair.right
    if left is None or right is None:
        raise ValueError(f"{delta.name} is on one side only")
    return Shrunk(left.name, diff.values("left", left.name), diff.values("right", right.name))


def _solve(tensors: list[Shrunk]) -> dict[str, Axes]:
    """Find what is left of each; one that lost rows and columns needs a neighbour that knows."""
    solved: dict[str, Axes] = {}
    known: dict[tuple[int, int], list[NDArray[Any]]] = defaultdict(list)
    waiting = list(tensors)
    while waiting:
        rest = []
        for each in waiting:
            axes = _axes(each, known)
            if axes is None:
                rest.append(each)
                continue
            solved[each.name] = axes
            for axis in each.axes:
                chosen = axes[axis]
                if chosen is not None and not _is_known(chosen, known[each.size(axis)]):
                    known[each.size(axis)].append(chosen)
        if len(rest) == len(waiting):
            break
        waiting = rest
    return solved


def _is_known(chosen: NDArray[Any], known: list[NDArray[Any]]) -> bool:
    import numpy as np

    return any(np.array_equal(chosen, each) for each in known)


def _axes(tensor: Shrunk, known: dict[tuple[int, int], list[NDArray[Any]]]) -> Axes | None:
    if len(tensor.axes) == 1:
        (axis,) = tensor.axes
        chosen = find_selection(tensor, axis)
        return None if chosen is None else (chosen, None) if axis == 0 else (None, chosen)
    for axis in (1, 0):
        for other in known[tensor.size(axis)]:
            chosen = find_selection(tensor, 1 - axis, other)
            if chosen is not None:
                return (chosen, other) if axis == 1 else (other, chosen)
    return None


def _cuts(tensors: list[Shrunk], solved: dict[str, Axes]) -> list[Cut]:
    """Put together the tensors that lost the same slices of as many."""
    cuts: dict[tuple[tuple[int, int], tuple[int, ...]], Cut] = {}
    for each in tensors:
        for axis, chosen in enumerate(solved.get(each.name, (None, None))):
            if chosen is None:
                continue
            size, key = each.size(axis), tuple(chosen.tolist())
            cut = cuts.setdefault((size, key), Cut(size, key, [], []))
            (cut.columns if axis else cut.rows).append(each.name)
    return list(cuts.values())


def _add_vector(vector: Shrunk, cuts: list[Cut], fits: dict[str, Fit]) -> None:
    """Add a bias or a gain to the cut that leaves what the right has of it; its own layer first."""
    import numpy as np

    if len(vector.axes) != 1 or vector.axes[0] != 0:
        return
    own = layer(vector.name)
    fitting = [cut for cut in cuts if cut.size == vector.size(0)]
    fitting.sort(key=lambda cut: own not in {layer(name) for name in cut.rows})
    tried = [(fit(vector, (np.array(cut.chosen), None)), cut) for cut in fitting]
    for found, cut in sorted(tried, key=lambda each: each[0].apart):
        if found.is_same:
            cut.rows.append(vector.name)
            fits[vector.name] = found
            return


def _is_complete(tensor: Shrunk, cuts: list[Cut]) -> bool:
    """Is each of its smaller dimensions explained?"""
    sides = ("rows", "columns")
    return all(
        any(tensor.name in getattr(cut, sides[axis]) for cut in cuts) for axis in tensor.axes
    )


def _what(cut: Cut, tensors: list[Shrunk]) -> str:
    """Name what was removed, by the tensors it was removed from."""
    names = {*cut.rows, *cut.columns}
    shapes = [each.left.info.shape for each in tensors if each.name in names]
    if any(len(shape) > 2 for shape in shapes):
        return "channels"
    roles = {role(name) for name in cut.columns} | {role(name) for name in cut.rows}
    if "embedding" in {role(name) for name in cut.columns}:
        return "width"
    return "heads" if "attention_o" in roles and "mlp" not in roles else "units"


def _record(
    diff: Diff, what: str, cuts: list[Cut], fits: dict[str, Fit], head_dim: int | None
) -> Explained:
    chosen = [name for cut in cuts for name in (*cut.rows, *cut.columns) if name in fits]
    size = head_dim if what == "heads" else None
    unit = size if size and all(_is_of_blocks(cut, size) for cut in cuts) else 1
    sizes = {(cut.size[0] // unit, cut.size[1] // unit) for cut in cuts}
    before, after = (sum(cut.size[at] // unit for cut in cuts) for at in (0, 1))
    places = len(cuts)
    if len(sizes) == 1:
        before, after = next(iter(sizes))
    numbers: dict[str, Any] = {"what": what, "from": before, "to": after, "places": places}
    if places == 1:
        numbers["removed"] = sorted({each // unit for each in cuts[0].removed})
    word = _WORDS[what]
    if what == "heads" and unit == 1:
        word = "row"  # of heads whose size is not known
    text = f"{before - after:,} of {counted(before, word)} removed"
    if what == "heads" and unit == 1:
        text += " with attention heads"
    if places > 1:
        text += f" in each of {places} places" if len(sizes) == 1 else f" in {places} places"
    text += f": {where([name for name in chosen if len(_words(name)) > 1] or chosen)}"
    apart, total = (sum(fits[name][at] for name in set(chosen)) for at in (0, 1))
    if apart and total:
        numbers["relative_l2"] = sqrt(apart / total)
        rounded = all(fits[name].rounded for name in chosen)
        text += moved_text(numbers["relative_l2"], rounded=rounded)
    return explained(diff, "pruned_structurally", chosen, text, numbers)


def _words(name: str) -> list[str]:
    return name.split(".")


def _is_of_blocks(cut: Cut, size: int) -> bool:
    """Were whole heads removed?"""
    chosen = set(cut.chosen)
    blocks = [range(at, at + size) for at in range(0, cut.size[0], size)]
    return all(len(chosen.intersection(block)) in (0, size) for block in blocks)
