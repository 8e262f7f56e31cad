"""The flow of gradients out of a recorded run: the same frames and pictures as of an animator.

Where a run is long, a point of its history stands for several frames: it is flagged where any of
them is, and its numbers are the mean of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from difflens.core.errors import RunError, UnknownName

from ..history.frame import is_missing
from ..history.history import Course, History
from ..records.flow import FlowPicture, GradientFlowConfig, RunCurves
from ..records.runs import VALIDATION_LOSSES
from .aggregates import Moment
from .animator import GradientFlowAnimator
from .files import empty_block
from .picture import Cells, matching, merged, picture
from .states import (
    EXPLODING,
    FROZEN,
    HEALTHY,
    NON_FINITE,
    NONE,
    VANISHING,
    ZERO,
    peers,
    unusually_small,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

# What may have a sign lies on no logarithmic scale; these have none.
LARGEST_STEP = 2**62
DRAWN = tuple(
    """
    grad_l2 grad_mean_abs grad_max_abs weight_l2 update_l2 grad_zeros grad_nonfinite act_std
    act_dead act_saturated
""".split()
)
_RATIOS = {
    "grad_rms": ("grad_l2", None),
    "update_rms": ("update_l2", None),
    "gradient_ratio": ("grad_l2", "weight_l2"),
    "update_ratio": ("update_l2", "weight_l2"),
}
FIELDS = (*_RATIOS, *DRAWN)
_MOST_LOSSES = 2


def picture_of(
    history: History,
    *,
    field: str = "auto",
    layers: str = "",
    config: GradientFlowConfig | None = None,
    **how: Any,
) -> FlowPicture:
    """Return the heat map's numbers of a run, of all layers or of those that match.

    `how` is that of `picture`.
    """
    judged = config or GradientFlowConfig()
    how.setdefault("title", history.info.name)
    cells = cells_of_run(history, field, judged)
    if layers:
        cells = cells.of_layers(matching(cells.layers, layers))
    return picture(cells, config=judged, **how)


def curves_of(history: History, *, columns: int, rows: int) -> RunCurves:
    """Return the loss, the first validation loss and the layers of a run, where recorded."""
    losses: dict[str, tuple[tuple[int, ...], tuple[float, ...]]] = {}
    for name in ("loss", *VALIDATION_LOSSES):
        values = history.scalars.scalar(name)
        if values is None or len(losses) == _MOST_LOSSES:
            continue
        known = np.flatnonzero(np.isfinite(values))
        if len(known):
            losses[name] = (
                tuple(history.scalars.steps[known].tolist()),
                tuple(values[known].tolist()),
            )
    try:
        layers = picture_of(history, columns=columns, rows=rows)
    except RunError:  # a log without gradients
        layers = None
    first = history.first_nonfinite_scalar.get("loss")
    return RunCurves(losses, first, layers if layers and layers.columns and layers.layers else None)


def cells_of_run(
    history: History,
    field: str,
    config: GradientFlowConfig,
    states: NDArray[np.uint8] | None = None,
) -> Cells:
    """Return a field of every layer over the points of a run; states that are known are taken."""
    course = history.course
    if field == "auto":
        field = "grad_rms" if np.isfinite(course.counts).all() else "grad_l2"
    if field not in FIELDS:
        raise UnknownName("field", field, FIELDS)
    fields = [_values(course, field, which) for which in (course.field, course.low, course.high)]
    if fields[0] is None:
        if len(course):
            raise _unrecorded(history, field)
        fields = [np.empty((0, len(course.layers)))] * 3
    mean, low, high = fields[:1] * 3 if course.is_whole else fields
    return Cells(
        field,
        tuple(layer.name for layer in course.layers),
        course.steps,
        course.first_steps,
        course.spans,
        mean,
        low,
        high,
        run_states(history, config) if states is None else states,
    )


def _unrecorded(history: History, field: str) -> RunError:
    course = history.course
    has = [each for each in FIELDS if _values(course, each, course.field) is not None]
    hint = f"recorded: {', '.join(has) or 'nothing of its layers'}"
    return RunError(history.info.name or "this run", f"{field} was not recorded", hint=hint)


def _values(course: Course, field: str, which: Callable[[str], Any]) -> Any:
    above, below = _RATIOS.get(field, (field, ""))
    values = which(above)
    if values is None or below == "":
        return None if values is None else values.astype(np.float64)
    if below is None:
        return values.astype(np.float64) / np.sqrt(course.counts)
    other = course.field(below)  # weights hardly move within a point: their mean will do
    if other is None:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(other > 0, values.astype(np.float64) / other, np.nan)


def run_states(history: History, config: GradientFlowConfig) -> NDArray[np.uint8]:
    """Judge every layer at every point; without gradients recorded there is no state but none."""
    course = history.course
    norms = course.field("grad_l2")
    sizes = norms if norms is not None else course.field("grad_mean_abs")
    states = np.full((len(course), len(course.layers)), NONE, np.uint8)
    if sizes is None:
        return states
    states[~is_missing(sizes)] = HEALTHY
    there = states == HEALTHY
    states[there & _holds_zero(course)] = ZERO
    states[there & _small(course, norms, config)] = VANISHING
    most = course.high("grad_max_abs")
    if most is not None and config.exploding_threshold is not None:
        states[there & (most > config.exploding_threshold)] = EXPLODING
    states[there & _not_finite(history, sizes)] = NON_FINITE
    frozen = np.array([not layer.trainable for layer in course.layers], bool)
    states[frozen[None, :] & ((states == NONE) | (states == ZERO))] = FROZEN
    return states


def _holds_zero(course: Course) -> Any:
    low = course.low("grad_max_abs")
    low = course.low("grad_l2") if low is None else low
    return False if low is None else low == 0


def _small(course: Course, norms: Any, config: GradientFlowConfig) -> Any:
    small: Any = np.zeros((len(course), len(course.layers)), bool)
    low = course.low("grad_mean_abs")
    if low is not None and config.vanishing_threshold is not None:
        small |= (low > 0) & (low < config.vanishing_threshold)
    weights = course.field("weight_l2")
    if norms is not None and weights is not None:
        groups = peers([layer.role for layer in course.layers])
        for point in range(len(course)):
            small[point] |= unusually_small(norms[point], weights[point], groups, config)
    return small


def _not_finite(history: History, sizes: Any) -> Any:
    """Find points with a value that is not finite; merged points keep them only as a count."""
    course = history.course
    broken = ~np.isfinite(sizes)
    counted = course.high("grad_nonfinite")
    if counted is not None:
        broken |= counted > 0
    # A run that went back to a checkpoint has a step twice: the first point counts.
    begins = np.minimum(course.first_steps, course.steps)
    ends = np.maximum(course.first_steps, course.steps)
    for place, field in enumerate(course.info.fields):
        if field.startswith("grad_"):
            first = history.extremes.first_nonfinite[place]
            for layer in np.flatnonzero(first >= 0):
                holds = (begins <= first[layer]) & (first[layer] <= ends)
                broken[np.flatnonzero(holds)[:1], layer] = True
    return broken


def animator_of_run(
    history: History, *, columns: int = 0, config: GradientFlowConfig | None = None
) -> GradientFlowAnimator:
    """Return an animator that holds the points of a run, at most so many (0 is all).

    Shares in its summary are of points where the run is too long to hold every frame. Frames are
    numbered where the steps of the run do not rise: an animator takes no step twice.
    """
    judged = msgspec.structs.replace(config or GradientFlowConfig(), max_frames=0)
    animator = GradientFlowAnimator(config=judged).with_layers(history.course.layers)
    states = run_states(history, judged)
    mean_abs, max_abs, norm, weight, zeros, odd = (
        merged(_known_or_not(history, name, judged, states), columns)
        for name in (
            "grad_mean_abs",
            "grad_max_abs",
            "grad_l2",
            "weight_l2",
            "grad_zeros",
            "grad_nonfinite",
        )
    )
    counts = history.course.counts
    steps, first_steps = norm.steps, norm.first_steps
    if not has_rising_steps(history):
        steps = np.cumsum(norm.spans) - 1
        first_steps = steps - norm.spans + 1
    for point in range(len(steps)):
        block = empty_block(len(counts))
        there = norm.states[point] > FROZEN
        read = np.array(
            [  # in the order of a Reading
                mean_abs.mean[point],
                max_abs.high[point],
                norm.mean[point],
                counts,
                _counted(zeros.mean[point], counts),
                np.nan_to_num(_counted(odd.high[point], counts)),
                np.full(len(counts), np.nan),
                weight.mean[point],
            ]
        )
        block[:] = np.where(there, np.where(np.isfinite(read), read, np.nan), block)
        moment = Moment(
            int(steps[point]),
            int(first_steps[point]),
            int(norm.spans[point]),
            block,
            norm.states[point],
        )
        animator.add(moment)
    return animator


def has_rising_steps(history: History) -> bool:
    """Can its steps number the frames of an animator: from 0 on, each above the one before?"""
    steps = history.course.steps
    if not len(steps):
        return True
    rising = (history.course.first_steps[1:] > steps[:-1]).all()
    return bool(rising) and history.course.first_steps[0] >= 0 and steps[-1] <= LARGEST_STEP


def _counted(found: Any, elements: Any) -> Any:
    """Return a count of elements; NaN if what was recorded is none."""
    whole = np.clip(np.rint(found), 0, np.where(np.isfinite(elements), elements, np.inf))
    return np.where(np.isfinite(found), whole, np.nan)


def _known_or_not(
    history: History, field: str, config: GradientFlowConfig, states: NDArray[np.uint8]
) -> Cells:
    """Return a field of the run; one that was not recorded is unknown throughout."""
    course = history.course
    if _values(course, field, course.field) is not None:
        return cells_of_run(history, field, config, states)
    unknown = np.full(states.shape, np.nan)
    names = tuple(layer.name for layer in course.layers)
    return Cells(
        field,
        names,
        course.steps,
        course.first_steps,
        course.spans,
        unknown,
        unknown,
        unknown,
        states,
    )
