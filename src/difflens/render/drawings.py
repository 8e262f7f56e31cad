"""Small drawings as coordinates: spectra, intervals, profiles and courses, for inline SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite, log10
from typing import Any, NamedTuple

from ..escape import for_terminal
from ..records import Envelope, Interval, Report
from .numbers import short
from .order import by_magnitude

WIDTH, HEIGHT = 300, 120
MOST_SPECTRA = 12
MOST_INTERVALS = 60
# A profile runs over six decades, the same in every report.
_DECADES = 6


class Spectrum(NamedTuple):
    """The singular values of one change, largest first, and the edge that noise would reach."""

    name: str
    values: list[float]
    edge: float | None
    path: str
    edge_height: str


class Whisker(NamedTuple):
    """One number with its interval, on its own scale: places in percent of the width."""

    name: str
    value: float | None
    low: float
    high: float
    said: str
    low_place: str
    high_place: str
    value_place: str
    zero_place: str


class Bar(NamedTuple):
    """One block of a depth profile."""

    name: str
    value: float
    height: str
    said: str


class Overlay(NamedTuple):
    """How the values of both sides are distributed: the share at or below each value."""

    name: str
    shares: list[float]
    left: list[float]
    right: list[float]
    left_path: str
    right_path: str


class Course(NamedTuple):
    """Numbers in a row, one a step."""

    name: str
    values: list[float]
    path: str
    low: str
    high: str


def field(report: Report, analysis: str, name: str) -> Any:
    """Give a field of an analysis; None where it was not asked for or is not known."""
    found = (each.fields.get(name) for each in report.analyses if each.name == analysis)
    return next(found, None)


def spectra(report: Report) -> list[Spectrum]:
    """Draw the spectra that the spectral analysis gives, on logarithmic heights."""
    drawn = []
    for each in field(report, "spectral_analysis", "spectra") or ():
        values = [value for value in numbers(each.get("singular_values")) if value > 0]
        edge = next(iter(numbers([each.get("noise_edge")])), None)
        if len(values) < 2:
            continue
        shown = [*values, edge] if edge and edge > 0 else values
        top, bottom = log10(max(shown)), log10(min(shown))
        heights = [_height(log10(value), bottom, top) for value in values]
        line = _height(log10(edge), bottom, top) if edge and edge > 0 else ""
        name = for_terminal(str(each.get("name", "")))
        drawn.append(Spectrum(name, values, edge, _path(heights), line))
    return drawn


def whiskers(report: Report) -> list[Whisker]:
    """Draw every interval that an analysis gives."""
    return [each for envelope in report.analyses for each in _whiskers(envelope)]


def _whiskers(envelope: Envelope) -> Iterator[Whisker]:
    for name, sure in envelope.uncertainty.items():
        if not isinstance(sure, Interval):
            continue
        ends = numbers([sure.low, sure.high])
        if len(ends) == 2:
            value = next(iter(numbers([envelope.fields.get(name)])), None)
            title = for_terminal(f"{envelope.name}: {name}")
            yield _whisker(title, value, (ends[0], ends[1]), sure)


def _whisker(title: str, value: float | None, ends: tuple[float, float], sure: Interval) -> Whisker:
    marks = [*ends, 0.0] if value is None else [*ends, 0.0, value]
    first, last = min(marks), max(marks)

    def place(mark: float) -> str:
        return f"{4 + 92 * (mark - first) / (last - first):.1f}" if last > first else "50.0"

    said = ", ".join(
        filter(
            None,
            (
                f"{100 * sure.level:g}%",
                for_terminal(sure.method),
                "" if sure.n is None else f"n={sure.n}",
            ),
        )
    )
    middle = "" if value is None else place(value)
    return Whisker(title, value, *ends, said, place(ends[0]), place(ends[1]), middle, place(0.0))


def depth(report: Report) -> list[Bar]:
    """Draw the blocks in order of depth, by relative change from 1e-6 to 1."""
    bars = []
    for each in field(report, "change_summary", "depth_profile") or ():
        (value,) = numbers([each.get("relative_l2")]) or [0.0]
        said = "unknown" if each.get("relative_l2") is None else f"relative L2 {short(value)}"
        height = min(max(1 + log10(value) / _DECADES, 0.01), 1) if value > 0 else 0
        bars.append(
            Bar(for_terminal(str(each.get("block", ""))), value, f"{100 * height:.1f}", said)
        )
    return bars if len(bars) > 1 and any(bar.value for bar in bars) else []


def overlays(report: Report) -> list[Overlay]:
    """Draw both distributions of the tensors whose `quantiles` a measure brought.

    `further["quantiles"]` is a map of `shares`, `left` and `right`, one number of each a share.
    """
    drawn: list[Overlay] = []
    for row in by_magnitude(report.tensors):
        found = (row.further or {}).get("quantiles")
        if not isinstance(found, dict) or len(drawn) == MOST_SPECTRA:
            continue
        shares, left, right = (numbers(found.get(key)) for key in ("shares", "left", "right"))
        first, last = min([*left, *right], default=0.0), max([*left, *right], default=0.0)
        if 1 < len(shares) == len(left) == len(right) and last > first:
            paths = (_steps(side, shares, first, last) for side in (left, right))
            drawn.append(Overlay(for_terminal(row.name), shares, left, right, *paths))
    return drawn


def _steps(values: list[float], shares: list[float], first: float, last: float) -> str:
    # Halved, so that the width of what spans all of float64 is still a number.
    width = last / 2 - first / 2
    places = (4 + (WIDTH - 8) * (value / 2 - first / 2) / width for value in values)
    heights = (_height(share, 0.0, 1.0) for share in shares)
    return "M" + "L".join(f"{x:.1f} {y}" for x, y in zip(places, heights, strict=True))


def courses(report: Report) -> list[Course]:
    """Draw how a run moved: the cosine of successive moves, and how long each was."""
    drawn = []
    for name, title in (
        ("cos_successive", "cosine of successive moves"),
        ("update_norms", "length of each move"),
    ):
        values = numbers(field(report, "convergence_analysis", name))
        if len(values) < 2:
            continue
        cosine = name == "cos_successive"
        bottom, top = (-1.0, 1.0) if cosine else (0.0, max(values))
        heights = [_height(value, bottom, top) for value in values]
        drawn.append(Course(title, values, _path(heights), short(bottom), short(top)))
    return drawn


def numbers(values: Any) -> list[float]:
    """Keep what is a finite number, of a list of anything.

    >>> numbers([1, None, float("nan"), True, "x", 2.5])
    [1.0, 2.5]
    """
    if not isinstance(values, Sequence) or isinstance(values, str):
        return []
    return [
        float(value)
        for value in values
        if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    ]


def _height(value: float, bottom: float, top: float) -> str:
    share = (value - bottom) / (top - bottom) if top > bottom else 0.5
    return f"{HEIGHT - 4 - (HEIGHT - 8) * share:.1f}"


def _path(heights: Sequence[str]) -> str:
    step = (WIDTH - 8) / max(1, len(heights) - 1)
    return "M" + "L".join(f"{4 + step * i:.1f} {height}" for i, height in enumerate(heights))
