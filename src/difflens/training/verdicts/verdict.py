"""Of many symptoms the causes: what explains what, and in which order they are told.

A fault shows in many ways: a learning rate that is too high kills units, makes the loss swing and
ends in NaN. Each would be an alarm. Here a finding that a more basic one explains is not told by
itself: its name goes into `also` of what explains it. A score learned from labelled runs was not
taken: nobody could say why it put one cause before another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from ..detectors.signs.degrees import LONG, RECENT, SEVERAL
from ..history.history import History
from ..records.runs import VALIDATION_LOSSES, Diagnosed, RunFinding
from .remedies import agreeing

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
    "data": set(
        """
    oscillating spike diverging slow plateau over-fit lr-high exploding nan dead
""".split()
    ),
    "spike": {"diverging", "exploding", "oscillating", "lr-high", "dead", "nan", "data"},
    "diverging": {"lr-high", "data", "plateau", *_BLOWN},
    "lr-high": {"plateau", "slow", "vanishing", "over-fit", "data", *_BLOWN},
    "exploding": set(
        """
    lr-high diverging spike oscillating nan dead slow plateau over-fit data
""".split()
    ),
    "nan": {"exploding", "diverging", "spike", "dead", "over-fit", "lr-high"},
    "dead": {"vanishing", "plateau", "slow", "data", "oscillating", "spike", "diverging"},
    "vanishing": {"dead", *_STUCK},
    "lr-low": {"slow", "plateau", "data"},
    "slow": {"plateau", "data"},
    "plateau": {"lr-low", "slow", "data"},
    "oscillating": set(),
    "over-fit": set(),
}
_BEFORE_STEPS = {"wiring", "loss-pairing"}  # what is wrong before a step is made
_GROW = ("scale_penalty", "leave_weights", "unscale_gradients")  # remedies of what drives a trend
_ORDER = {name: place for place, name in enumerate(EXPLAINS)}


def judged(found: list[RunFinding], history: History, run: str) -> Diagnosed:
    """Put the most likely cause first, and what it explains into its `also`."""
    findings = agreeing(causes(found))
    silent = unjudged(history)
    warned = any(each.severity != "info" for each in findings)
    return Diagnosed(
        run or history.info.name,
        history.frames,
        False if warned else None if not is_enough(history) else True,
        tuple(findings),
        history.first_step,
        history.last_step,
        (*notes(history), *left_out(silent)),
        tuple(frozen(history)),
        history.read_steps,
        silent,
    )


def is_enough(history: History) -> bool:
    """Was enough recorded to call a run healthy: some frames, with a loss or gradients?"""
    known = (
        history.scalars.scalar("loss") is not None or history.course.field("grad_l2") is not None
    )
    return history.frames >= SEVERAL and known


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
    """Return the first finding that explains this one; of two that explain each other one stays."""
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
    slack = RECENT if "diverging" in {one.name, other.name} else SEVERAL
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
    slack = {"spike": LONG, "diverging": RECENT}.get(effect.name, SEVERAL)
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


def notes(history: History) -> Iterator[str]:
    """Tell what is wrong with the recording itself."""
    yield from history.damage
    if history.dropped:
        many = "1 frame is" if history.dropped == 1 else f"{history.dropped} frames are"
        yield f"{many} missing between those recorded"
    estimated = history.fact("estimated_weights")
    if isinstance(estimated, int) and estimated:
        many = "one large layer" if estimated == 1 else f"{estimated} large layers"
        yield f"weights and updates of {many} are estimates, from a sample of their numbers"
    if not history.frames:
        yield "no frame was recorded: nothing can be judged"


def frozen(history: History) -> list[str]:
    """Name the layers that never got a gradient because they are frozen."""
    info = history.info
    told = history.fact("frozen")
    named = dict.fromkeys(
        [layer.name for layer in info.layers if not layer.trainable]
        + [str(name) for name in (told if isinstance(told, list) else ())]
    )
    if "grad_l2" in info.fields:  # one that was set free later, or frozen later, did get one
        seen = history.extremes.highest[info.fields.index("grad_l2")]
        for layer, highest in zip(info.layers, seen, strict=True):
            if highest > 0:
                named.pop(layer.name, None)
    return list(named)


def unjudged(history: History) -> dict[str, tuple[str, ...]]:
    """Name the diagnoses that could not speak, each with what it lacks."""
    if not history.frames:
        return {}
    from ..diagnoses import diagnosis

    lacking = {
        entry.name: tuple(
            each for each in entry.options.get("needs", ()) if not _has(history, each)
        )
        for entry in diagnosis
    }
    return {name: each for name, each in lacking.items() if each}


def left_out(unjudged: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """Tell which diagnoses could not speak, those together that lack the same."""
    silent: dict[tuple[str, ...], list[str]] = {}
    for name, lacking in unjudged.items():
        silent.setdefault(lacking, []).append(name)
    for lacking, names in silent.items():
        yield f"{', '.join(lacking)} not recorded: {', '.join(names)} could not be judged"


def _has(history: History, name: str) -> bool:
    scalars = history.scalars
    if name in VALIDATION_LOSSES:
        return scalars.first_scalar(VALIDATION_LOSSES) is not None
    return history.course.field(name) is not None or scalars.scalar(name) is not None
