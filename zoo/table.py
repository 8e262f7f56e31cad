"""Shows the scores: a table of rule sets, a table of faults, and the bars they are held against."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from .scores import Rate, Score

_HEADS = (
    "rule set", "recall", "false alarms", "critical", "per 1,000 steps", "precision",
    "right first", "right at end", "right among", "layer top 1", "layer top 3", "delay",
    "NaN delay", "ahead",
)  # fmt: skip

# What issue 7 asks of difflens: the figure, the bar, and whether it may be higher.
BARS: dict[str, tuple[Callable[[Score], float | None], float, bool]] = {
    "recall": (lambda score: score.recall.value, 0.95, True),
    "false alarms": (lambda score: score.false_alarms.value, 0.02, False),
    "critical false alarms": (lambda score: score.critical_alarms.value, 0.0, False),
    "right class first": (lambda score: score.right_first.value, 0.85, True),
    "layer in top 3": (lambda score: score.layer_third.value, 0.90, True),
    "median delay": (lambda score: score.delay, 30, False),
    "median NaN delay": (lambda score: score.nan_delay, 2, False),
    "announced 10 steps ahead": (lambda score: score.ahead.value, 0.60, True),
}


def rule_sets(scores: dict[str, Score]) -> str:
    """Set the rule sets side by side, each rate with its Wilson interval."""
    return markdown(_HEADS, (_cells(name, each) for name, each in scores.items()))


def _cells(name: str, score: Score) -> tuple[str, ...]:
    return (
        name, _rate(score.recall), _rate(score.false_alarms), _rate(score.critical_alarms),
        _number(score.alarms_per_thousand_steps, 2), _rate(score.precision),
        _rate(score.right_first), _rate(score.right_last), _rate(score.right_among),
        _rate(score.layer_first), _rate(score.layer_third), _number(score.delay),
        _number(score.nan_delay), _rate(score.ahead),
    )  # fmt: skip


def faults(lines: Iterable[dict[str, Any]]) -> str:
    """Return a row a fault."""
    heads = ("fault", "cause", "class", "runs", "noticed", "right first", "right at end",
             "layer", "median delay", "said at the end")  # fmt: skip
    return markdown(heads, map(_fault, lines))


def _fault(line: dict[str, Any]) -> tuple[str, ...]:
    delays = sorted(each for each in line["delays"] if each is not None)
    middle = delays[len(delays) // 2] if delays else None
    layer = line["layer_third"]
    return (
        line["fault"] + (" (heals)" if line["heals"] else ""), line["cause"], line["class"],
        str(line["runs"]), str(line["noticed"]), str(line["right_first"]),
        str(line["right_last"]), "" if layer is None else str(layer), _number(middle),
        ", ".join(line["said"]),
    )  # fmt: skip


def bars(score: Score, mended: Rate | None = None) -> str:
    """Hold the figures of difflens against what was asked."""
    rows = []
    for name, (figure, bar, higher) in BARS.items():
        value = figure(score)
        met = value is not None and (value >= bar if higher else value <= bar)
        rows.append((name, _number(value, 3), f"{'>=' if higher else '<='} {bar:g}", _met(met)))
    if mended is not None and mended.value is not None:
        rows.append(("fix works", _rate(mended), ">= 0.8", _met(mended.value >= 0.8)))
    return markdown(("figure", "measured", "bar", "met"), rows)


def _met(met: bool) -> str:
    return "yes" if met else "MISSED"


def markdown(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Lay out a table that reads in a terminal as well as on a page."""
    lines = [heads, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
    shown = [
        "| "
        + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        + " |"
        for line in lines
    ]
    shown.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(shown)


def _rate(rate: Rate) -> str:
    if rate.value is None or rate.low is None or rate.high is None:
        return "-"
    return f"{rate.value:.2f} ({rate.low:.2f}-{rate.high:.2f})"


def _number(value: float | None, digits: int = 0) -> str:
    if value is None:
        return "-"
    return f"{value:.{digits}f}" if math.isfinite(value) else "never"
