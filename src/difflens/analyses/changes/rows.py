"""Was knowledge written into a few rows, or as one outer product (ROME, Meng et al. 2022)?"""

from __future__ import annotations

from .change import Change, Numbers
from .energy import Moved
from .spectra import is_matrix, rank_of


def row_edit(change: Change) -> Numbers | None:
    """Give the rows that changed where they are few, or the rank where it is one."""
    if not change.is_measured or not all(is_matrix(each) for each in change.measured):
        return None
    return _few_rows(change) or _one_product(change)


def _few_rows(change: Change) -> Numbers | None:
    limit = change.thresholds["row_fraction"]
    counts = []
    for each in change.measured:
        if each.scan.changed > limit * each.scan.count:
            return None  # no row can have changed as a whole
        counts.append(_rows(change, each))
        changed, rows, columns = counts[-1]
        # A few elements in a row are a sparse change, not an edit of the row.
        if changed > limit * rows or each.scan.changed < changed * columns / 2:
            return None
    changed = sum(count[0] for count in counts)
    return {"rows_changed": changed, "rows": sum(count[1] for count in counts)}


def _rows(change: Change, each: Moved) -> tuple[int, int, int]:
    """Count the rows in which something changed, of how many, and how long they are."""
    left, right = change.values(each.delta)
    rows, columns = left.matrix_shape
    step = 1 << 18
    pieces = zip(left.rows(step), right.rows(step), strict=True)
    changed = sum(int((before != after).any(axis=1).sum()) for before, after in pieces)
    return changed, rows, columns


def _one_product(change: Change) -> Numbers | None:
    if len(change.measured) > change.thresholds["edited_matrices"]:
        return None
    ranks = []
    for each in change.measured:
        found = rank_of(change, each)
        if found is None or found.rank != 1:
            return None
        ranks.append(found)
    return {"rank": 1, "matrices": len(ranks), "energy": min(found.energy for found in ranks)}
