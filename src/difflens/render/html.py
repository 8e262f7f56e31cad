"""HTML for people: one page that needs nothing but a browser."""

from ..records import Report, View
from . import renderer
from .page import page


@renderer(suffix=".html")
def html(report: Report, view: View) -> str:  # noqa: ARG001  one signature for all
    """One self-contained page: verdict, totals, a table to sort and filter, the analyses."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    room = Environment(
        loader=PackageLoader("difflens", "render"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return room.get_template("report.html.jinja").render(page(report)) + "\n"
