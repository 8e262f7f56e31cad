"""Gradient norms by layer over steps: a table of step, layer, norm, or a column a layer."""

from __future__ import annotations

from pathlib import Path

from ..escape import for_terminal
from ..evidences import Gradients
from .documents import Limits, broken
from .points import Columns, step_of, value_of
from .tables import Row, rows


def gradients(path: str | Path, limits: Limits = None) -> Gradients:
    """Read recorded gradient norms, none below zero."""
    if Path(path).is_dir():
        reason = "it is a folder: runs of the monitor cannot be read yet"
        raise broken(path, reason, "hand in a table with step, layer, norm")
    columns = Columns()
    for row in rows(path, limits, required=("step",), lenient=True):
        step = step_of(row)
        if {"layer", "norm"} <= row.cells.keys():
            _check_long(row)
            columns.add(row.label("layer"), step, _norm(row, "norm"))
            continue
        for layer in row.cells:
            if layer != "step" and not row.is_empty(layer):
                columns.add(layer, step, _norm(row, layer))
    points = columns.points()
    if not points:
        raise broken(path, "it holds the norm of no layer")
    return Gradients(points, str(path), columns.nonfinite())


def _check_long(row: Row) -> None:
    strange = row.cells.keys() - {"step", "layer", "norm"}
    if strange:
        said = f"{row.place}: the column '{for_terminal(min(strange), 80)}' is not known"
        raise broken(row.path, said, "wanted are step, layer, norm")


def _norm(row: Row, column: str) -> float:
    norm = value_of(row, column)
    if norm < 0:
        raise broken(row.path, f"{row.where(column)}: {norm:g}, a norm is not negative")
    return norm
