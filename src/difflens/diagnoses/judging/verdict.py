"""Of many symptoms the causes: what explains what, and in which order they are told.

A fault shows in many ways: a learning rate that is too high kills units, makes the loss swing and
ends in NaN. Each would be an alarm. Here a finding that a more basic one explains is not told by
itself: its name goes into `also` of what explains it. A score learned from labelled runs was not
taken: nobody could say why it put one cause before another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ...runs import Diagnosed, RunFinding
from .telling import left_out, notes

if TYPE_CHECKING:
    from ...history.history import History

_STUCK = {"slow", "plateau", "lr-low", "data"}
# What is seen over a long stretch, so that the step it is dated to says little.
_TIMELESS = {*_STUCK, "over-fit", "oscillating"}
_BLOWN = {"exploding", "diverging", "spike", "oscillating", "nan", "dead"}
# What each cause makes appear beside itself, in the order in which causes are believed.
EXPLAINS: dict[str, set[str]] = {
    "symmetry": {"dead", "vanishing", "not-training", "wiring", *_STUCK},
    "not-training": {"vanishing", "dead", "wiring", "over-fit", *_STUCK},
    "wiring": {"lr-high", "over-fit", *_BLOWN, *_STUCK},
    "loss-pairing": {"vanishing", "lr-high", "over-fit", *_BLOWN, *_STUCK},
    "data": {"oscillating", "spike", "diverging", "slow", "plateau", "over-fit", "lr-high",
             "exploding", "nan", "dead"},
    "spike": {"diverging", "exploding", "oscillating", "lr-high", "dead", "nan", "data"},
    "diverging": {"lr-high", "data", "plateau", *_BLOWN},
    "lr-high": {"plateau", "slow", "vanishing", "over-fit", "data", *_BLOWN},
    "exploding": {"lr-high", "diverging", "spike", "oscillating", "nan", "dead", "slow",
                  "plateau", "over-fit", "data"},
    "nan": {"exploding", "diverging", "spike", "dead", "over-fit", "lr-high"},
    "dead": {"vanishing", "plateau", "slow", "data", "oscillating", "spike", "diverging"},
    "vanishing": {"dead", *_STUCK},
    "lr-low": {"slow", "plateau", "data"},
    "slow": {"plateau", "data"},
    "plateau": {"lr-low", "slow", "data"},
    "oscillating": set(),
    "over-fit": set(),
}  # fmt: skip
_BEFORE_STEPS = {"wiring", "loss-pairing"}  # what is wrong before a step is made
_GROW = ("scale_penalty", "leave_weights", "unscale_gradients")  # remedies of what drives a trend
_ORDER = {name: place for place, name in enumerate(EXPLAINS)}
_SLACK = 5  # steps by which a cause may be seen later than what it explains
_LEAP = 40  # the same for a leap of the loss, which is dated to its very step
_TREND = 20  # the same for a trend, which is dated to the first of the points it is drawn through
_LEAST = 5  # frames below which nothing is called healthy


def judged(found: list[RunFinding], history: History, run: str) -> Diagnosed:
    """Put the most likely cause first, and what it explains into its `also`."""
    findings = causes(found)
    warned = any(each.severity != "info" for each in findings)
    return Diagnosed(
        run or history.info.name,
        history.frames,
        False if warned else None if not is_enough(history) else True,
        tuple(findings),
        history.first_step,
        history.last_step,
        (*notes(history), *left_out(history)),
    )


def is_enough(history: History) -> bool:
    """Was enough recorded to call a run healthy: some frames, with a loss or gradients?"""
    known = history.course.scalar("loss") is not None or history.course.field("grad_l2") is not None
    return history.frames >= _LEAST and known


def causes(found: list[RunFinding]) -> list[RunFinding]:
    """Drop what another finding explains, name it there, and order the rest."""
    ranked = sorted(found, key=_rank)
    above = _without_circles([_cause_of(ranked, place) for place in range(len(ranked))])
    also: dict[int, list[str]] = {
        i: [*ranked[i].also] for i, each in enumerate(above) if each is None
    }
    for place, each in enumerate(ranked):
        root = _root(above, place)
        if root != place and each.name not in (ranked[root].name, *also[root]):
            also[root].append(each.name)
    return [
        msgspec.structs.replace(ranked[place], also=tuple(names)) for place, names in also.items()
    ]


def _cause_of(ranked: list[RunFinding], place: int) -> int | None:
    """Give the first finding that explains this one; of two that explain each other one stands."""
    effect = ranked[place]
    for i, cause in enumerate(ranked):
        mutual = _explains(effect, cause)
        if (
            i != place
            and _explains(cause, effect)
            and not (mutual and _stands(effect, cause, place < i))
        ):
            return i
    return None


def _stands(one: RunFinding, other: RunFinding, first: bool) -> bool:
    """Of two that explain each other: does the one stand? The earlier does, else the first."""
    if one.since_step is None or other.since_step is None:
        return first
    apart = other.since_step - one.since_step
    slack = _TREND if "diverging" in {one.name, other.name} else _SLACK
    return apart > slack or (abs(apart) <= slack and first)


def _without_circles(above: list[int | None]) -> list[int | None]:
    """Let the first of findings that explain one another in a circle stand."""
    freed = list(above)
    for start in range(len(freed)):
        seen: list[int] = []
        place: int | None = start
        while place is not None and place not in seen:
            seen.append(place)
            place = freed[place]
        if place is not None:
            freed[min(seen[seen.index(place) :])] = None
    return freed


def _root(above: list[int | None], place: int) -> int:
    """Follow explanations to a finding that nothing explains."""
    while (cause := above[place]) is not None:
        place = cause
    return place


def _rank(each: RunFinding) -> tuple[int, int, float, str]:
    """Tell causes before symptoms, and info last whatever it is."""
    place = _ORDER.get(each.name, len(_ORDER))
    return (each.severity == "info", place, -(each.confidence or 0.0), each.text)


def _explains(cause: RunFinding, effect: RunFinding) -> bool:
    """Is the effect what the cause would bring, and not seen before it?"""
    if cause.name == effect.name:
        return cause.fix == effect.fix and cause is not effect
    if cause.severity == "info" or effect.name not in EXPLAINS.get(cause.name, set()):
        return False
    if not _may_bring(cause, effect):
        return False
    if effect.name in _TIMELESS or _struck_before(cause, effect):
        return True
    if cause.since_step is None or effect.since_step is None:
        return True
    slack = {"spike": _LEAP, "diverging": _TREND}.get(effect.name, _SLACK)
    return cause.since_step <= effect.since_step + slack


def _may_bring(cause: RunFinding, effect: RunFinding) -> bool:
    """May the one bring the other by what each of them is, whenever they were seen?"""
    if cause.name == "spike" and not _throws(cause, effect):
        return False
    if _struck_before(effect, cause):
        return False  # until that step nothing was wrong
    return "diverging" not in {cause.name, effect.name} or _of_a_trend(cause, effect)


def _throws(spike: RunFinding, effect: RunFinding) -> bool:
    """Has a leap a cause of its own? Without one it explains nothing, with one no older data."""
    if not _is_told(spike, "rewind_and_skip"):
        return False
    if effect.name != "data" or _struck_before(spike, effect):
        return True
    if spike.since_step is None or effect.since_step is None:
        return False
    return spike.since_step < effect.since_step


def _struck_before(spike: RunFinding, other: RunFinding) -> bool:
    """Did one step strike a run that had learned, and lost nothing, before the other can be true?

    A rate is too high from the first step on, and labels say nothing from the first batch on: such
    findings are read off the whole run, and their date says nothing of what came first. A loss
    that climbs back for no reason that is told is dated to its lowest level, and has a reason here.
    """
    read_off = {"data": "loss_fall", "diverging": "held_back_rise"}.get(other.name)
    whole = other.name == "lr-high" or (read_off is not None and read_off in other.evidence)
    if spike.name == "data":  # what was there before that step let the run learn until then
        whole = whole or other.name in {"dead", "plateau", "slow"}
    return spike.name in {"spike", "data"} and spike.evidence.get("sound_before") is True and whole


def _of_a_trend(cause: RunFinding, effect: RunFinding) -> bool:
    """May a trend be part of this? One whose cause is known explains the rest, and is no effect.

    Others foretell an end, and explain no more of it than swings and leaps. A rate that climbs
    past what the loss can follow also explains batches that seem to be unlike those before, and
    one that grows weights explains that nothing is learned any more.
    """
    if effect.name == "diverging":
        return cause.name in _BEFORE_STEPS or not _is_known(effect)
    if effect.name in {"data", "plateau"}:
        return _is_told(cause, "fix_schedule") or _is_known(cause)
    return _is_known(cause) or effect.name in {"oscillating", "spike"}


def _is_known(trend: RunFinding) -> bool:
    """Is what drives it seen by itself: what grows weights or gradients, or a rate below zero?"""
    rate = trend.evidence.get("lr")
    grown = any(_is_told(trend, code) for code in _GROW)
    return grown or (isinstance(rate, (int, float)) and rate < 0)


def _is_told(each: RunFinding, code: str) -> bool:
    return each.fix is not None and each.fix.code == code
