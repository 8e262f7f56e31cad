"""Which steps of a PyTorch loop are read: by what reading costs, and where something looks wrong.

The price of a reading and the time of a step are measured while the loop runs, and the interval
follows them. It changes by doublings and halvings with a gap between, so that noise does not make
it flutter. A fixed interval was not taken: the same one costs 10 % of a small network and nothing
of a large one. A reading that costs next to nothing is made at every step.

Every step is read for a while after the run began, and after its loss or its gradients go out of
line: a fast average leaves a slow one by more than the values usually stray from it. A leap moves
the fast average at once, a climb within a few steps, and noise hardly ever. Quantiles of the latest
values were not taken: this is asked at every step, on the loop's time.
"""

from __future__ import annotations

from collections import deque
from math import ceil, inf, isfinite, log
from statistics import median
from typing import Literal

from .. import Sink
from .ranks import Ranks

_SLOW, _FAST = 1 / 32, 1 / 4  # what the newest value weighs in each average
_STRAYS = 2.0  # times the mean distance from the slow average; of plain noise one in 100,000 does
_LEAST = 8  # values before which nothing is out of line


class Line:
    """Where values usually are, and how far they stray from it."""

    def __init__(self) -> None:
        """Begin with nothing known."""
        self._count, self._slow, self._fast, self._spread = 0, 0.0, 0.0, 0.0
        self._was_finite = True

    def offset(self, value: float) -> float:
        """Take a value; say how far the latest ones are off, in times what is usual.

        Infinite for a value that is no number behind one that was; 0 while little is known.
        """
        if not isfinite(value):
            was, self._was_finite = self._was_finite, False
            return inf if was else 0.0
        self._was_finite = True
        self._count += 1
        share = 1 / self._count
        off = abs(value - self._slow)
        usual = self._spread
        self._fast += max(share, _FAST) * (value - self._fast)
        self._slow += max(share, _SLOW) * (value - self._slow)
        if self._count > 1:
            self._spread += max(1 / (self._count - 1), _SLOW) * (off - self._spread)
        if self._count <= _LEAST:
            return 0.0
        apart = self._fast - self._slow
        return apart / usual if usual > 0 else apart * inf if apart else 0.0


class Suspicion:
    """Losses and gradient norms of a run; `is_raised` until somebody takes it back."""

    def __init__(self) -> None:
        """Suspect nothing yet."""
        self._losses, self._norms = Line(), Line()
        self.is_raised = False

    def see_loss(self, loss: float) -> None:
        """Take the loss of a step: one that is no number, leaps or climbs is suspicious."""
        if self._losses.offset(loss) > _STRAYS:
            self.is_raised = True

    def see_norm(self, norm: float) -> None:
        """Take the norm of a reading's gradients: growth and decay count by their factor."""
        known = log(norm) if 0 < norm < inf else inf
        if abs(self._norms.offset(known)) > _STRAYS:
            self.is_raised = True


WARM_UP = 4  # the first readings pay for imports, compilation and first touches of memory
WINDOW = 16  # readings and steps of which the median counts
FAR = 1024  # steps between readings at the most
# The share of the budget that a reading's own clock may spend: caches that grow cold, and what the
# framework does around a hook, cost about as much again and cannot be measured from within.
_KNOWN = 0.5
FREE = 1e-4  # seconds of a step that reading may always take
WATCH = 64  # steps that are read one by one when a run begins, or is suspected


