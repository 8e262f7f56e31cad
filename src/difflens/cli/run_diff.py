"""`difflens run-diff LEFT RIGHT`: at which step and layer two training runs part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from . import EXIT_DIFFERENT, EXIT_SAME
from ._options import FilePath
from ._output import warn
from ._store import emit, result_options, view_of

if TYPE_CHECKING:
    from difflens.render.document.document import Document


@click.command(name="run-diff")
@click.argument("left", type=FilePath(), metavar="LEFT")
@click.argument("right", type=FilePath(), metavar="RIGHT")
@result_options("cli", "json", "yaml", "markdown", "html")
def command(left: str, right: str, **options: Any) -> int:
    """Find the first step, layer and number that differ between two runs.

    This is for runs that should be equal: the same seed on another machine, version or kernel.
    Times are not compared. Exit code: 0 the same, 1 they differ, 2 trouble.
    """
    from difflens.render.document.written import as_text, written
    from difflens.render.training.parting import parting
    from difflens.training.history.parting import run_diff

    found = run_diff(left, right)
    for warning in found.warnings:
        warn(warning)
    if options["output"] in ("json", "yaml"):
        emit(as_text(found.to_dict(), options["output"]), options)
    else:
        document = parting(found)
        if options["output"] == "html":
            document = _with_losses(document, left, right)
        emit(written(document, options["output"], view_of(options)), options)
    return EXIT_DIFFERENT if found.differs else EXIT_SAME


def _with_losses(document: Document, left: str, right: str) -> Document:
    from difflens.render.training.pictures import MOST_COLUMNS, MOST_LAYERS, with_pictures
    from difflens.training.flow.run import curves_of
    from difflens.training.history import read_history

    runs = [
        (side, curves_of(read_history(path), columns=MOST_COLUMNS, rows=MOST_LAYERS))
        for side, path in (("left", left), ("right", right))
    ]
    return with_pictures(document, runs)
