"""One row as lines of text, in parts that folding can put together again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..escape import for_terminal
from ..records import Row
from .numbers import before_after, brackets, percent, scientific
from .rows import (
    became_zero,
    figures,
    has_changed_values,
    is_from_zero,
    is_renamed,
    nonfinite_appeared,
    statistics,
)


class Line(NamedTuple):
    """`SIGN NAMES: HEAD, FIGURES, TAIL ALARM`; lines that share head and tail may fold."""

    sign: str
    names: tuple[str, ...]
    head: str = ""
    figures: str = ""
    tail: str = ""
    relative_l2: float | None = None
    alarm: str = ""


def joined(*parts: str) -> str:
    """Put the parts that say something behind each other."""
    return ", ".join(filter(None, parts))


def lines(row: Row, *, stats: bool, renames: bool) -> Iterator[Line]:
    """Yield what there is to say of a row; `renames` is off where one line tells them all."""
    if renames and is_renamed(row) and row.left and row.right:
        names = (row.left.name, row.right.name)
        yield Line(">", names, f"({for_terminal(row.how)})")
    if row.kind == "changed":
        yield _stats(row) if stats else _changed(row)
    elif row.kind == "recast":
        yield _recast(row)
        if stats and has_changed_values(row):
            yield _stats(row)
    elif row.kind == "reshaped":
        yield _reshaped(row)
    elif row.kind in {"added", "removed"}:
        yield _one_sided(row)
    elif row.kind == "tied":
        yield Line("=", (row.name,), for_terminal(row.how))
    elif row.kind == "uncompared":
        yield Line("?", (row.name,), f"not compared: {for_terminal(row.skipped or 'unknown')}")


def _changed(row: Row) -> Line:
    found = figures(row)
    relative = found["relative_l2"]
    text = (
        f"relative_l2={scientific(relative)} max_abs={scientific(found['max_abs'])} "
        f"changed={percent(found['changed_fraction'])}"
    )
    tail = "from all zeros" if is_from_zero(row) else ""
    return Line("~", (row.name,), "", text, tail, relative, _alarm(row))


def _stats(row: Row) -> Line:
    left = statistics(row.left, row.left_stats)
    right = statistics(row.right, row.right_stats)
    moves = [f"{name}={before_after(left[name], right[name])}" for name in ("mean", "std")]
    return Line("~", (row.name,), "", ", ".join(moves), alarm=_alarm(row))


def _recast(row: Row) -> Line:
    found = figures(row)
    head = _dtypes(row)
    if row.figures is None:
        return Line("!", (row.name,), head)
    if found["changed_count"] == 0:
        return Line("!", (row.name,), head, tail="values equal", alarm=_alarm(row))
    relative = found["relative_l2"]
    tail = "within storage rounding" if found["within_storage_rounding"] else ""
    text = f"relative_l2={scientific(relative)}"
    return Line("!", (row.name,), head, text, tail, relative, _alarm(row))


def _reshaped(row: Row) -> Line:
    shapes = [brackets(side.shape) for side in (row.left, row.right) if side]
    return Line("!", (row.name,), joined(f"shape={' -> '.join(shapes)}", _dtypes(row)))


def _one_sided(row: Row) -> Line:
    info = row.right or row.left
    text = f"{for_terminal(info.dtype)} {brackets(info.shape)}" if info else ""
    return Line("+" if row.kind == "added" else "-", (row.name,), text, alarm=_alarm(row))


def _dtypes(row: Row) -> str:
    dtypes = [for_terminal(side.dtype) for side in (row.left, row.right) if side]
    return f"dtype={' -> '.join(dtypes)}" if len(set(dtypes)) > 1 else ""


def _alarm(row: Row) -> str:
    grown = nonfinite_appeared(row)
    if grown:
        return f" NON-FINITE: {grown[0]} -> {grown[1]}"
    return " ALL ZERO NOW" if became_zero(row) else ""
