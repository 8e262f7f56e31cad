"""Gradient norms by layer over steps: a table of step, layer, norm, a column a layer, or a run."""

from __future__ import annotations

from pathlib import Path

from ..errors import RunError
from ..escape import for_terminal
from ..evidences import Gradients
from .documents import Limits, broken
from .points import Columns, step_of, value_of
from .tables import Row, rows

_FIELD = "grad_l2"


def gradients(path: str | Path, limits: Limits = None) -> Gradients:
    """Read recorded gradient norms, none below zero."""
    if Path(path).is_dir() or Path(path).suffix == ".dlr":
        return _of_run(Path(path))
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


def _of_run(path: Path) -> Gradients:
    """Take the norms out of a run, or a folder of event files.

    A long run comes thinned out: a point is then the mean of several frames.
    """
    from ..history import read_history

    try:
        history = read_history(path)
    except RunError as error:
        raise broken(path, error.reason, error.hint) from error
    course = history.course
    norms, absent = course.field(_FIELD), course.missing(_FIELD)
    if norms is None:
        raise broken(path, "it holds the norm of no layer")
    columns = Columns()
    for i, layer in enumerate(course.layers):
        for point in (~absent[:, i]).nonzero()[0]:
            step, norm = int(course.steps[point]), float(norms[point, i])
            if step < 0 or norm < 0:
                what = "a step" if step < 0 else "a norm"
                raise broken(path, f"{for_terminal(layer.name, 80)}: {what} below zero")
            columns.add(layer.name, step, norm)
    odd = columns.nonfinite()
    first = history.extremes.first_nonfinite[course.info.fields.index(_FIELD)]
    for layer, step in zip(course.layers, first.tolist(), strict=True):
        if step >= 0:  # it may lie within a point whose mean is finite
            odd[layer.name] = tuple(sorted({*odd.get(layer.name, ()), float(step)}))
    return Gradients(columns.points(), str(path), odd)


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
