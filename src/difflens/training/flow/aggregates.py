"""What is known of every layer over all frames, in memory that does not grow with them.

Kept apart from the window of frames, so that a summary speaks of the run and not of its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from difflens.core.findings import Interval

from ..records.flow import FLOW_STATES, GradientFlowConfig, LayerFlow
from .states import ABSENT, EXPLODING, HEALTHY, NON_FINITE, VANISHING, ZERO, Reading

if TYPE_CHECKING:
    from numpy.typing import NDArray

FLAGS = {"vanishing": VANISHING, "exploding": EXPLODING, "non_finite": NON_FINITE}
_WITH_GRADIENT = (HEALTHY, ZERO, VANISHING, EXPLODING, NON_FINITE)


class Moment(NamedTuple):
    """One frame: its step, numbers and states as columns over the layers known then."""

    step: int
    first_step: int
    frames: int
    block: NDArray[np.float64]
    states: NDArray[np.uint8]


class Aggregates:
    """Counts, steps and extremes of every layer; columns are layers."""

    def __init__(self) -> None:
        """Begin with no layer."""
        self.frames = 0
        self.points = 0  # additions: fewer than frames where each stood for several
        self.first_step: int | None = None
        self.last_step: int | None = None
        self.counts = np.zeros((len(FLOW_STATES), 0), np.int64)
        self.flagged = np.full((2, len(FLAGS), 0), -1, np.int64)  # first, last step
        self.peak = np.zeros((2, 0))  # norm, step
        self.rms = np.zeros((2, 0))  # lowest above zero, highest
        self.parameters = np.zeros(0)
        self.recent = np.zeros((4, 0))  # frames, vanishing, exploding, zero

    def add(self, moment: Moment, config: GradientFlowConfig) -> None:
        """Take one frame, or a point that stands for several."""
        step, states = moment.step, moment.states
        self.widen(len(states))
        self.points += 1
        self.frames += moment.frames
        self.first_step = moment.first_step if self.first_step is None else self.first_step
        self.last_step = step
        self.counts[states, np.arange(len(states))] += 1
        for place, state in enumerate(FLAGS.values()):
            matches = states == state
            first = self.flagged[0, place]
            first[matches & (first < 0)] = moment.first_step
            self.flagged[1, place, matches] = step
        self._take_sizes(step, moment.block)
        there = np.isin(states, _WITH_GRADIENT)
        self.recent[:, there] *= 0.5 ** (moment.frames / config.half_life)
        self.recent[0, there] += moment.frames
        for row, state in enumerate((VANISHING, EXPLODING, ZERO), 1):
            self.recent[row, states == state] += moment.frames

    def _take_sizes(self, step: int, block: NDArray[np.float64]) -> None:
        read = Reading(*block)  # each field is a row here
        norms, elements = np.asarray(read.norm), np.asarray(read.elements)
        higher = norms > self.peak[0]
        self.peak[0, higher], self.peak[1, higher] = norms[higher], step
        self.parameters = np.where(elements > 0, elements, self.parameters)
        rms = root_mean_square(block)
        there = rms > 0
        self.rms[0, there] = np.minimum(self.rms[0, there], rms[there])
        self.rms[1, there] = np.maximum(self.rms[1, there], rms[there])

    def widen(self, layers: int) -> None:
        """Make room for layers that are seen for the first time."""
        more = layers - len(self.parameters)
        if more <= 0:
            return
        self.counts = _wider(self.counts, more, 0)
        self.counts[ABSENT, -more:] = self.points
        self.flagged = _wider(self.flagged, more, -1)
        self.peak = _wider(self.peak, more, -1.0)
        self.rms = np.concatenate([self.rms, np.full((2, more), [[np.inf], [-np.inf]])], axis=1)
        self.parameters = _wider(self.parameters, more, 0.0)
        self.recent = _wider(self.recent, more, 0.0)

    def bounds(self) -> tuple[float, float] | None:
        """Return the lowest (above zero) and the highest root mean square of the run."""
        there = self.rms[1] > 0
        if not there.any():
            return None
        return float(self.rms[0, there].min()), float(self.rms[1, there].max())

    def layers(self, names: Sequence[str]) -> tuple[LayerFlow, ...]:
        """Return them as records, with the intervals of the shares."""
        return tuple(self._layer(place, name) for place, name in enumerate(names))

    def _layer(self, place: int, name: str) -> LayerFlow:
        counts = self.counts[:, place]
        with_gradient = int(counts[list(_WITH_GRADIENT)].sum())
        shown: dict[str, Any] = {
            f"{which}_{flag}_step": _step(self.flagged[row, column, place])
            for row, which in enumerate(("first", "last"))
            for column, flag in enumerate(FLAGS)
        }
        peaked = self.peak[0, place] >= 0
        seen = self.rms[1, place] > 0
        vanishing, van_interval = _share(int(counts[VANISHING]), with_gradient)
        exploding, exp_interval = _share(int(counts[EXPLODING]), with_gradient)
        return LayerFlow(
            name=name,
            parameters=int(self.parameters[place]) or None,
            frames=int(counts.sum() - counts[ABSENT]),
            states={word: int(counts[code]) for code, word in enumerate(FLOW_STATES)},
            vanishing=vanishing,
            vanishing_interval=van_interval,
            exploding=exploding,
            exploding_interval=exp_interval,
            peak_norm=float(self.peak[0, place]) if peaked else None,
            peak_step=int(self.peak[1, place]) if peaked else None,
            lowest_rms=float(self.rms[0, place]) if seen else None,
            highest_rms=float(self.rms[1, place]) if seen else None,
            recent_frames=float(self.recent[0, place]),
            recent_vanishing=float(self.recent[1, place]),
            recent_exploding=float(self.recent[2, place]),
            recent_zero=float(self.recent[3, place]),
            **shown,
        )

    def restore(self, layers: Sequence[LayerFlow], frames: int, first: int, last: int) -> None:
        """Take over what another one knew."""
        self.first_step, self.last_step = first, last
        self.widen(len(layers))
        self.frames = frames
        self.points = max((sum(layer.states.values()) for layer in layers), default=0)
        for place, layer in enumerate(layers):
            self.counts[:, place] = [layer.states.get(word, 0) for word in FLOW_STATES]
            for row, which in enumerate(("first", "last")):
                for column, flag in enumerate(FLAGS):
                    step = getattr(layer, f"{which}_{flag}_step")
                    self.flagged[row, column, place] = -1 if step is None else step
            if layer.peak_norm is not None:
                self.peak[:, place] = layer.peak_norm, layer.peak_step or 0
            if layer.lowest_rms is not None and layer.highest_rms is not None:
                self.rms[:, place] = layer.lowest_rms, layer.highest_rms
            self.parameters[place] = layer.parameters or 0
            self.recent[:, place] = (
                layer.recent_frames,
                layer.recent_vanishing,
                layer.recent_exploding,
                layer.recent_zero,
            )


def root_mean_square(block: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the root mean square over the finite values of each layer; NaN if there are none.

    Where a file does not say how many values there were, the norm stands for it.
    """
    read = Reading(*block)  # each field is a row here
    finite = np.asarray(read.elements) - read.non_finite
    finite = np.where(np.isnan(finite), 1.0, finite)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(finite > 0, read.norm / np.sqrt(finite), np.nan)


def _wider(array: Any, more: int, fill: float) -> Any:
    return np.concatenate([array, np.full((*array.shape[:-1], more), fill, array.dtype)], axis=-1)


def _step(value: Any) -> int | None:
    return int(value) if value >= 0 else None


def _share(flagged: int, n: int) -> tuple[float | None, Interval | None]:
    if not n:
        return None, None
    from difflens.stats.proportions import wilson

    interval = wilson(flagged, n)
    return interval.value, Interval(interval.low, interval.high, interval.level, interval.method, n)
