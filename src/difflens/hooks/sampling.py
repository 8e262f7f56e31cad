"""How often to read, so that the reading stays under a share of the step's time.

A fixed interval was not taken: the same k costs 10 % of a small network and nothing of a large
one. The price of a reading and the time of a step are measured while it runs, and the interval
follows them; it changes by doublings and halvings with a gap between, so that noise does not
make it flutter.
"""

from __future__ import annotations

from collections import deque
from math import ceil
from statistics import median
from typing import Literal

WARM_UP = 4  # the first readings pay for imports, compilation and first touches of memory
WINDOW = 16  # readings and steps of which the median counts
FAR = 1024  # steps between readings at the most
# The share of the budget that a reading's own clock may spend: caches that grow cold, and what the
# framework does around a hook, cost about as much again and cannot be measured from within.
_KNOWN = 0.5


class Sampling:
    """Decides which steps are read; `every` is the interval now in force."""

    def __init__(self, every: int | Literal["auto"], budget: float) -> None:
        """Begin with every step, or keep to the interval that is given."""
        self.fixed = every != "auto"
        self.every = 1 if every == "auto" else int(every)
        self.budget = budget
        self._prices: deque[float] = deque(maxlen=WINDOW)
        self._times: deque[float] = deque(maxlen=WINDOW)
        self._since, self._readings = 0, 0

    @property
    def left(self) -> int:
        """How many steps there are before the next that is read; 0 is the one that begins now."""
        return (self.every - self._since) % self.every

    def is_wanted(self) -> bool:
        """Is the step that begins now to be read?"""
        return self._since == 0

    def passed(self) -> None:
        """Count a step that is over."""
        self._since = (self._since + 1) % self.every

    def measured(self, own_seconds: float, step_seconds: float) -> None:
        """Learn what a step took, and what of it was ours; zero where it was not read."""
        if own_seconds > 0:
            self._readings += 1
            if self._readings > WARM_UP:
                self._prices.append(own_seconds)
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
        """Give seconds a reading and seconds a step, when enough is known to decide."""
        if len(self._prices) < WINDOW // 2 or not self._times:
            return None
        return median(self._prices), median(self._times)

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
        return changed
