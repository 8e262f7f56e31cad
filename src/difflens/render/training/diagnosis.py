"""The layout of `diagnose`: the verdict, then each finding with what shows it and what to try."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...runs import Diagnosed, RunFinding
from ..numbers import plural, short
from ..versions.document import Document, Line, Mood, Part, part

_WORDS = {True: "Healthy", False: "Not healthy", None: "Cannot tell"}
_MOODS: dict[bool | None, Mood] = {True: "good", False: "bad", None: "open"}
_MOST_LAYERS, _MOST_FIGURES = 5, 12


def diagnosis(result: Diagnosed) -> Document:
    """Lay out what was found; the first line is the verdict, for who reads no further."""
    counts = [(sum(each.severity == kind for each in result.findings), kind)
              for kind in ("critical", "warning", "info")]  # fmt: skip
    return Document(
        title="diagnose",
        opening=_opening(result),
        verdict="",
        word=_WORDS[result.healthy],
        mood=_MOODS[result.healthy],
        parts=(*map(_part, result.findings), *_unjudged(result)),
        tiles=tuple((str(number), kind) for number, kind in counts),
        warnings=(),
        footer=_covers(result),
    )


def verdict(result: Diagnosed) -> str:
    """Say in one sentence what is the matter, or that nothing is."""
    if result.healthy is None:
        return "cannot tell: too little was recorded to judge"
    told = [each for each in result.findings if each.severity != "info"]
    if not told:
        return "healthy: no diagnosis found a fault"
    first = told[0]
    more = f", and {plural(len(told) - 1, 'further finding')}" if len(told) > 1 else ""
    return f"not healthy: {first.name} since step {_step(first.since_step)}{more}"


def _opening(result: Diagnosed) -> str:
    return f"diagnose {result.run or 'run'}: {verdict(result)} ({_covers(result)})"


def _covers(result: Diagnosed) -> str:
    if result.first_step is None:
        return "no steps"
    return f"{plural(result.steps, 'frame')}, steps {result.first_step} to {result.last_step}"


def _step(step: int | None) -> str:
    return "unknown" if step is None else str(step)


def _part(found: RunFinding) -> Part:
    sure = "" if found.confidence is None else f", confidence {found.confidence:.2f}"
    title = f"{found.name} ({found.severity}, since step {_step(found.since_step)}{sure})"
    return Part(title, tuple(_lines(found)))


def _lines(found: RunFinding) -> Iterator[Line]:
    yield Line(found.text, sign="!" if found.severity != "info" else "")
    if found.layers:
        more = len(found.layers) - _MOST_LAYERS
        names = ", ".join(found.layers[:_MOST_LAYERS])
        yield Line(f"{names}{f' and {more} more' if more > 0 else ''}", "layers")
    yield Line(", ".join(_figures(found.evidence)), "shown by")
    if found.cause:
        yield Line(found.cause, "cause")
    for each in found.advice:
        yield Line(each, "try")
    if found.fix is not None:
        yield Line(_fix(found.fix.code, found.fix.parameters), "fix")
    if found.also:
        yield Line(", ".join(found.also), "explains also")


def _figures(evidence: dict[str, Any]) -> list[str]:
    """Write the numbers; sentences among them are in the text already."""
    said = [f"{name} {_value(value)}" for name, value in evidence.items()
            if not (isinstance(value, str) and " " in value)]  # fmt: skip
    return said[:_MOST_FIGURES]


def _value(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "unknown"}[value]
    return short(value) if isinstance(value, (int, float)) else str(value)


def _fix(code: str, parameters: dict[str, Any]) -> str:
    """Write a remedy as a program would read it, long lists cut."""
    given = []
    for name, value in parameters.items():
        shown = (f"{plural(len(value), 'layer')}" if value else "all"
                 ) if isinstance(value, (list, tuple)) else _value(value)  # fmt: skip
        given.append(f"{name} {shown}")
    return ", ".join([code, *given])


def _unjudged(result: Diagnosed) -> list[Part]:
    return part("Beside it", [Line(each, sign="?") for each in result.warnings])
