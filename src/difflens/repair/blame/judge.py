"""Decides whether a hybrid passes: by one run of the check, or by as many as its noise needs."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from math import isnan, nan
from statistics import fmean
from typing import Any, NamedTuple

from difflens.core.errors import BlameError
from difflens.stats.levels import Levels, calibrate, decide

from .hybrids import Maker
from .journal import Journal, Reading
from .pieces import Selection, key_of

_CALIBRATION, _MORE = 6, 3  # readings of each model, and how many more where they are near
_NEAR = 2.0  # separation below which more are taken
_LEAST = 1.0  # separation below which nothing can be decided
_MOST = 24  # readings of one hybrid before it stays undecided

Check = Callable[[Any], Any]


class Undecided(Exception):
    """The check is too noisy, or out of its budget."""


class Rules(NamedTuple):
    """How readings are judged: the threshold of a number, its direction, the rate of errors."""

    threshold: float | str | None = None
    lower_is_better: bool | None = None
    noisy: bool | None = None
    error: float = 0.05
    budget: int | None = None
    jobs: int = 1


class Judge:
    """Runs the check on hybrids, each set of pieces once, or as often as its noise asks for."""

    def __init__(
        self,
        check: Check,
        maker: Maker,
        sides: tuple[Selection, Selection],
        rules: Rules,
        *,
        journal: Journal,
        content: str,
    ) -> None:
        """Run nothing yet; `sides` select the good and the bad model."""
        self._check, self._maker, self.rules = check, maker, rules
        self.good, self.bad = sides
        self._journal, self._content = journal, content
        self._readings: dict[str, list[Reading]] = defaultdict(list)
        self._verdicts: dict[tuple[str, bool], bool | None] = {}
        self._lock = threading.Lock()
        self._locks: dict[str, threading.Lock] = defaultdict(threading.Lock)
        self._pool = ThreadPoolExecutor(rules.jobs) if rules.jobs > 1 else None
        self.levels: Levels | None = None
        self.is_noisy = bool(rules.noisy)
        self.runs = self.resumed = 0
        self.hybrids: set[str] = set()
        self.left = 0
        self.progress: Callable[[int, int], None] | None = None
        self._threshold = nan
        self._sign = 1.0

    # The two models.

    def calibrate(self) -> None:
        """Read both models; raise unless the good one passes and the bad one does not."""
        if not self.is_numeric:
            self._calibrate_answers()
        else:
            self._calibrate_numbers()
        if not self.is_noisy:
            return
        if self.levels is None or self.levels.separation < _LEAST:
            raise Undecided

    def know(self, selection: Selection, readings: Iterable[Reading]) -> None:
        """Use readings that were taken elsewhere, of the same model."""
        self._readings[self._key(selection)].extend(readings)

    def readings(self, selection: Selection) -> list[Reading]:
        """Return what the runs on a hybrid gave."""
        return self._readings[self._key(selection)]

    @property
    def taken(self) -> int:
        """The number of readings, those of earlier runs too."""
        return self.runs + self.resumed

    def settled(self) -> Rules:
        """Return the rules with the threshold and the direction that were found."""
        if not self.is_numeric:
            return self.rules
        return self.rules._replace(threshold=self._threshold, lower_is_better=self._sign < 0)

    @property
    def is_numeric(self) -> bool:
        """Does the check return numbers?"""
        return self.rules.threshold is not None

    def _calibrate_answers(self) -> None:
        good, bad = self._both(_CALIBRATION if self.is_noisy else 1)
        if self.is_noisy:
            self.levels = calibrate(good, bad)
            if self.levels.high <= self.levels.low:
                raise Undecided
        elif not good[0]:
            raise BlameError("blame", self._alike("fails on GOOD too", self.good))
        elif bad[0]:
            raise BlameError("blame", self._alike("passes on BAD too", self.bad))

    def _calibrate_numbers(self) -> None:
        if self.rules.noisy is None:  # a number that is not the same again says it by itself
            first = self._values(self.good, 2)
            self.is_noisy = first[0] != first[1] and not any(map(isnan, first))
        good, bad = self._both(_CALIBRATION if self.is_noisy else 1)
        if isnan(good[0]):
            raise BlameError("blame", self._alike("fails on GOOD too", self.good))
        finite = [each for each in bad if not isnan(each)]
        lower = self.rules.lower_is_better
        if lower is None:
            lower = bool(finite) and fmean(finite) > fmean(good)
        self._sign = -1.0 if lower else 1.0
        given = self.rules.threshold
        if given == "auto":
            self._threshold = (fmean(good) + fmean(finite)) / 2 if finite else fmean(good)
        else:
            self._threshold = float(given or 0.0)
        if self.is_noisy and finite:
            self._calibrate_levels(good, finite)
        elif not self._passes_number(good[0]):
            raise BlameError("blame", f"GOOD gives {good[0]:g}: it fails too")
        elif finite and self._passes_number(finite[0]):
            raise BlameError(
                "blame", f"BAD gives {finite[0]:g}: it passes too, as GOOD ({good[0]:g})"
            )

    def _calibrate_levels(self, good: list[float], bad: list[float]) -> None:
        levels = calibrate(good, bad)
        if levels.separation < _NEAR:
            good, bad = self._both(_CALIBRATION + _MORE)
            levels = calibrate(good, bad)
        if self.rules.threshold != "auto":
            levels = levels.around(self._threshold)
        else:
            self._threshold = (levels.high + levels.low) / 2
        if not (self._passes_number(levels.high) and not self._passes_number(levels.low)):
            raise Undecided
        self.levels = levels

    def _alike(self, reason: str, selection: Selection) -> str:
        said = getattr(self._check, "said", "")
        value = self._readings[self._key(selection)][0].value
        if value is None:
            return "the check says that it cannot judge one of the two models"
        return f"the check {reason}: nothing to blame" + (f" ({said})" if said else "")

    def _both(self, number: int) -> tuple[list[float], list[float]]:
        """Read both models so often."""
        if self._pool is None:
            return self._values(self.good, number), self._values(self.bad, number)
        sides = self._pool.map(lambda each: self._values(each, number), (self.good, self.bad))
        return next(sides), next(sides)

    def _values(self, selection: Selection, number: int) -> list[float]:
        while len(self._readings[self._key(selection)]) < number:
            self._read(selection, fresh=False)
        readings = self._readings[self._key(selection)][:number]
        if any(each.value is None for each in readings):
            raise BlameError(
                "blame", "the check cannot judge one of the two models (exit code 125)"
            )
        return [each.value for each in readings if each.value is not None]

    # Hybrids.

    def verdict(self, selection: Selection, *, fresh: bool = False) -> bool | None:
        """Does the bad model pass with these pieces put back? None where it stays undecided.

        `fresh` asks for readings of hybrids that were made from nothing but the two models.
        """
        key = self._key(selection)
        with self._locks[key]:
            if (key, fresh) not in self._verdicts:
                verdict = self._decided(selection, key, fresh=fresh)
                self._verdicts[key, False] = verdict
                if all(each.is_fresh for each in self._readings[key]):
                    self._verdicts[key, True] = verdict
                self._verdicts[key, fresh] = verdict
            return self._verdicts[key, fresh]

    def _decided(self, selection: Selection, key: str, *, fresh: bool) -> bool | None:
        if not self.is_noisy:
            readings = self._of(key, fresh=fresh) or [self._read(selection, fresh=fresh)]
            value = readings[0].value
            return None if value is None else self._passes(value)
        while True:
            readings = self._of(key, fresh=fresh)
            values = [each.value for each in readings]
            if None in values or len(values) > _MOST:
                return None
            if any(value is not None and isnan(value) for value in values):
                return False
            numbers = [value for value in values if value is not None]
            answer = decide(self.levels, numbers, self.rules.error) if self.levels else False
            if answer is not None:
                return answer
            self._read(selection, fresh=fresh)

    def _of(self, key: str, *, fresh: bool) -> list[Reading]:
        return [each for each in self._readings[key] if each.is_fresh or not fresh]

    def number(self, selection: Selection) -> float:
        """Return how good a hybrid is, more is better: its number, or 1 and 0."""
        self.verdict(selection)
        values = [each.value for each in self._readings[self._key(selection)]]
        known = [value for value in values if value is not None and not isnan(value)]
        return self._sign * fmean(known) if known else nan

    def _passes(self, value: float) -> bool:
        return self._passes_number(value) if self.is_numeric else bool(value)

    def _passes_number(self, value: float) -> bool:
        return self._sign * value >= self._sign * self._threshold

    def _read(self, selection: Selection, *, fresh: bool) -> Reading:
        """Take one more reading: an earlier run's, or by running the check now."""
        key = self._key(selection)
        earlier = self._journal.earlier[key]
        with self._lock:
            reading = next((each for each in earlier if each.is_fresh or not fresh), None)
            if reading is not None:
                earlier.remove(reading)
                self.resumed += 1
            elif self.rules.budget is not None and self.runs >= self.rules.budget:
                raise Undecided
            else:
                self.runs += 1
        is_new = reading is None
        if reading is None:
            with self._maker.hybrid(selection, fresh=fresh) as hybrid:
                reading = Reading(self._as_value(self._check(hybrid.model)), hybrid.is_fresh)
        with self._lock:
            if is_new:
                self._journal.add(key, reading)
            self._readings[key].append(reading)
            if selection not in (self.good, self.bad):
                self.hybrids.add(key)
            self.left = max(0, self.left - 1)
            if self.progress:
                self.progress(self.runs, self.left)
        return reading

    def _as_value(self, answer: Any) -> float | None:
        """Read what a check returned: a truth, a number, or None where it cannot judge."""
        if answer is None:
            return None
        try:
            value = float(answer)
        except (TypeError, ValueError):
            kind = type(answer).__name__
            reason = f"the check returned a {kind}, not a bool or a number"
            raise BlameError("blame", reason) from None
        if not self.is_numeric and value not in (0.0, 1.0):
            hint = "threshold='auto' is halfway between the two models"
            raise BlameError("blame", "the check returned a number: pass a threshold", hint=hint)
        return value

    def _key(self, selection: Selection) -> str:
        return key_of(self._content, selection)

    # Several at once.

    def first(self, selections: Iterable[Selection], *, passing: bool) -> int | None:
        """Return the place of the first one whose verdict is that; later ones may run beside it."""
        for place, verdict in enumerate(self._ahead(selections)):
            if verdict is passing:
                return place
        return None

    def every(self, selections: Sequence[Selection], *, fresh: bool = False) -> list[bool | None]:
        """Return the verdict of each."""
        return list(self._ahead(selections, fresh=fresh))

    def _ahead(
        self, selections: Iterable[Selection], *, fresh: bool = False
    ) -> Iterator[bool | None]:
        if self._pool is None:
            for each in selections:
                yield self.verdict(each, fresh=fresh)
            return
        waiting = iter(selections)
        running: list[Future[bool | None]] = []
        try:
            while True:
                room = self.rules.jobs - len(running)
                running += [
                    self._pool.submit(self.verdict, each, fresh=fresh)
                    for each in islice(waiting, room)
                ]
                if not running:
                    return
                yield running.pop(0).result()
        finally:
            for future in running:
                future.cancel()

    def close(self) -> None:
        """Wait for the runs that have begun."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
