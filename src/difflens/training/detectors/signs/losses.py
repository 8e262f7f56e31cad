"""Where the loss began, where it is, and what guessing would cost.

What of it is harm is told in `harms.py`.
"""

from __future__ import annotations

from math import expm1, log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from difflens.stats.samples import robust_deviation

from ...history.history import History
from .degrees import FEW, LITTLE, PART, RECENT, TENFOLD, THRICE, TWICE

START = 3  # points of a loss that make its start
_FAR_THROWN = (
    1e4  # times the first loss, where single values say little: no noise of batches does that
)
# A loss beyond counts as this, one below as zero: shares of losses and their squares are numbers.
_LARGEST, _SMALLEST = 1e60, 1e-80


class Losses(NamedTuple):
    """The finite values of a loss and their steps; `broken` is the step at which it was not."""

    steps: NDArray[Any]
    values: NDArray[Any]
    broken: int | None
    chance: float | None = None  # what guessing would cost, where that is known
    spread: float | None = None  # largest less smallest output before the first update

    @classmethod
    def of(cls, history: History, name: str) -> Losses:
        """Read a loss off a history."""
        course = history.scalars
        found = course.scalar(name)
        if found is None:
            nothing = np.zeros(0)
            return cls(nothing, nothing, None)
        finite = np.isfinite(found)
        values = np.clip(found[finite].astype(np.float64), -_LARGEST, _LARGEST)
        return cls(
            course.steps[finite],
            np.where(np.abs(values) < _SMALLEST, 0.0, values),
            history.first_nonfinite_scalar.get(name),
            chance(history),
            _spread(history),
        )

    @property
    def n(self) -> int:
        """How many finite values there are."""
        return len(self.values)

    @property
    def width(self) -> int:
        """How many points a level is the median of."""
        return min(max(self.n // 5, FEW), RECENT)

    @property
    def start(self) -> float:
        """The level at the start: the mean of the first values.

        Steps that are far too large throw the second value up already, and their own harm would
        count as the start. The first value alone was measured before any step: it stands, once the
        loss has calmed down and shows that single values can be trusted; at once, where guessing
        costs no more than it, or where the rise is beyond all noise.
        """
        if not self.n:
            return float("nan")
        mean, first = float(np.mean(self.values[:START])), float(self.values[0])
        if not 0 < THRICE * first < mean:
            return mean
        known = self.chance is not None and mean > THRICE * max(first, self.chance)
        calm = self.n >= RECENT and self._is_calm
        return first if calm or known or mean > _FAR_THROWN * first else mean

    @property
    def _is_calm(self) -> bool:
        late = self.values[-RECENT:]
        return bool(np.median(np.abs(np.diff(late))) < PART * np.median(np.abs(late)))

    @property
    def is_learned(self) -> bool:
        """Does it begin with what was learned before: fine-tuning, or a run that goes on?

        A cross entropy of L among k classes wants outputs that lie about ln(k/(e^L - 1)) apart in
        every example, and trained ones several times as far over a batch. Where they lie closer,
        it is another loss (a squared error of 64 outputs), and guessing says nothing of it. An
        untrained squared error is at least the variance of the outputs.
        """
        start = self.start
        if self.chance is None or self.spread is None or not 0 < start < PART * self.chance:
            return False
        least = TWICE if self.spread > TENFOLD * start**0.5 else THRICE
        return bool(self.spread > least * (self.chance - log(expm1(start))))

    @property
    def is_of_outputs(self) -> bool:
        """Can the outputs have made the first loss, or is it in other units, or a sum?

        A cross entropy of outputs that lie within s is at most ln(classes) + s.
        """
        return bool(self.n) and self.could_cost(float(self.values[0]))

    def could_cost(self, value: float) -> bool:
        """Can a cross entropy of the first outputs be as large as this?"""
        if self.chance is None or self.spread is None:
            return False
        return value <= 1.5 * (self.chance + self.spread)

    @property
    def reference(self) -> float:
        """The level that shows no learning: guessing, where the loss started at or above it."""
        start = self.start
        if self.chance is not None and 0.7 * self.chance <= start <= 10 * self.chance:
            return min(start, self.chance)
        return start

    @property
    def now(self) -> float:
        """The latest level."""
        return float(np.median(self.values[-self.width :])) if self.n else float("nan")

    @property
    def mean_now(self) -> float:
        """The latest mean: a run that still leaps has not come down."""
        return float(np.mean(self.values[-self.width :]))

    @property
    def late_levels(self) -> tuple[float, float]:
        """The levels at the beginning and at the end of the latter half."""
        half = self.values[self.n // 2 :]
        third = max(len(half) // 3, 1)
        return float(np.median(half[:third])), float(np.median(half[-third:]))

    @property
    def late_fall(self) -> float:
        """By how much it fell over the latter half, by its size at the start."""
        early, late = self.late_levels
        return (early - late) / self.size

    @property
    def is_signed(self) -> bool:
        """Does it pass below zero again and again? Then no level is a share of its start."""
        return self.n > 0 and float((self.values < 0).mean()) > LITTLE

    @property
    def first_by_chance(self) -> float | None:
        """The very first loss by that of guessing, where that is known."""
        return float(self.values[0]) / self.chance if self.n and self.chance else None

    @property
    def size(self) -> float:
        """The size of the loss at its start, by which all else is measured."""
        return max(abs(self.start), _SMALLEST)

    @property
    def fall(self) -> float:
        """The share of its reference by which the loss is below it; negative where above."""
        reference = self.reference
        return (reference - self.now) / max(abs(reference), 1e-300)

    @property
    def noise(self) -> float:
        """The spread of one value about its neighbours, by the start: median |difference|."""
        if self.n < 4:
            return float("nan")
        jumps = np.abs(np.diff(self.values[-max(4 * self.width, 20) :]))
        return float(robust_deviation(jumps, 0.0)) / 2**0.5 / self.size


def chance(history: History) -> float | None:
    """Return the cross entropy of guessing among the outputs: ln(classes)."""
    shape = output_shape(history)
    return log(shape[-1]) if shape and shape[-1] > 1 else None


def output_shape(history: History) -> tuple[int, ...]:
    """Return the shape of the first outputs, batch first; empty if it was not recorded."""
    output: Any = history.fact("output")
    shape = output.get("shape") if isinstance(output, dict) else None
    return tuple(int(each or 0) for each in shape or ())


def _spread(history: History) -> float | None:
    output: Any = history.fact("output")
    ends = [output.get("min"), output.get("max")] if isinstance(output, dict) else [None]
    known = [each for each in ends if isinstance(each, (int, float))]
    return float(known[1] - known[0]) if len(known) == 2 else None


def standstill(loss: Losses, fall: float = 0.1) -> int:
    """Count the points from the start on for which the loss had not left its reference."""
    course = levels(loss.values, 5)
    left = np.flatnonzero(course < (1 - fall) * loss.reference)
    return loss.n if not len(left) else int(left[0])


def levels(values: NDArray[Any], width: int) -> NDArray[Any]:
    """Return the running median over `width` values, one for each window."""
    if not 0 < width <= len(values):
        return np.zeros(0)
    return np.asarray(np.median(np.lib.stride_tricks.sliding_window_view(values, width), axis=1))