class Sampling:
    """Decides which steps are read; `every` is the interval now in force."""

    def __init__(self, every: int | Literal["auto"], budget: float) -> None:
        """Begin with every step, or keep to the interval that is given."""
        self.fixed = every != "auto"
        self.every = 1 if every == "auto" else int(every)
        self.budget = budget
        self._prices: deque[float] = deque(maxlen=WINDOW)
        self._own: deque[float] = deque(maxlen=WINDOW)  # of the prices, what the loop waited for
        self._times: deque[float] = deque(maxlen=WINDOW)
        self._since, self._readings = 0, 0
        self._watched = 0 if self.fixed else WATCH  # steps to come that are read in any case

    @property
    def left(self) -> int:
        """How many steps there are before the next that is read; 0 is the one that begins now."""
        return 0 if self._watched else (self.every - self._since) % self.every

    def is_wanted(self) -> bool:
        """Is the step that begins now to be read?"""
        return self.left == 0

    @property
    def is_watching(self) -> bool:
        """Is every step read because nobody knows yet that all is well?"""
        return self._watched > 0

    def watch(self) -> None:
        """Read every step for a while."""
        if not self.fixed:
            self._watched = WATCH

    def passed(self) -> None:
        """Count a step that is over."""
        self._since = (self._since + 1) % self.every
        if self._watched:
            self._watched -= 1

    def measured(self, own_seconds: float, step_seconds: float, beside: float = 0.0) -> None:
        """Learn what a step took, and what of it was ours; zero if it was not read.

        `beside` is what the reading takes of other threads and devices.
        """
        if own_seconds > 0:
            self._readings += 1
            if self._readings > WARM_UP:
                self._prices.append(own_seconds + beside)
                self._own.append(own_seconds)
        if self._readings > WARM_UP:
            self._times.append(max(step_seconds - own_seconds, 0.0))

    @property
    def share(self) -> float | None:
        """The share of the step's time that readings take now; None before any is known."""
        if not self._prices or not self._times:
            return None
        time = median(self._times)
        return median(self._prices) / self.every / time if time > 0 else None

    def price(self) -> tuple[float, float] | None:
        """Return seconds a reading and seconds a step, when enough is known to decide."""
        if len(self._prices) < WINDOW // 2 or not self._times:
            return None
        price, time = median(self._prices), median(self._times)
        # What the loop may always wait for counts as the whole of the budget.
        free = median(self._own) / FREE * _KNOWN * self.budget * time
        return min(price, free), time

    def decide(self, price: tuple[float, float] | None) -> bool:
        """Set the interval by a price of reading and step; did it change?"""
        if self.fixed or price is None or price[1] <= 0:
            return False
        exactly = price[0] / (_KNOWN * self.budget * price[1])
        needed = min(max(ceil(exactly), 1), FAR)
        chosen = self.every
        if needed > self.every:
            chosen = 1 << (needed - 1).bit_length()
        elif exactly * 4 <= self.every and self.every > 1:
            chosen = self.every // 2
        changed = chosen != self.every
        if changed:
            self.every, self._since = chosen, 0
            self._prices.clear()
            self._own.clear()
        return changed


_DECISIONS = 16  # readings between two looks at the price, at first


class Pace:
    """Counts steps and readings; `sampling` says which step comes next."""

    def __init__(
        self, sampling: Sampling, ranks: Ranks, sink: Sink, suspicion: Suspicion | None
    ) -> None:
        """Begin at the first step of a loop."""
        self.sampling, self._ranks, self._sink = sampling, ranks, sink
        self.suspicion = suspicion
        self.readings, self._next_decision = 0, _DECISIONS

    def pass_step(self, step: int, loss: object) -> None:
        """Count a step, and read every one for a while where the last ones look wrong."""
        self.sampling.passed()
        suspicion = self.suspicion
        if suspicion is None:
            return
        if type(loss) is float:  # others come late, and are looked at where they are finished
            suspicion.see_loss(loss)
        if suspicion.is_raised:
            suspicion.is_raised = False
            if not self.sampling.is_watching:
                text = f"something looks wrong: every step is read from {step} on"
                self._sink.note("sampling", text)
            self._sink.hurry()
            self.sampling.watch()

    def count_cost(self, step: int, own: float, whole: float, beside: float) -> None:
        """Learn what a step took, and what reading it did; zero if it was not read."""
        self.sampling.measured(own, whole, beside)
        if not own or self.readings < self._next_decision:
            return
        # Alone it costs nothing to look again soon; several ranks have to agree each time.
        self._next_decision = self.readings + (
            _DECISIONS if self._ranks.count == 1 else max(64, self.readings)
        )
        before = self.sampling.share
        if self.sampling.decide(self._ranks.decide(self.sampling.price())):
            self._say_interval(step, before)

    def _say_interval(self, step: int, share: float | None) -> None:
        every = self.sampling.every
        how = "every step is read now" if every == 1 else f"one step in {every} is read"
        self._sink.note(
            "sampling",
            f"{how}, from step {step} on",
            every=every,
            share=share,
            budget=self.sampling.budget,
        )
