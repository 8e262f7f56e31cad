"""The pictures of a report: spectra, distributions, profiles, trajectories, intervals.

Fields of analyses are found by their name and shape, whichever analysis gives them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite, log10
from typing import Any, NamedTuple

from difflens.core.escape import for_terminal
from difflens.core.findings import Envelope, Interval
from difflens.core.records import Report

from ..document.drawing import Drawing, Series, chart
from ..document.numbers import scientific, short
from .heat import broken_words, heat
from .order import by_magnitude

SIZE = (320, 180)  # of small multiples
MOST_SPECTRA = 12
MOST_INTERVALS = 60
_MOST_VALUES = 8
# A profile runs over six decades, the same in every report.
_DECADES = 6


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

    @property
    def text(self) -> str:
        """The number itself, where it is known."""
        return "" if self.value is None else short(self.value)

    @property
    def ends(self) -> str:
        """The ends of the interval."""
        return f"[{short(self.low)}, {short(self.high)}]"


class Bar(NamedTuple):
    """One block of a depth profile."""

    name: str
    value: float
    height: str
    said: str
    is_broken: bool = False


def pictures(report: Report) -> dict[str, Any]:
    """Return what the report has the numbers of; what it has not is empty and is not drawn."""
    every = spectra(report)
    return {
        "heat": heat(report),
        "depth": depth(report),
        "spectra": every[:MOST_SPECTRA],
        "more_spectra": max(0, len(every) - MOST_SPECTRA),
        "overlays": overlays(report),
        "whiskers": whiskers(report)[:MOST_INTERVALS],
        "courses": courses(report),
    }


def field(report: Report, name: str) -> Any:
    """Return a field of the first analysis that knows it; None if none does."""
    known = (each.fields.get(name) for each in report.analyses)
    return next((value for value in known if value is not None), None)


def records(report: Report, name: str, key: str) -> list[dict[str, Any]]:
    """Return a field that is a list of records which hold a key; nothing if it is anything else."""
    rows = field(report, name)
    if not isinstance(rows, list | tuple):
        return []
    return [each for each in rows if isinstance(each, dict) and key in each]


def spectra(report: Report) -> list[Drawing]:
    """Draw the singular values of each change, with the edge that noise would reach."""
    drawn = []
    for each in records(report, "spectra", "singular_values"):
        values = [value for value in numbers(each["singular_values"]) if value > 0]
        if len(values) < 2:
            continue
        edge = [value for value in numbers([each.get("noise_edge")]) if value > 0]
        made = chart(
            for_terminal(str(each.get("name", ""))),
            f"{len(values)} values, the largest {scientific(values[0])}",
            [Series(range(1, len(values) + 1), values)],
            words=("rank", "singular value"),
            log=True,
            levels=[(value, f"noise edge {scientific(value)}") for value in edge],
            size=SIZE,
        )
        drawn += [made] if made else []
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
    bad = [row.name for row in report.tensors if broken_words(row)]
    for each in records(report, "depth_profile", "block"):
        (value,) = numbers([each.get("relative_l2")]) or [0.0]
        block = str(each["block"])
        is_broken = any(name.startswith(f"{block}.") for name in bad)
        said = "unknown" if each.get("relative_l2") is None else f"relative L2 {short(value)}"
        said += ", holds a broken tensor" if is_broken else ""
        height = min(max(1 + log10(value) / _DECADES, 0.01), 1) if value > 0 else 0
        bars.append(Bar(for_terminal(block), value, f"{100 * height:.1f}", said, is_broken))
    return bars if len(bars) > 1 and any(bar.value for bar in bars) else []


def overlays(report: Report) -> list[Drawing]:
    """Draw both distributions of the tensors whose `quantiles` a measure brought.

    `further["quantiles"]` is a map of `shares`, `left` and `right`, one number of each per share.
    """
    drawn: list[Drawing] = []
    for row in by_magnitude(report.tensors):
        known = (row.further or {}).get("quantiles")
        if not isinstance(known, dict) or len(drawn) == MOST_SPECTRA:
            continue
        shares, left, right = (numbers(known.get(key)) for key in ("shares", "left", "right"))
        if not 1 < len(shares) == len(left) == len(right) or len({*left, *right}) == 1:
            continue
        sides = (("left", left, "curve before"), ("right", right, "curve"))
        made = chart(
            for_terminal(row.name),
            "",
            [
                Series(
                    side, shares, f"{word}, {scientific(side[0])} to {scientific(side[-1])}", kind
                )
                for word, side, kind in sides
            ],
            words=("value", "share at or below"),
            ends=(0, 1),
            size=SIZE,
        )
        drawn += [made] if made else []
    return drawn


def courses(report: Report) -> list[Drawing]:
    """Draw how a run moved: the cosine of successive moves, and how long each was."""
    drawn = []
    for name, title in (
        ("cos_successive", "cosine of successive moves"),
        ("update_norms", "length of each move"),
    ):
        values = numbers(field(report, name))
        if len(values) < 2:
            continue
        shown = ", ".join(map(short, values[:_MOST_VALUES]))
        more = len(values) - _MOST_VALUES
        made = chart(
            title,
            f"{shown} and {more} more" if more > 0 else shown,
            [Series(range(1, len(values) + 1), values)],
            words=("move", ""),
            ends=(-1, 1) if name == "cos_successive" else (0, max(values)),
            size=SIZE,
        )
        drawn += [made] if made else []
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
