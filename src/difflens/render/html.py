"""HTML for people: one page that needs nothing but a browser."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from typing import Any

from ..records import Report, View
from . import renderer
from .charts import as_json, figures, library
from .page import page
from .templates import templates


@renderer(suffix=".html")
def html(report: Report, view: View) -> str:
    """One self-contained page: verdict, findings, maps, a table to sort and filter, analyses."""
    room = templates()
    drawn = figures(report) if view.charts and not view.review else []
    ours = {"script": room.get_template("script.js.jinja").render()}
    if drawn:
        plotting = room.get_template("charts.js.jinja").render()
        ours |= {"library": library(), "plotting": plotting}
    shown: dict[str, Any] = page(report, view) | ours
    shown |= {"plots": [figure["title"] for figure in drawn], "figures": as_json(drawn)}
    # Only these very scripts may run: what a name smuggled in has another hash.
    shown["allowed"] = " ".join(map(_hash, ours.values()))
    return room.get_template("report.html.jinja").render(shown) + "\n"


def _hash(script: str) -> str:
    return f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'"
