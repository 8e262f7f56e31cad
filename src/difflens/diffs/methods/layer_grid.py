"""Every left layer against every right one, by sketches: moved, repeated and grafted layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..diff import Diff
from .kinship import Load, Sides, first_view, loads, paired, spearman, spread
from .symmetry.matching import match_rows
from .symmetry.slots import Group

if TYPE_CHECKING:
    from numpy.typing import NDArray

_COLUMNS = 512


def sketch(group: Group, load: Load, rows: int, seed: int) -> NDArray[Any] | None:
    """Take some units and some of their weights: the same ones of every layer as large."""
    import numpy as np

    whole = first_view(group, load)
    if whole is None or not np.isfinite(whole).all() or (whole == whole[0]).all():
        return None
    random = np.random.default_rng(seed)
    chosen = np.sort(random.permutation(len(whole))[:rows])
    width = whole.shape[1]
    columns = np.sort(random.permutation(width)[:_COLUMNS])
    return whole[chosen][:, columns].copy()


def rho(left: NDArray[Any], right: NDArray[Any]) -> float | None:
    """Match the sketches of two layers, and tell how far their units keep their order."""
    import numpy as np

    if left.shape != right.shape or len(left) < 3:
        return None
    return spearman(np.arange(len(left)), match_rows(left, right))


def grid(
    diff: Diff, sides: Sides, layers: int, units: int, seed: int
) -> tuple[list[str], dict[str, Any] | None]:
    """Match all layers of one side with all of the other, by a sketch of each.

    Gives the names of the right layers' own partners, and the matrix.
    """
    found = []
    for side, load in zip(sides, loads(diff), strict=True):
        chosen = spread([group for group in side if group.kind != "heads"], layers)
        drawn = [(group.name, sketch(group, load, units, seed)) for group in chosen]
        found.append([(name, rows) for name, rows in drawn if rows is not None])
    left, right = found
    if len(left) < 2 or len(right) < 2:
        return [], None
    rows = [[rho(a, b) for _, b in right] for _, a in left]
    known = any(value is not None for row in rows for value in row)
    names = {after.name: before.name for before, after in paired(diff, sides)}
    partners = [names.get(name, "") for name, _ in right]
    matrix = {"left": [name for name, _ in left], "right": [name for name, _ in right], "rho": rows}
    return partners, matrix if known else None


def best_of(matrix: dict[str, Any], least: float) -> list[dict[str, Any]]:
    """Name for each right layer the left one it matches best; none if that is no match."""
    best = []
    for column, name in enumerate(matrix["right"]):
        values = [(row[column], index) for index, row in enumerate(matrix["rho"])]
        known = [(value, -index) for value, index in values if value is not None]
        top, at = max(known, default=(None, 0))
        source = matrix["left"][-at] if top is not None and top > least else None
        best.append({"layer": name, "from": source, "rho": top, "place": column})
    return best


def partner(names: list[str], entry: dict[str, Any]) -> str:
    """Return the left layer that a right one is paired with."""
    return names[int(entry["place"])]
