"""Factors moved between neighbours: from a gain into the next matrices, or from rows to columns.

Whatever a gain (or the rows of one matrix) is divided by, the columns of the next are multiplied
by: what the network computes stays. A gain that is all ones afterwards was folded into them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from difflens.core.records import MOVED, Delta
from difflens.models.anatomy.places import where
from difflens.models.anatomy.roles import block, is_parameter, layer

from ...answer import Answer
from ...diff import Diff
from ...evidence.records import Evidence
from ..changes.explained import Explained
from .diagonals import Diagonal, find_diagonal, is_inverse, probe_diagonal, turned_matrices
from .records import counted, explained, name_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PROBES = 8  # matrices that are looked at before all are
_LONGEST = 1 << 20  # numbers of a vector


class Gain(NamedTuple):
    """A vector that moved or went, with its numbers on both sides; None where it went."""

    name: str
    left: NDArray[Any]
    right: NDArray[Any] | None

    @property
    def is_folded(self) -> bool:
        """Has it nothing left to multiply by?"""
        return self.right is None or bool((self.right == 1).all())

    @property
    def factors(self) -> NDArray[Any]:
        """What it was multiplied by."""
        import numpy as np

        after = np.ones_like(self.left) if self.right is None else self.right
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(self.left != 0, after / self.left, np.where(after == 0, 1.0, np.nan))


class Moved(NamedTuple):
    """What was found: matrices whose factors are undone, and where."""

    folded: dict[str, list[str]]  # by the gain: the matrices that have it now
    rescaled: dict[str, list[str]]  # by the gain or the matrix before


def moved_factors(diff: Diff, evidence: Evidence, answer: Answer) -> list[Explained]:  # noqa: ARG001
    """Explain gains folded into the next matrices, and channels rescaled between neighbours."""
    matrices = [each for each in turned_matrices(diff) if not _is_table(each)]
    if not any(probe_diagonal(diff, each) for each in matrices[:_PROBES]):
        return []
    diagonals = {
        found.name: found for each in matrices if (found := find_diagonal(diff, each)) is not None
    }
    if not any(each.has_columns for each in diagonals.values()):
        return []
    gains = _gains(diff)
    moved = _joined(diagonals, gains)
    records = []
    for kind, groups in (("norms_folded", moved.folded), ("rescaled_channels", moved.rescaled)):
        if groups:
            records.append(_record(diff, kind, groups, diagonals, gains))
    return records


def _is_table(delta: Delta) -> bool:
    left = delta.pair.left
    return left is None or left.shape[0] > 1 << 17


def _gains(diff: Diff) -> dict[str, Gain]:
    """Read the vectors that moved, and those that are on the left alone."""
    gains = {}
    for delta in diff.deltas:
        left, right = delta.pair.left, delta.pair.right
        if left is None or prod(left.shape) != max(left.shape, default=0):
            continue
        if not is_parameter(left.name, left.dtype) or left.count > _LONGEST:
            continue
        if delta.kind != "removed" and (delta.kind not in MOVED or right is None):
            continue
        after = diff.values("right", right.name).array().ravel() if right else None
        before = diff.values("left", left.name).array().ravel()
        gains[left.name] = Gain(left.name, before.astype("f8"), _wide(after))
    return gains


def _wide(values: Any) -> Any:
    return None if values is None else values.astype("f8")


def _joined(diagonals: dict[str, Diagonal], gains: dict[str, Gain]) -> Moved:
    """Find for the columns of each matrix what undoes their factors: a gain, or rows before."""
    folded: dict[str, list[str]] = defaultdict(list)
    rescaled: dict[str, list[str]] = defaultdict(list)
    for each in diagonals.values():
        if not each.has_columns:
            continue
        # Rows first: a bias has the factors of the rows beside it.
        before = _nearest(each.name, _undoing_rows(each, diagonals))
        gain = _nearest(each.name, _undoing_gains(each, gains))
        if before is not None:
            rescaled[before].append(each.name)
        elif gain is not None:
            (folded if gains[gain].is_folded else rescaled)[gain].append(each.name)
    return Moved(folded, rescaled)


def _undoing_gains(diagonal: Diagonal, gains: dict[str, Gain]) -> list[str]:
    return [
        gain.name
        for gain in gains.values()
        if any(
            is_inverse(factors, diagonal.columns, up_to_scale=diagonal.has_rows)
            for factors in _in_stack(gain.factors, len(diagonal.columns))
        )
    ]


def _in_stack(factors: NDArray[Any], length: int) -> list[NDArray[Any]]:
    """List what the columns of stacked matrices see, whose inputs lie along either axis."""
    import numpy as np

    times, rest = divmod(length, len(factors))
    return [] if rest else [np.tile(factors, times), np.repeat(factors, times)][: max(1, times)]


def _undoing_rows(diagonal: Diagonal, diagonals: dict[str, Diagonal]) -> list[str]:
    found = []
    for other in diagonals.values():
        free = other.has_columns or diagonal.has_rows
        if not other.has_rows or other.name == diagonal.name:
            continue
        for rows in _repeated(other.rows, len(diagonal.columns)):
            if is_inverse(rows, diagonal.columns, up_to_scale=free):
                found.append(other.name)
                break
    return found


def _repeated(rows: NDArray[Any], length: int) -> Iterator[NDArray[Any]]:
    """Yield the factors of rows as the next columns see them.

    Where several query heads share a head of values, each head's rows come that many times; how
    wide a head is, the factors show.
    """
    import numpy as np

    times, rest = divmod(length, len(rows))
    if times == 1:
        yield rows
    elif not rest:
        for width in range(8, len(rows) + 1, 8):
            if len(rows) % width == 0:
                yield np.repeat(rows.reshape(-1, width), times, axis=0).ravel()


def _nearest(name: str, others: list[str]) -> str | None:
    """Prefer what is in the same block."""
    same = [each for each in others if block(each) == block(name)]
    return next(iter(same or others), None)


def _record(
    diff: Diff,
    kind: str,
    groups: dict[str, list[str]],
    diagonals: dict[str, Diagonal],
    gains: dict[str, Gain],
) -> Explained:
    sources = list(groups)
    matrices = [name for group in groups.values() for name in group]
    biases = _biases(groups, diagonals, gains)
    if kind == "norms_folded":
        biases += _folded_offsets(diff, groups, gains)
    present = {name_of(each) for each in diff.deltas if each.kind != "identical"}
    names = [name for name in dict.fromkeys([*sources, *matrices, *biases]) if name in present]
    rest = sum(diagonals[name].rest for name in names if name in diagonals)
    numbers = {"gains": sum(name in gains for name in sources), "matrices": len(matrices)}
    if kind == "norms_folded":
        text = f"{counted(len(sources), 'gain')} folded into {where(matrices)}"
    else:
        own = [source for source in sources if source in gains]
        parts = [
            _between(part, groups) for part in (own, [each for each in sources if each not in own])
        ]
        joined = " and ".join(filter(None, parts))
        text = f"channels rescaled {joined}, one divided by what multiplies the other"
    return explained(diff, kind, names, text, numbers, rest=rest)


def _between(sources: list[str], groups: dict[str, list[str]]) -> str:
    matrices = [name for source in sources for name in groups[source]]
    return f"between {where(sources)} and {where(matrices)}" if sources else ""


def _biases(
    groups: dict[str, list[str]], diagonals: dict[str, Diagonal], gains: dict[str, Gain]
) -> list[str]:
    """List the vectors beside a gain, or beside rows, that were multiplied by the same factors."""
    import numpy as np

    found = []
    for source in groups:
        own = gains[source].factors if source in gains else diagonals[source].rows
        for other in gains.values():
            if other.name == source or layer(other.name) != layer(source):
                continue
            if other.right is None or len(other.left) != len(own):
                continue
            apart = np.abs(other.right - other.left * own)
            if float(apart.max()) <= 1e-2 * float(np.abs(other.right).max()):
                found.append(other.name)
    return found


def _folded_offsets(diff: Diff, groups: dict[str, list[str]], gains: dict[str, Gain]) -> list[str]:
    """List offsets that went into the biases of the next matrices: b' = b + W offset, verified."""
    found = []
    vectors = _biases_of_right(diff)
    for source, matrices in groups.items():
        for offset in gains.values():
            gone = offset.right is None or not offset.right.any()
            if offset.name == source or layer(offset.name) != layer(source) or not gone:
                continue
            biases = [_absorbs(diff, matrix, offset.left, gains, vectors) for matrix in matrices]
            if all(biases):
                found += [offset.name, *filter(None, biases)]
    return found


