"""Where the loss began, where it is, and whether that is harm.

A symptom alone says little: healthy runs have small gradients, idle units and swings as well. So
most diagnoses ask here first whether the loss suffers. Only ratios of the loss to itself are used:
a loss in other units is judged alike.
"""

from __future__ import annotations

from math import expm1, log
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...history.history import History

_FLAT = 0.3
_START, _LEAST, _MOST = 3, 3, 20  # points: of the start, of a level at least and at most
_THROWN = 3.0  # times the first loss: the mean of the start beyond it is the work of the steps
_CALM = 0.3  # change from value to value, by the level, of a loss whose first value can be trusted
_APART = 3.0  # times the least distance of outputs that a low cross entropy wants
_LEARNED = 0.3  # of guessing: a loss that begins below it comes of weights that were trained


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
        course = history.course
        found = course.scalar(name)
        if found is None:
            nothing = np.zeros(0)
            return cls(nothing, nothing, None)
        finite = np.isfinite(found)
        return cls(
            course.steps[finite],
            found[finite].astype(np.float64),
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
        return min(max(self.n // 5, _LEAST), _MOST)

    @property
    def start(self) -> float:
        """The level at the start: the mean of the first values.

        Steps that are far too large throw the second value up already, and their own harm would
        count as the start. The first value alone was measured before any step: it stands, once the
        loss has calmed down and shows that single values can be trusted.
        """
        if not self.n:
            return float("nan")
        mean, first = float(np.mean(self.values[:_START])), float(self.values[0])
        thrown = 0 < _THROWN * first < mean and self.n >= _MOST
        return first if thrown and self._is_calm else mean

    @property
    def _is_calm(self) -> bool:
        late = self.values[-_MOST:]
        return bool(np.median(np.abs(np.diff(late))) < _CALM * np.median(np.abs(late)))

    @property
    def is_learned(self) -> bool:
        """Does it begin with what was learned before: fine-tuning, or a run that goes on?

        A cross entropy of L among k classes wants outputs that lie about ln(k/(e^L - 1)) apart in
        every example, and trained ones several times as far over a batch. Where they lie closer,
        it is another loss (a squared error of 64 outputs), and guessing says nothing of it.
        """
        start = self.start
        if self.chance is None or self.spread is None or not 0 < start < _LEARNED * self.chance:
            return False
        return bool(self.spread > _APART * (self.chance - log(expm1(start))))

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
    def first_by_chance(self) -> float | None:
        """The very first loss by that of guessing, where that is known."""
        return float(self.values[0]) / self.chance if self.n and self.chance else None

    @property
    def size(self) -> float:
        """The size of the loss at its start, by which all else is measured."""
        return max(abs(self.start), 1e-300)

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
        return float(np.median(jumps)) / (0.6745 * 2**0.5) / self.size


def chance(history: History) -> float | None:
    """Give the cross entropy of guessing among the outputs: ln(classes)."""
    output: Any = history.fact("output")
    shape = output.get("shape") if isinstance(output, dict) else None
    classes = int(shape[-1]) if shape else 0
    return log(classes) if classes > 1 else None


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
    """Give the running median over `width` values, one for each window."""
    if len(values) < width:
        return np.zeros(0)
    return np.asarray(np.median(np.lib.stride_tricks.sliding_window_view(values, width), axis=1))


class Harm(NamedTuple):
    """What the loss suffers, since when, and the figure that shows it."""

    kind: str  # stuck, above, broken
    since: int
    figure: float
    said: str


def stuck(loss: Losses, least: int, fall: float = 0.1) -> Harm | None:
    """Is the loss still about where it started, or flat not far below it?

    Still there: it is below its reference (its start, or guessing) by less than `fall`. Flat:
    over the latter half of the run it fell by less than a fiftieth of its start, and it is below
    its reference by less than three tenths. A run that begins where others end may stay there.
    """
    if loss.n < least or loss.is_learned:
        return None
    half = loss.values[loss.n // 2 :]
    third = max(len(half) // 3, 1)
    late = float(np.median(half[:third]) - np.median(half[-third:])) / loss.size
    near = loss.fall < fall
    flat = loss.n >= 2 * least and late < 0.02 and loss.fall < _FLAT
    if loss.start <= 0 or not (near or flat) or rose(loss, 1.5) or _had_learned(loss):
        return None
    since = int(loss.steps[0])
    said = f"the loss went from {loss.start:.4g} to {loss.now:.4g} in {loss.n} points"
    return Harm("stuck", since, loss.fall, said)


def _had_learned(loss: Losses) -> bool:
    """Was the loss down at half its reference once? Then it lost that, and was never stuck."""
    course = levels(loss.values, _MOST)
    return len(course) > 0 and float(course.min()) < 0.5 * loss.reference


def rose(loss: Losses, times: float) -> Harm | None:
    """Did the loss go above where it started, and stay there for some points?"""
    if loss.n < 5 or loss.start <= 0:
        return None
    course = levels(loss.values, 5)
    over = np.flatnonzero(course > times * loss.start)
    if not len(over):
        return None
    peak = float(course.max())
    said = f"the loss went from {loss.start:.4g} up to {peak:.4g}"
    at = int(over[0]) + int(np.argmax(loss.values[over[0] :] > times * loss.start))
    return Harm("above", int(loss.steps[at]), peak / loss.start, said)


def worsened(loss: Losses) -> Harm | None:
    """Did the loss lose most of what it had won, for good?"""
    if loss.n < 60 or loss.start <= 0:
        return None
    course = levels(loss.values, 20)
    lowest = int(np.argmin(course))
    low, late = float(course[lowest]), float(course[-1])
    if not (low > 0 and late > 2 * low and late - low > 0.2 * loss.start):
        return None
    said = f"the loss is back at {late:.4g} after {low:.4g} at step {int(loss.steps[lowest + 19])}"
    return Harm("above", int(loss.steps[lowest + 19]), late / low, said)


def broke(loss: Losses) -> Harm | None:
    """Did the loss cease to be a number?"""
    if loss.broken is None:
        return None
    return Harm("broken", loss.broken, 1.0, f"the loss is not a number since step {loss.broken}")


def harm(loss: Losses, least: int = 20, times: float = 1.5) -> Harm | None:
    """Give the worst that can be said of the loss, or None where it does well."""
    return broke(loss) or rose(loss, times) or stuck(loss, least) or worsened(loss)
