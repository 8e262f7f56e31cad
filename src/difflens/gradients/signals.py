"""The series that the gradient analysis reads, whatever they came from: a run or plain norms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import SnapshotError
from ..history.forward import course_forward
from .histories import GradientHistory, as_history

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..history.history import History

LARGEST = 1e150  # of a loss: beyond it a square overflows
Floats = Any  # NDArray[np.float64]; the alias keeps the records below readable


class LayerSignal(NamedTuple):
    """One layer's series over the frames in which it had a gradient, oldest first.

    Series other than the norms are None where they were not recorded; all have one length.
    """

    name: str
    steps: NDArray[np.int64]
    norms: Floats
    count: int | None = None  # type: ignore[assignment]  # parameters
    depth: int | None = None  # place along the network, from 0 at the input
    kind: str = ""
    trainable: bool = True
    means: Floats | None = None
    stds: Floats | None = None
    max_abs: Floats | None = None
    zeros: Floats | None = None  # share of exact zeros
    nonfinite: Floats | None = None  # how many values were NaN or infinite
    weight_norms: Floats | None = None
    update_norms: Floats | None = None
    cosines: Floats | None = None  # with the gradient one step before
    dead_units: Floats | None = None  # share of units that never were active
    dtype: str = ""
    # Of the whole run, also where its points were thinned out; None where the series says it all.
    nonfinite_records: int | None = None
    first_nonfinite: int | None = None

    def last(self, points: int) -> LayerSignal:
        """Give the latest points alone."""
        start = max(0, len(self.steps) - points)
        cut: dict[str, Any] = {
            field: value[start:]
            for field, value in zip(self._fields, self, strict=True)
            if isinstance(value, np.ndarray)
        }
        return self._replace(**cut, nonfinite_records=None, first_nonfinite=None)


class Signals(NamedTuple):
    """What is known of a run: every layer in network order, and the scalars of its steps."""

    layers: tuple[LayerSignal, ...]
    steps: NDArray[np.int64]
    loss: Floats | None = None
    validation_steps: NDArray[np.int64] | None = None
    validation_loss: Floats | None = None
    lr: Floats | None = None
    thinned: bool = False  # points of a long run that stand for several frames each
    remarks: tuple[str, ...] = ()  # what was done to the series before they came here


_SERIES = {"weight_norms": "weight_l2", "update_norms": "update_l2", "cosines": "grad_cosine",
           "means": "grad_mean", "max_abs": "grad_max_abs", "zeros": "grad_zeros",
           "nonfinite": "grad_nonfinite", "dead_units": "act_dead"}  # fmt: skip


def signals_of_run(history: History, *, recent: bool = False) -> Signals:
    """Take the series out of a run: its whole course, or its latest frames, one point each."""
    from ..runs import VALIDATION_LOSSES

    course, remark = course_forward(history.recent if recent else history.course)
    columns = {key: course.field(field) for key, field in _SERIES.items()}
    norms, absent = course.field("grad_l2"), course.missing("grad_l2")
    layers = []
    for i, layer in enumerate(course.layers):
        there = ~absent[:, i]
        series = {
            key: None if column is None else _kept(column[there, i])
            for key, column in columns.items()
        }
        if series["zeros"] is not None and layer.count:
            series["zeros"] = series["zeros"] / layer.count
        signal = LayerSignal(
            layer.name,
            course.steps[there],
            np.array([]) if norms is None else norms[there, i].astype(np.float64),
            layer.count or None,
            layer.depth,
            layer.kind,
            layer.trainable,
            dtype=layer.dtype,
            **series,
        )
        layers.append(signal if recent else _with_extremes(signal, history, i))
    loss, held = course.scalar("loss"), course.first_scalar(VALIDATION_LOSSES)
    finite = None if held is None else np.isfinite(_usable(held[1]))
    return Signals(
        tuple(layers),
        course.steps,
        None if loss is None else _usable(loss),
        None if finite is None else course.steps[finite],
        None if held is None else held[1][finite],
        course.scalar("lr"),
        not course.is_whole,
        (remark,) if remark else (),
    )


def _usable(losses: Floats) -> Floats:
    """Take a loss that no square can be made of for infinite: it is as broken as one."""
    return np.where(np.abs(losses) > LARGEST, np.inf, losses)


def _with_extremes(signal: LayerSignal, history: History, place: int) -> LayerSignal:
    """Add what the points of a long run no longer show: how often a norm was not finite."""
    fields, seen = history.info.fields, history.extremes
    if "grad_l2" not in fields:
        return signal
    row = fields.index("grad_l2")
    first = int(seen.first_nonfinite[row, place])
    return signal._replace(
        nonfinite_records=int(seen.nonfinite[row, place]),
        first_nonfinite=None if first < 0 else first,
    )


def _kept(values: Any) -> Floats | None:
    """Give the series as 64-bit numbers; None where nothing in it was recorded."""
    from ..history.frame import is_missing

    return None if is_missing(values).all() else values.astype(np.float64)


def signals_of_histories(histories: Mapping[str, Any]) -> Signals:
    """Take series that were handed in: layer to a history, or to a plain sequence of norms.

    The order of the mapping is taken for the order of the network.
    """
    if not isinstance(histories, Mapping):
        kind = type(histories).__name__
        raise SnapshotError(f"histories are a {kind}; they map layers to histories or norms")
    layers = tuple(_signal(name, given) for name, given in histories.items())
    steps = [layer.steps for layer in layers]
    union = np.unique(np.concatenate(steps)) if steps else np.array([], np.int64)
    return Signals(layers, union)


def _signal(name: object, given: Any) -> LayerSignal:
    if not isinstance(name, str):
        raise SnapshotError(f"a layer is called {name!r}; names are text")
    if isinstance(given, Mapping):
        given = as_history(name, given)
    if isinstance(given, GradientHistory):
        return LayerSignal(
            name,
            np.array(given.step_numbers, np.int64),
            np.array(given.gradient_norms, np.float64),
            means=_measured(given.gradient_means),
            stds=_measured(given.gradient_stds),
            dead_units=_measured(given.dead_ratios),
        )
    return _plain(name, given)


def _measured(values: list[float | None]) -> Floats | None:
    array = np.array(values, np.float64)
    return None if np.isnan(array).all() else array


def _plain(name: str, given: Any) -> LayerSignal:
    try:
        values = np.array([np.nan if each is None else each for each in given], np.float64)
    except (TypeError, ValueError) as error:
        raise SnapshotError(f"layer {name!r}: {error}; norms are a sequence of numbers") from error
    if values.ndim != 1:
        raise SnapshotError(
            f"layer {name!r} has {values.ndim} dimensions; norms are a sequence of numbers",
            hint="give one norm a step, not the gradients themselves",
        )
    if (values < 0).any():
        where = int(np.flatnonzero(values < 0)[0])
        raise SnapshotError(f"layer {name!r}: norm {where} is {values[where]:g}, below zero")
    there = np.array([each is not None for each in given], bool)
    return LayerSignal(name, np.flatnonzero(there).astype(np.int64), values[there])