def _biases_of_right(diff: Diff) -> dict[str, str]:
    """Map layers to their bias, where the right alone has it."""
    added = (each.pair.right for each in diff.deltas if each.kind == "added")
    return {layer(info.name): info.name for info in added if info and len(info.shape) == 1}


def _absorbs(
    diff: Diff, matrix: str, offset: NDArray[Any], gains: dict[str, Gain], added: dict[str, str]
) -> str | None:
    """Return the bias beside a matrix if it grew by the product of the matrix and an offset."""
    import numpy as np

    rows = diff.values("left", matrix).rows()
    product = np.concatenate([block.astype(np.float64) @ offset for block in rows])
    for name, before, after in _beside(diff, matrix, gains, added):
        if len(after) == len(product):
            apart = np.linalg.norm(after - before - product)
            if apart <= 1e-2 * np.linalg.norm(product):
                return name
    return None


def _beside(
    diff: Diff, matrix: str, gains: dict[str, Gain], added: dict[str, str]
) -> Iterator[tuple[str, Any, NDArray[Any]]]:
    """Yield the vectors of the layer of a matrix: before, and after."""
    for each in gains.values():
        if layer(each.name) == layer(matrix) and each.right is not None:
            yield each.name, each.left, each.right
    if layer(matrix) in added:
        name = added[layer(matrix)]
        yield name, 0.0, diff.values("right", name).array().astype("f8")
