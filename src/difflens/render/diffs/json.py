"""JSON for scripts: one array, one object a difference."""

from collections.abc import Iterator
from json import dumps

from difflens.core.records import Report, View

from ..report.changes import changes
from . import renderer


def pieces(report: Report, view: View) -> Iterator[str]:  # noqa: ARG001  one signature for all
    """Yield the array, a difference at a time."""
    begin = "[\n"
    for change in changes(report):
        # ASCII by default, and DEL beside it: a name that commands the terminal stays a string.
        yield f"{begin}{dumps(change)}".replace("\x7f", "\\u007f")
        begin = ",\n"
    yield "[]\n" if begin == "[\n" else "\n]\n"


@renderer(suffix=".json", pieces=pieces)
def json(report: Report, view: View) -> str:
    """An array of one-key objects, one a line."""
    return "".join(pieces(report, view))
