"""Where evidence is laid out: files are read by their kind, and what came from where is noted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypedDict

from difflens.core.addresses import Address, Location, locate
from difflens.core.errors import EvidenceError, RunError
from difflens.core.escape import for_terminal

from .discovery import beside, inside, licence, step_in_name
from .documents import Limits, broken, config, json_object, kind_of, number
from .measurements import Columns, evals, is_number, latency, log, step_of, value_of
from .optimizer import optimizer
from .records import Gradients, Log, Past, Side
from .tables import Row, rows
from .tokens import tokens

_FIELD = "grad_l2"


def gradients(path: str | Location, limits: Limits = None) -> Gradients:
    """Read recorded gradient norms, none below zero."""
    where = locate(path)
    if isinstance(where, Path) and (where.is_dir() or where.suffix == ".dlr"):
        return _of_run(where)
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
    from difflens.training.history import read_history

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


def history(path: str | Location, limits: Limits = None) -> tuple[Past, ...]:
    """Read one value a row, in the order of the file: oldest first."""
    seen: dict[tuple[str, str], str] = {}
    found = []
    for row in rows(path, limits, required=("version", "metric", "value"), optional=("time",)):
        past = Past(
            row.label("version"),
            row.label("metric"),
            row.number("value"),
            row.label_or_none("time"),
        )
        key = (past.version, past.metric)
        if key in seen:
            said = f"{row.place}: version '{for_terminal(past.version, 80)}' of metric"
            metric = for_terminal(past.metric, 80)
            raise broken(path, f"{said} '{metric}' stands in {seen[key]} already")
        seen[key] = row.place
        found.append(past)
    return tuple(found)


def runs(path: str | Location, limits: Limits = None) -> tuple[dict[str, Any], ...]:
    """Read the runs; a cell is a finite number, text, true or false, or None if it is empty."""
    return tuple({column: _cell(row, column) for column in row.cells} for row in rows(path, limits))


def _cell(row: Row, column: str) -> Any:
    cell = row.cells[column]
    if row.is_empty(column):
        return None
    if type(cell) in (list, dict):
        said = f"{row.where(column)}: {kind_of(cell)} where a number or text is wanted"
        raise broken(row.path, said)
    return row.number(column) if is_number(row, column) or type(cell) is int else cell


def metrics(path: str | Location, limits: Limits = None) -> dict[str, float]:
    """Read `{"accuracy": 0.91, "eval_loss": 0.33}`."""
    found = json_object(path, limits)
    if not found:
        raise broken(path, "it names no metric")
    return {
        name: number(value, path, f"metric '{for_terminal(name, 80)}'")
        for name, value in found.items()
    }


File = str | Location | None


class Named(TypedDict, total=False):
    """The files a user may name, by what they hold."""

    config_left: File
    config_right: File
    metrics_left: File
    metrics_right: File
    evals_left: File
    evals_right: File
    latency_left: File
    latency_right: File
    tokens_left: File
    tokens_right: File
    optimizer_left: File
    optimizer_right: File
    licence_left: File
    licence_right: File
    history: File
    log: File
    gradients: File
    runs: File


_READERS: dict[str, Callable[..., Any]] = {
    "config": config,
    "metrics": metrics,
    "evals": evals,
    "latency": latency,
    "tokens": tokens,
    "optimizer": optimizer,
    "licence": licence,
    "log": log,
    "history": history,
    "gradients": gradients,
    "runs": runs,
}
_OF_A_SIDE = ("config", "metrics", "evals", "latency", "tokens", "optimizer", "licence")


class Desk:
    """Reads what was named and what was found; `given` lists all of it."""

    def __init__(self, named: Mapping[str, Any], limits: Limits, *, discovery: bool) -> None:
        """Take what the user named; read nothing yet."""
        strange = [name for name in named if name not in Named.__annotations__]
        if strange:
            raise TypeError(f"gather() takes no {strange[0]!r}: {', '.join(Named.__annotations__)}")
        self._named = {
            name: _without_query(path) for name, path in named.items() if path is not None
        }
        self._limits = limits
        self._discovery = discovery
        self.given: dict[str, str] = {}

    def named(self, name: str) -> Any:
        """Read a file the user named; None if there is none."""
        if name not in self._named:
            return None
        kind = name.removesuffix("_left").removesuffix("_right")
        found = _READERS[kind](self._named[name], self._limits)
        self.note(name, self._named[name])
        return found

    def note(self, name: str, what: object, how: str = "named") -> None:
        """List something as used."""
        self.given[name] = f"{what} ({how})"

    def side(self, name: str, model: Any, other: Any) -> Side:
        """Read what there is about one model: named before discovered."""
        found = {kind: self.named(f"{kind}_{name}") for kind in _OF_A_SIDE} | {"log": None}
        if self._discovery:
            for kind, path in (inside(model) | beside(model, other)).items():
                if found[kind] is None:
                    own = path == locate(str(model))
                    found[kind] = self._discovered(f"{kind}_{name}", kind, path, quiet=own)
        vocabulary, state = found.pop("tokens"), found.pop("log")
        step = state.step if state else None
        if step is None and self._discovery and step_in_name(model) is not None:
            step = step_in_name(model)
            self.note(f"step_{name}", step, "in the name")
        return Side(
            **{kind: value for kind, value in found.items() if value is not None},
            tokens=vocabulary.tokens if vocabulary else None,
            special_tokens=vocabulary.special if vocabulary else None,
            log=state.log if state else None,
            step=step,
        )

    def step(self, name: str, model: Any) -> int | None:
        """Say at which step a checkpoint was saved: by its name, or by the log beside it."""
        step = step_in_name(model)
        path = beside(model).get("log") if self._discovery and step is None else None
        state = self._discovered(name, "log", path, quiet=False) if path else None
        return state.step if state else step

    def _discovered(self, name: str, kind: str, path: Location, *, quiet: bool) -> Any:
        """Read a file that was found; one that cannot be used is noted, unless `quiet`."""
        try:
            found = _READERS[kind](path, self._limits)
        except EvidenceError as error:
            if not quiet:  # a checkpoint need not hold an optimiser
                self.note(name, path, f"discovered, not used: {for_terminal(error.reason)}")
            return None
        if found is not None:
            self.note(name, path, "discovered")
        return found


def _without_query(path: str | Location) -> str | Location:
    """Return the location of an address, whose text hides what may be a signature."""
    place = locate(path)
    return place if isinstance(place, Address) else path


def shared_log(left: Log | None, right: Log | None) -> Log | None:
    """Return the log of the run of both checkpoints; None if they belong to different runs.

    The log of the later checkpoint begins with the other's.
    """
    if not (left and right):
        return right or left
    later, earlier = (
        {(name, point) for name, points in each.columns.items() for point in points}
        for each in (right, left)
    )
    return right if earlier <= later else left if later <= earlier else None
