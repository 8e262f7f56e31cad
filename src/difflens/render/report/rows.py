"""What every renderer asks of a row: is it told, and what is known of its sides."""

from __future__ import annotations

from math import isfinite
from typing import Any

from difflens.core.records import Figures, Row, Stats, TensorInfo

# Every field of M in cli.md, in its order: what is not measured is null, never absent.
FIGURES = Figures.__struct_fields__

# Every field of S in cli.md; full-json has the rest of what was measured.
STATISTICS = ("mean", "std", "min", "max", "shape", "dtype", "total_params")

_QUIET = frozenset({"identical", "within_epsilon", "paired"})
_TIED = "tied to "


def is_renamed(row: Row) -> bool:
    """Is it called differently on the two sides? A tied weight is told as tied instead."""
    left, right = row.left, row.right
    return left is not None and right is not None and left.name != right.name and row.kind != "tied"


def is_different(row: Row) -> bool:
    """Is there anything to say of it?"""
    return row.kind not in _QUIET or is_renamed(row)


def shown_kind(row: Row) -> str:
    """Name what there is to tell: a pair that is the same but for its name is renamed."""
    return "renamed" if row.kind in _QUIET and is_renamed(row) else row.kind


def figures(row: Row) -> dict[str, Any]:
    """Return every figure of a report row, then those of extra measures."""
    known = row.figures or Figures(transform=row.transform)
    error = {} if row.estimated_error is None else {"estimated_error": row.estimated_error}
    return {name: getattr(known, name) for name in FIGURES} | error | (row.further or {})


def statistics(info: TensorInfo | None, measured: Stats | None) -> dict[str, Any]:
    """Return S: the header is always known, the rest is null if nothing was measured."""
    known: dict[str, Any] = {key: getattr(measured, key, None) for key in STATISTICS}
    if info:
        known |= {"shape": list(info.shape), "dtype": info.dtype, "total_params": info.count}
    return known


def mark(row: Row) -> str:
    """Return what stands before a distance that is an estimate."""
    return "" if row.estimated_error is None else "~"


def has_changed_values(row: Row) -> bool:
    """Did a measured value move?"""
    return bool(row.figures and row.figures.changed_count)


def tied_to(row: Row) -> str:
    """Name the tensor it is tied to."""
    return row.how.removeprefix(_TIED)


def nonfinite(row: Row) -> tuple[int, int]:
    """Count NaN and infinity before and after."""
    found = row.figures
    return (found.left_nonfinite or 0, found.right_nonfinite or 0) if found else (0, 0)


def nonfinite_appeared(row: Row) -> tuple[int, int] | None:
    """Return the counts of NaN and infinity before and after where they grew."""
    left, right = nonfinite(row)
    if row.kind == "added" and row.right_stats:
        right = row.right_stats.nonfinite
    return (left, right) if right > left else None


def became_zero(row: Row) -> bool:
    """Is every value zero now, and was not before?"""
    if not (row.left and row.right and row.left_stats and row.right_stats):
        return False
    before, after = row.left_stats.zeros, row.right_stats.zeros
    return 0 < after == row.right.count and before < row.left.count


def is_from_zero(row: Row) -> bool:
    """Was every value zero before, and is not now, so that the change is relative to nothing?"""
    if not (row.left and row.right and row.left_stats and row.right_stats):
        return False
    before, after = row.left_stats.zeros, row.right_stats.zeros
    return 0 < before == row.left.count and after < row.right.count


def finite(value: Any) -> Any:
    """Return plain maps, lists and numbers; a number that is not finite is null."""
    if isinstance(value, float):
        return float(value) if isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    return value


def spelled(value: Any) -> Any:
    """Return plain maps, lists and numbers; what a user set and is not finite is its name.

    >>> spelled({"threshold": float("inf")})
    {'threshold': 'Infinity'}
    """
    if isinstance(value, float) and not isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"  # noqa: PLR0124
    if isinstance(value, dict):
        return {str(key): spelled(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [spelled(each) for each in value]
    return value
