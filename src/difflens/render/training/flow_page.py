"""The gradient flow as one page that plays in a browser and needs nothing else.

The cells go in as two bytes each, coded as in a `FlowPicture`, and the page's script draws them on
a canvas: a million squares of SVG would take minutes to open. A moving picture file was not taken:
nobody could point at a cell of it.
"""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from json import dumps
from math import ceil
from typing import Any

from difflens.core.escape import for_terminal
from difflens.training.records.flow import (
    FIELD_WORDS,
    FIRST_CODE,
    FLOW_STATES,
    LAST_CODE,
    MARKS,
    WORDS,
    FlowPicture,
    GradientFlowSummary,
    LayerFlow,
)

from ..document.numbers import percent, scientific
from ..document.page import templates

_MOST_ROWS = 200
_LONGEST = 400
_HEALTH = {
    "Healthy": ("healthy", "same"),
    "MinorIssues": ("minor issues", "differs"),
    "ProblemsDetected": ("problems detected", "differs"),
    "Critical": ("critical", "critical"),
    "Unknown": ("unknown", "differs"),
}


def page(picture: FlowPicture, summary: GradientFlowSummary) -> str:
    """Write it: health, the heat map with its player, a bar a layer, what was seen of each."""
    room = templates()
    script = room.get_template("flow.js.jinja").render()
    word, sign = _HEALTH[summary.overall_health]
    told = [_layer(each) for each in summary.layers if _is_told(each)]
    shown: dict[str, Any] = {
        "title": for_terminal(picture.title),
        "field": FIELD_WORDS.get(picture.field, picture.field),
        "word": word,
        "sign": sign,
        "reasons": [for_terminal(each, _LONGEST) for each in summary.reasons],
        "advice": [_advice(each) for each in summary.recommendations],
        "tiles": _tiles(picture, summary),
        "marks": [
            (state, MARKS[state], WORDS[state], _beyond(state, picture))
            for state in FLOW_STATES
            if state not in {"healthy", "absent"}
        ],
        "unit": _unit(summary),
        "told": told[:_MOST_ROWS],
        "left_out": len(told) - _MOST_ROWS,
        "scale": picture.scale,
        "columns": picture.columns,
        "precision": _precision(picture),
        "widest": max(picture.spans, default=1),
        "script": script,
        "data": _data(picture),
        # Only this very script may run: what a name smuggled in has another hash.
        "allowed": f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'",
    }
    return room.get_template("flow.html.jinja").render(shown) + "\n"


def _data(picture: FlowPicture) -> str:
    """Return the numbers as JSON in which no name can end the script element it lies in."""
    several = max(picture.spans, default=1) > 1
    data = {
        "layers": [for_terminal(name) for name in picture.layers],
        "steps": picture.steps,
        "first": picture.first_steps,
        "spans": picture.spans,
        "range": [picture.code_low, picture.code_high],
        "codes": [FIRST_CODE, LAST_CODE],
        "shown": [picture.low, picture.high],
        "states": FLOW_STATES,
        "words": [WORDS[state] for state in FLOW_STATES],
        "marks": [MARKS.get(state, "") for state in FLOW_STATES],
        "state": b64encode(picture.states).decode(),
        "value": b64encode(picture.codes).decode(),
        "low": b64encode(picture.lows).decode() if several else "",
        "high": b64encode(picture.highs).decode() if several else "",
    }
    text = dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _precision(picture: FlowPicture) -> str:
    """Say how far a number read off the page may lie from the one that was recorded."""
    apart = (picture.code_high - picture.code_low) / (LAST_CODE - FIRST_CODE)
    return f"{ceil(1e6 * (10 ** (apart / 2) - 1)) / 1e4:g}%" if apart else "0.0001%"


def _tiles(picture: FlowPicture, summary: GradientFlowSummary) -> list[tuple[str, str]]:
    first, last = summary.first_step, summary.last_step
    lists = (
        ("exploding", summary.layers_with_exploding_grads),
        ("vanishing", summary.layers_with_vanishing_grads),
        ("with NaN or infinity", summary.layers_with_non_finite_grads),
        ("without gradient", summary.layers_without_gradients),
    )
    frozen = summary.frozen_layers
    return [
        ("layers", f"{picture.all_layers:,}"),
        ("frames", f"{picture.frames:,}"),
        *(
            (word, f"{step:,}")
            for word, step in (("first step", first), ("last step", last))
            if step is not None
        ),
        *((f"layers ever {word}", f"{len(names):,}") for word, names in lists if names),
        *([("layers frozen", f"{len(frozen):,}")] if frozen else []),
    ]


def _unit(summary: GradientFlowSummary) -> str:
    """Name what the layers are counted in: of a long run, points that stand for several frames."""
    counted = max((each.frames for each in summary.layers), default=0)
    return "points" if counted < summary.frames_recorded and counted else "frames"


def _beyond(state: str, picture: FlowPicture) -> str:
    low, high = picture.vanishing_threshold, picture.exploding_threshold
    if state == "vanishing" and low is not None:
        return f"mean |g| < {low:g}, or far below its peers"
    return f"max |g| > {high:g}" if state == "exploding" and high is not None else ""


def _advice(text: str) -> tuple[str, str]:
    rule, _, rest = for_terminal(text, 2 * _LONGEST).partition(": ")
    return rule, rest


def _is_told(layer: LayerFlow) -> bool:
    return any(layer.states[state] for state in ("vanishing", "exploding", "non_finite", "zero"))


def _layer(layer: LayerFlow) -> dict[str, Any]:
    return {
        "name": for_terminal(layer.name),
        "frames": f"{layer.frames:,}",
        "vanishing": _share(layer, "vanishing"),
        "exploding": _share(layer, "exploding"),
        "non_finite": f"{layer.states['non_finite']:,}" if layer.states["non_finite"] else "",
        "zero": f"{layer.states['zero']:,}" if layer.states["zero"] else "",
        "peak": ""
        if layer.peak_norm is None
        else f"{scientific(layer.peak_norm)} at step {layer.peak_step}",
    }


def _share(layer: LayerFlow, flag: str) -> str:
    interval = getattr(layer, f"{flag}_interval")
    if interval is None or not layer.states[flag]:
        return ""
    last = getattr(layer, f"last_{flag}_step")
    return (
        f"{percent(getattr(layer, flag))} "
        f"({percent(interval.low)} to {percent(interval.high)}), last at {last}"
    )
