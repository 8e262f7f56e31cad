"""The interactive charts of the HTML page, as plain figures that plotly's JavaScript draws."""

from __future__ import annotations

from json import dumps
from math import log10
from typing import Any

from ..errors import MissingExtra
from ..records import Report
from .drawings import Whisker, courses, depth, overlays, spectra, whiskers
from .heat import LIMITS, heat

Figure = dict[str, Any]
# Blue to yellow, which every kind of colour vision tells apart (Nuñez et al. 2018).
_COLOURS = "Cividis"
_MOST_INTERVALS = 20
_DASHES = {"left": "dash", "right": "solid"}


def library() -> str:
    """Give plotly's JavaScript; it comes with the extra `charts`."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise MissingExtra("--include-charts", "charts") from error
    text: str = get_plotlyjs()
    return text.replace("\r\n", "\n").replace("\r", "\n")  # as a browser reads it, for the hash


def figures(report: Report) -> list[Figure]:
    """Give a figure for whatever the report has the numbers of, and none for the rest."""
    made = [_heat(report), _depth(report), _spectra(report), _overlays(report), _intervals(report)]
    return [figure for figure in (*made, *_courses(report)) if figure]


def as_json(figures: list[Figure]) -> str:
    """Write figures so that no name in them ends the script element they lie in."""
    text = dumps(figures, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _figure(title: str, data: list[Any], **layout: Any) -> Figure:
    return {"title": title, "data": data, "layout": layout}


def _heat(report: Report) -> Figure | None:
    found = heat(report)
    if not found:
        return None
    # Colour by decade on a fixed scale; what is the same on both sides stays empty.
    levels = [
        [log10(square.value) if square and square.value else None for square in line]
        for line in found.squares
    ]
    told = [[square.told if square else "" for square in line] for line in found.squares]
    trace = {
        "type": "heatmap",
        "x": _inert(found.parts),
        "y": _inert(found.blocks),
        "z": levels,
        "text": _inert(told),
        "hovertemplate": "%{text}<extra></extra>",
        "hoverongaps": False,
        "colorscale": _COLOURS,
        "zmin": log10(LIMITS[0]) - 1,
        "zmax": 0,
        "colorbar": {"title": {"text": "relative L2"}, "tickprefix": "1e"},
    }
    lines = max(320, 90 + 18 * len(found.blocks))
    axis = {"type": "category"}
    return _figure(
        "Blocks by part: relative L2",
        [trace],
        height=lines,
        xaxis=axis | {"side": "top"},
        yaxis=axis | {"autorange": "reversed"},
    )


def _depth(report: Report) -> Figure | None:
    bars = depth(report)
    if not bars:
        return None
    trace = {
        "type": "bar",
        "x": [_inert(bar.name) for bar in bars],
        "y": [bar.value for bar in bars],
    }
    return _figure(
        "Relative L2 by depth", [trace], xaxis={"type": "category"}, yaxis={"rangemode": "tozero"}
    )


def _spectra(report: Report) -> Figure | None:
    data = []
    for each in spectra(report):
        name, last = _inert(each.name), len(each.values)
        ranks = list(range(1, last + 1))
        line = {"type": "scatter", "mode": "lines+markers", "marker": {"size": 4}}
        data.append(line | {"name": name, "x": ranks, "y": each.values, "legendgroup": name})
        if each.edge is not None:
            edge = {"type": "scatter", "mode": "lines", "line": {"dash": "dash"}}
            at = {"x": [1, last], "y": [each.edge, each.edge]}
            data.append(edge | at | {"name": "noise edge", "legendgroup": name})
    axes = {"xaxis": {"title": {"text": "rank"}}, "yaxis": {"type": "log"}}
    return (
        _figure("Singular values of the change, with the edge of noise", data, **axes)
        if data
        else None
    )


def _overlays(report: Report) -> Figure | None:
    data = []
    for each in overlays(report):
        name = _inert(each.name)
        for side, values in (("left", each.left), ("right", each.right)):
            line = {"type": "scatter", "mode": "lines", "line": {"dash": _DASHES[side]}}
            at = {"x": values, "y": each.shares, "legendgroup": name}
            data.append(line | at | {"name": f"{name}, {side}"})
    axes = {"yaxis": {"range": [0, 1]}}
    return _figure("Distribution of the values, by quantiles", data, **axes) if data else None


def _intervals(report: Report) -> Figure | None:
    """Give every interval its own scale: an accuracy and a latency share no axis."""
    found = whiskers(report)[:_MOST_INTERVALS]
    if not found:
        return None
    data: list[Any] = []
    layout: dict[str, Any] = {}
    for place, each in enumerate(found):
        number = "" if place == 0 else str(place + 1)
        data += _interval(each, number)
        top = 1 - place / len(found)
        layout[f"xaxis{number}"] = {"anchor": f"y{number}"}
        layout[f"yaxis{number}"] = {
            "type": "category",
            "domain": [top - 0.35 / len(found), top],
            "anchor": f"x{number}",
        }
    height = 110 + 70 * len(found)
    return _figure("Intervals", data, height=height, showlegend=False, **layout)


def _interval(whisker: Whisker, number: str) -> list[Any]:
    name = _inert(whisker.name)
    axes = {"type": "scatter", "xaxis": f"x{number}", "yaxis": f"y{number}", "name": name}
    said = {"text": _inert(whisker.said), "hovertemplate": "%{x}<br>%{text}<extra></extra>"}
    line = {"mode": "lines", "x": [whisker.low, whisker.high], "y": [name, name]}
    found = [axes | said | line | {"line": {"width": 4}}]
    if whisker.value is not None:
        marker = {"mode": "markers", "x": [whisker.value], "y": [name], "marker": {"size": 12}}
        found.append(axes | said | marker)
    return found


def _courses(report: Report) -> list[Figure]:
    return [
        _figure(
            f"Trajectory: {course.name}",
            [{"type": "scatter", "mode": "lines+markers", "y": course.values}],
            xaxis={"title": {"text": "move"}, "dtick": 1},
        )
        for course in courses(report)
    ]


def _inert(value: Any) -> Any:
    """Write names so that plotly, which reads a little HTML in its labels, finds none."""
    if isinstance(value, list):
        return [_inert(each) for each in value]
    return value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
