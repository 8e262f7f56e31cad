"""The screen of `watch`: state, loss, heat map and findings in as many lines as there are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import isfinite
from typing import NamedTuple

from difflens.core.escape import for_terminal
from difflens.core.records import View
from difflens.core.terminal import cut
from difflens.training.records.runs import Diagnosed

from ..document.numbers import plural, short
from ..document.text import painter
from .diagnosis import verdict

_BARS = "▁▂▃▄▅▆▇█"
_MOST_FINDINGS = 4
_LEGEND_LINES = 2  # of the heat map's legend: the rest explains what a long run needs
_SIGNS = {"critical": "alarm", "warning": "~", "info": "totals"}


class Seen(NamedTuple):
    """What is known of a run at one moment, beside its picture and its findings."""

    name: str
    state: str  # running, quiet, ended, stopped without end, a log
    frames: int
    step: int | None
    frames_per_second: float | None
    seconds_since_last: float | None
    loss: float | None
    lowest_loss: float | None
    losses: Sequence[float]  # over the whole run, oldest first
    scalars: dict[str, float]  # of the latest frame, without the loss
    gradient_norm: float | None


def screen(
    seen: Seen, drawn: str, found: Diagnosed | None, view: View, height: int, *, filled: bool = True
) -> str:
    """Write the screen, at most `height` lines of at most the view's width; `filled` is all.

    `drawn` is the heat map, fitted to the width already.
    """
    paint = painter(view.color)
    top = [paint(cut(_state(seen), view.width), "verdict"), *_numbers(seen, view.width)]
    bottom = _findings(found, view, height)
    room = height - len(top) - len(bottom)
    middle = _map(drawn, view.width, room)
    lines = [*top, *middle, *[""] * (room - len(middle) if filled else 0), *bottom]
    return "\n".join(lines[:height]) + "\n"


def rows_for(height: int) -> int:
    """Say how many layers fit between the numbers and the findings."""
    return max(1, height - 3 - 3 - _LEGEND_LINES - 2 - _MOST_FINDINGS)


def _state(seen: Seen) -> str:
    parts = [for_terminal(seen.name), seen.state]
    if seen.step is not None:
        parts.append(f"step {seen.step:,}")
    if seen.frames_per_second is not None and seen.state == "running":
        parts.append(f"{short(float(seen.frames_per_second))} frames/s")
    if seen.seconds_since_last is not None and seen.state == "quiet":
        parts.append(f"nothing new for {_duration(seen.seconds_since_last)}")
    return " · ".join([*parts, plural(seen.frames, "frame")])


def _duration(seconds: float) -> str:
    """Write a time in its largest unit.

    >>> _duration(59.4), _duration(3600), _duration(94767677)
    ('59 s', '60 min', '1,097 days')
    """
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size or (unit == "min" and seconds >= size):
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:.0f} s"


def _numbers(seen: Seen, width: int) -> list[str]:
    loss = "unknown" if seen.loss is None else _number(seen.loss)
    line = f"loss {loss}"
    if seen.lowest_loss is not None:
        line += f", lowest {_number(seen.lowest_loss)}"
    line += "  "
    others = {"gradient norm": seen.gradient_norm, **seen.scalars}
    told = [
        f"{for_terminal(name)} {_number(value)}"
        for name, value in others.items()
        if value is not None
    ]
    return [line + sparkline(seen.losses, width - len(line)), cut("  ".join(told), width)]


def _number(value: float) -> str:
    return short(float(value)) if isfinite(value) else str(float(value))


def sparkline(values: Sequence[float], width: int) -> str:
    """Draw a course in one line; what is not finite is an x.

    Where several values share a place, the one farthest from the median is drawn, and an x wins.

    >>> sparkline([0.0, 1.0, float("nan"), 3.0], 10)
    '▁▃x█'
    """
    if width < 1 or not values:
        return ""
    finite = sorted(value for value in values if isfinite(value))
    if not finite:
        return "x" * min(width, len(values))
    middle, low, high = finite[len(finite) // 2], finite[0], finite[-1]
    places = min(width, len(values))
    edges = [place * len(values) // places for place in range(places + 1)]
    last = len(_BARS) - 1
    # Halved first: the distance of two numbers may be larger than any number.
    reach = (high / 2 - low / 2) or 1.0
    signs = []
    for start, stop in pairwise(edges):
        part = values[start:stop]
        far = max(part, key=lambda value: abs(value / 2 - middle / 2))
        odd = not all(map(isfinite, part))
        signs.append("x" if odd else _BARS[round((far / 2 - low / 2) / reach * last)])
    return "".join(signs)


def _map(drawn: str, width: int, room: int) -> list[str]:
    title, *rest = drawn.splitlines() or [""]
    lines = [cut(title, width), *(line for line in rest if line)]
    return lines[:room] if title and room > 3 else []


def _findings(found: Diagnosed | None, view: View, height: int) -> list[str]:
    if found is None:
        return []
    paint = painter(view.color)
    lines = [paint(cut(verdict(found), view.width), "verdict")]
    most = _MOST_FINDINGS if height > 16 else 1
    for each in found.findings[:most]:
        since = "" if each.since_step is None else f" since step {each.since_step}"
        text = f"{each.severity}: {each.name}{since}: {for_terminal(each.text, 400)}"
        lines.append(paint(cut(text, view.width), _SIGNS[each.severity]))
    hidden = len(found.findings) - most
    if hidden > 0:
        lines[-1] = cut(f"and {hidden + 1} more: difflens diagnose {found.run}", view.width)
    return ["", *lines]
