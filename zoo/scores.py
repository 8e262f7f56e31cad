"""How right a rule set was: rates with Wilson intervals, delays, and how far ahead it warned."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple

from difflens.stats.proportions import wilson

from .labels import Label, at_fault
from .verdicts import Alarm, Verdict

AHEAD, LATE = 10, 20  # steps: a warning counts as ahead, a divergence as foreseeable
_FORETELLING = frozenset({"diverging", "exploding", "lr-high"})


class Judged(NamedTuple):
    """A label and what was said."""

    label: Label
    verdict: Verdict


class Rate(NamedTuple):
    """A share with its Wilson interval; None if there was nothing to count."""

    hits: int
    n: int
    value: float | None
    low: float | None
    high: float | None


def rate(answers: Iterable[bool]) -> Rate:
    """Count the true ones.

    >>> rate([True, True, False]).hits, rate([]).value
    (2, None)
    """
    given = list(answers)
    if not given:
        return Rate(0, 0, None, None, None)
    share = wilson(sum(given), len(given))
    return Rate(sum(given), len(given), share.value, share.low, share.high)


@dataclass(frozen=True)
class Score:
    """The figures of one rule set on one set of runs."""

    recall: Rate
    precision: Rate
    false_alarms: Rate  # healthy runs with any alarm at any time
    critical_alarms: Rate  # healthy runs with a critical one
    alarms_per_thousand_steps: float | None
    right_first: Rate  # of the faulty runs: the first alarm names a right class
    right_last: Rate  # of the faulty runs: what stands first at the end does
    right_among: Rate  # of the faulty runs: some alarm does
    layer_first: Rate
    layer_third: Rate
    delay: float | None  # median steps from onset to the first alarm
    nan_delay: float | None
    ahead: Rate  # divergences of step 20 or later, announced ten steps before
    false_forecasts: Rate  # healthy runs of which a divergence was foretold

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as JSON takes them."""
        return {
            name: value._asdict() if isinstance(value, Rate) else value
            for name, value in vars(self).items()
        }


def score(judged: Iterable[Judged]) -> Score:
    """Score what was said; dropped runs are left out, those that heal count for nothing."""
    kept = [each for each in judged if not each.label.dropped]
    faulty = [each for each in kept if not each.label.healthy and not each.label.heals]
    healthy = [each for each in kept if each.label.healthy]
    located = [each for each in faulty if each.label.layers]
    alarmed = [each for each in (*faulty, *healthy) if each.verdict.alarms]
    steps = sum(each.label.steps for each in healthy)
    raised = sum(len(each.verdict.alarms) for each in healthy)
    late = [each for each in faulty if (each.label.divergence_step or 0) >= LATE]
    return Score(
        recall=rate(bool(each.verdict.alarms) for each in faulty),
        precision=rate(not each.label.healthy for each in alarmed),
        false_alarms=rate(bool(each.verdict.alarms) for each in healthy),
        critical_alarms=rate(any(a.critical for a in each.verdict.alarms) for each in healthy),
        alarms_per_thousand_steps=1000 * raised / steps if steps else None,
        right_first=rate(is_right(each, each.verdict.alarms[:1]) for each in faulty),
        right_last=rate(is_right(each, each.verdict.last[:1]) for each in faulty),
        right_among=rate(is_right(each, each.verdict.last) for each in faulty),
        layer_first=rate(is_located(each, 1) for each in located),
        layer_third=rate(is_located(each, 3) for each in located),
        delay=_median(map(delay, faulty)),
        nan_delay=_median(delay(each) for each in faulty if each.label.fault_class == "nan"),
        ahead=rate(is_ahead(each) for each in late if each.verdict.live),
        false_forecasts=rate(
            any("diverging" in a.names for a in each.verdict.alarms) for each in healthy
        ),
    )


def is_right(judged: Judged, alarms: tuple[Alarm, ...]) -> bool:
    """Does one of the alarms name a right class?"""
    return any(alarm.names & judged.label.right for alarm in alarms)


def is_located(judged: Judged, among: int) -> bool:
    """Is a layer at fault among the first that the first finding names?"""
    named = judged.verdict.last[0].layers[:among] if judged.verdict.last else ()
    return any(at_fault(named, judged.label.layers))


def delay(judged: Judged) -> float | None:
    """Return the steps from the onset to the first alarm, 0 if it came before."""
    first, onset = judged.verdict.first, judged.label.onset_step
    if onset is None or not judged.verdict.live:
        return None
    return math.inf if first is None else float(max(first.step - onset, 0))


def is_ahead(judged: Judged) -> bool:
    """Was a divergence announced at least ten steps before it began?"""
    begins = judged.label.divergence_step
    telling = judged.label.right | _FORETELLING
    return begins is not None and any(
        alarm.step <= begins - AHEAD and alarm.names & telling for alarm in judged.verdict.alarms
    )


def _median(values: Iterable[float | None]) -> float | None:
    known = [each for each in values if each is not None]
    middle = median(known) if known else None
    return middle if middle is None or math.isfinite(middle) else None
