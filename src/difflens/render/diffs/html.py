"""HTML for people: one page that needs nothing but a browser."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256

from difflens.core.records import Report, View

from ..document.page import templates
from ..report.charts import charts
from ..report.page import page
from . import renderer


@renderer(suffix=".html")
def html(report: Report, view: View) -> str:
    """One self-contained page: verdict, findings, maps, a table to sort and filter, analyses."""
    room = templates()
    script = room.get_template("script.js.jinja").render()
    shown = page(report, view) | {
        "charts": charts(report) if view.charts and not view.review else [],
        "script": script,
        # Only this very script may run: what a name smuggled in has another hash.
        "allowed": f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'",
    }
    return room.get_template("report.html.jinja").render(shown) + "\n"
