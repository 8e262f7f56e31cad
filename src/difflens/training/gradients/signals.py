"""The series that the gradient analysis reads, whatever they came from: a run or plain norms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from difflens.core.errors import SnapshotError

from .histories import GradientHistory, as_history

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..history.history import Course, History

LARGEST = 1e150  # of a loss: beyond it a square overflows
Floats = Any  # NDArray[np.float64]; the alias keeps the records below readable


class LayerSignal(NamedTuple):
    """One layer's series over the frames in which it had a gradient, oldest first.

    Series other than the norms are None if they were not recorded; all have one length.
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
        """Return the latest points alone."""
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


_SERIES = {
    "weight_norms": "weight_l2",
    "update_norms": "update_l2",
    "cosines": "grad_cosine",
    "means": "grad_mean",
    "max_abs": "grad_max_abs",
    "zeros": "grad_zeros",
    "nonfinite": "grad_nonfinite",
    "dead_units": "act_dead",
}


def signals_of_run(history: History, *, recent: bool = False) -> Signals:
    """Take the series out of a run: its whole course, or its latest frames, one point each."""
    from ..records.runs import VALIDATION_LOSSES

    course, remark = course_forward(history.recent if recent else history.course)
    columns = {key: course.field(field) for key, field in _SERIES.items()}
    norms, absent = course.field("grad_l2"), course.missing("grad_l2")
    layers = []
    for i, layer in enumerate(course.layers):
        there = ~absent[:, i]
        series = {
            key: None if column is None else _series(column[there, i])
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
    scalars, _ = course_forward(history.recent_scalars if recent else history.scalars)
    loss, held = scalars.scalar("loss"), scalars.first_scalar(VALIDATION_LOSSES)
    finite = None if held is None else np.isfinite(_usable(held[1]))
    return Signals(
        tuple(layers),
        scalars.steps,
        None if loss is None else _usable(loss),
        None if finite is None else scalars.steps[finite],
        None if held is None else held[1][finite],
        scalars.scalar("lr"),
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


def _series(values: Any) -> Floats | None:
    """Return the series as 64-bit numbers; None if nothing in it was recorded."""
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
    return _signal_of_norms(name, given)


def _measured(values: list[float | None]) -> Floats | None:
    array = np.array(values, np.float64)
    return None if np.isnan(array).all() else array


def _signal_of_norms(name: str, given: Any) -> LayerSignal:
    try:
        values = np.array([np.nan if each is None else each for each in given], np.float64)
    except (TypeError, ValueError) as error:
        raise SnapshotError(f"layer {name!r}: {error}; norms are a sequence of numbers") from error
    if values.ndim != 1:
        raise SnapshotError(
            f"layer {name!r} has {values.ndim} dimensions; norms are a sequence of numbers",
            hint="give one norm per step, not the gradients themselves",
        )
    if (values < 0).any():
        where = int(np.flatnonzero(values < 0)[0])
        raise SnapshotError(f"layer {name!r}: norm {where} is {values[where]:g}, below zero")
    there = np.array([each is not None for each in given], bool)
    return LayerSignal(name, np.flatnonzero(there).astype(np.int64), values[there])


# A run that was resumed has the same steps twice, and slopes, windows and tables need time to go
# forward. So a record whose step a later one reaches again is left out, as its work was. Where that
# would leave less than half (steps that begin anew in every epoch, or stand still), records are
# counted instead. Sorting by step was not taken: it would weave two attempts into one course.

_LEAST_SHARE = 0.5  # of the records that are never taken again, below which steps are no clock


class Forward(NamedTuple):
    """Which records count, and at which steps, each after the one before it."""

    kept: NDArray[np.bool_]
    steps: NDArray[np.int64]
    remark: str = ""


def forward(steps: NDArray[np.int64]) -> Forward:
    """Find the records that count.

    >>> forward(np.array([0, 1, 2, 3, 2, 3, 4])).steps.tolist()
    [0, 1, 2, 3, 4]
    >>> forward(np.array([7, 7, 7])).steps.tolist()
    [0, 1, 2]
    """
    n = len(steps)
    kept = np.ones(n, bool)
    if n < 2 or bool((steps[1:] > steps[:-1]).all()):
        return Forward(kept, steps)
    kept[:-1] = steps[:-1] < np.minimum.accumulate(steps[::-1])[::-1][1:]
    if kept.sum() >= _LEAST_SHARE * n:
        text = f"{n - int(kept.sum())} of {n} records are left out: their steps were taken again"
        return Forward(kept, steps[kept], text)
    back = int((steps[1:] <= steps[:-1]).sum())
    text = f"the step does not rise at {back} of {n} records, so records are counted for steps"
    return Forward(np.ones(n, bool), np.arange(n, dtype=np.int64), text)


def course_forward(course: Course) -> tuple[Course, str]:
    """Return a course whose steps rise, and what was done to it."""
    ahead = forward(course.steps)
    return (course.at(ahead.kept, ahead.steps), ahead.remark) if ahead.remark else (course, "")


def broken(signal: LayerSignal) -> NDArray[np.bool_]:
    """Tell the records in which the norm, or any element of the gradient, was not finite."""
    odd: NDArray[np.bool_] = ~np.isfinite(signal.norms)
    if signal.nonfinite is not None:
        odd |= ~(signal.nonfinite == 0) & ~np.isnan(signal.nonfinite)
    return odd


def nonfinite_records(signal: LayerSignal) -> int:
    """Count them; a long run that was thinned out has kept the count beside its points."""
    return max(int(broken(signal).sum()), signal.nonfinite_records or 0)


def quantiles(finite: NDArray[np.float64], levels: tuple[float, ...]) -> list[float]:
    """Return quantiles of type 7; halved on the way, for the sum of two norms may be too large."""
    halves = np.quantile(finite / 2, levels)
    return [min(2 * float(each), float(finite.max())) for each in halves]
