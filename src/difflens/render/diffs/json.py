"""JSON for scripts: one array, one object a difference."""

from json import dumps

from difflens.core.records import Report, View

from ..report.changes import changes
from . import renderer


@renderer(suffix=".json")
def json(report: Report, view: View) -> str:  # noqa: ARG001  one signature for all
    """An array of one-key objects, one a line."""
    lines = ",\n".join(map(dumps, changes(report)))
    # ASCII by default, and DEL beside it: a name that commands the terminal stays a string.
    return f"[\n{lines}\n]\n".replace("\x7f", "\\u007f") if lines else "[]\n"
