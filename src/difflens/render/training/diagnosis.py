"""The layout of `diagnose`: the verdict, then each finding with what shows it and what to try."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from difflens.training.records.flow import RunCurves
from difflens.training.records.runs import VALIDATION_LOSSES, Diagnosed, RunFinding, RunSeverity

from ..document.document import Document, Line, Mood, Part, part
from ..document.numbers import plural, short
from .pictures import Mark, with_pictures

_MOODS: dict[str, Mood] = {"Healthy": "good", "Not healthy": "bad"}
_SIGNS: dict[RunSeverity, Literal["!", ""]] = {"critical": "!", "warning": "!", "info": ""}
_MOST_LAYERS, _MOST_FIGURES, _MOST_MARKS = 5, 12, 3


def diagnosis(result: Diagnosed) -> Document:
    """Lay out what was found; the first line is the verdict, for who reads no further."""
    counts = [
        (sum(each.severity == kind for each in result.findings), kind)
        for kind in ("critical", "warning", "info")
    ]
    return Document(
        title="diagnose",
        opening=_opening(result),
        verdict="",
        word=_word(result),
        mood=_MOODS.get(_word(result), "open"),
        parts=(*map(_part, result.findings), *_unjudged(result)),
        tiles=tuple((str(number), kind) for number, kind in counts),
        warnings=(),
        footer=_covers(result),
    )


def diagnosis_page(result: Diagnosed, curves: RunCurves) -> Document:
    """Lay it out with the loss and the layers; the steps where findings begin are marked."""
    serious = [each for each in result.findings if each.severity != "info"]
    marks = [
        Mark(each.since_step, f"{each.name} since step {each.since_step}")
        for each in serious[:_MOST_MARKS]
        if each.since_step is not None
    ]
    return with_pictures(diagnosis(result), [("", curves)], marks)


def _word(result: Diagnosed) -> str:
    """Name the worst that was found; only what is critical makes a run not healthy."""
    severities = {each.severity for each in result.findings}
    if "critical" in severities:
        return "Not healthy"
    if "warning" in severities:
        return "Warnings, none critical"
    if result.healthy is None:
        return "Cannot tell"
    return "No fault found" if _is_partial(result) else "Healthy"


def _is_partial(result: Diagnosed) -> bool:
    """Was anything not recorded that is more than a loss on held-back data?"""
    return any(not set(lacking) <= {*VALIDATION_LOSSES} for lacking in result.unjudged.values())


def _unspoken(result: Diagnosed) -> str:
    """Say how many diagnoses could not be judged, and for want of what."""
    number = len(result.unjudged)
    lacking = dict.fromkeys(each for names in result.unjudged.values() for each in names)
    many = "1 diagnosis" if number == 1 else f"{number} diagnoses"
    return f"{many} could not be judged ({', '.join(lacking)} not recorded)"


def verdict(result: Diagnosed) -> str:
    """Say in one sentence what is the matter, or that nothing is."""
    if result.healthy is None:
        return "cannot tell: too little was recorded to judge"
    told = [each for each in result.findings if each.severity != "info"]
    if not told and _is_partial(result):
        return f"no fault found, but {_unspoken(result)}"
    if not told:
        rest = f", {_unspoken(result)}" if result.unjudged else ""
        return f"healthy: no diagnosis found a fault{rest}"
    first = told[0]
    more = f", and {plural(len(told) - 1, 'further finding')}" if len(told) > 1 else ""
    return f"{_word(result).lower()}: {first.name} since step {_step(first.since_step)}{more}"


def _opening(result: Diagnosed) -> str:
    return f"diagnose {result.run or 'run'}: {verdict(result)} ({_covers(result)})"


def _covers(result: Diagnosed) -> str:
    if result.first_step is None:
        return "no steps"
    read = result.read_steps
    few = "" if read in {None, result.steps} else f", layers read at {read} of them"
    return f"{plural(result.steps, 'frame')}, steps {result.first_step} to {result.last_step}{few}"


def _step(step: int | None) -> str:
    return "unknown" if step is None else str(step)


def _part(found: RunFinding) -> Part:
    sure = "" if found.confidence is None else f", confidence {found.confidence:.2f}"
    title = f"{found.name} ({found.severity}, since step {_step(found.since_step)}{sure})"
    return Part(title, tuple(_lines(found)))


def _lines(found: RunFinding) -> Iterator[Line]:
    yield Line(found.text, sign=_SIGNS[found.severity], badge=found.severity)
    if found.layers:
        yield Line(_some(found.layers), "layers")
    yield Line(", ".join(_figures(found.evidence)), "shown by")
    if found.cause:
        yield Line(found.cause, "cause")
    for each in found.advice:
        yield Line(each, "try")
    if found.fix is not None:
        yield Line(_fix(found.fix.code, found.fix.parameters), "fix")
    if found.also:
        yield Line(", ".join(found.also), "explains also")


def _some(names: Sequence[str]) -> str:
    """Name the first layers, and how many there are beside them."""
    more = len(names) - _MOST_LAYERS
    return f"{', '.join(names[:_MOST_LAYERS])}{f' and {more} more' if more > 0 else ''}"


def _figures(evidence: dict[str, Any]) -> list[str]:
    """Write the numbers; sentences among them are in the text already."""
    said = [
        f"{name} {_value(value)}"
        for name, value in evidence.items()
        if not (isinstance(value, str) and " " in value)
    ]
    return said[:_MOST_FIGURES]


def _value(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "unknown"}[value]
    return short(value) if isinstance(value, (int, float)) else str(value)


def _fix(code: str, parameters: dict[str, Any]) -> str:
    """Write a remedy as a program would read it, long lists cut."""
    given = []
    for name, value in parameters.items():
        shown = (
            (f"{plural(len(value), 'layer')}" if value else "all")
            if isinstance(value, (list, tuple))
            else _value(value)
        )
        given.append(f"{name} {shown}")
    return ", ".join([code, *given])


def _unjudged(result: Diagnosed) -> list[Part]:
    lines = [Line(each, sign="?") for each in result.warnings]
    if result.frozen:
        names = _some(result.frozen)
        lines.insert(
            0, Line(f"{plural(len(result.frozen), 'layer')}, not trained: {names}", "frozen")
        )
    return part("Beside it", lines)
