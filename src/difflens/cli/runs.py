"""`difflens runs [DIR]`: which training runs there are, and how each stands."""

from __future__ import annotations

from typing import Any

import click

from ._options import FilePath
from ._store import emit, result_options, view_of


@click.command(name="runs")
@click.argument("folder", metavar="[DIR]", default="runs", type=FilePath())
@result_options("cli", "json", "yaml", "markdown")
def command(folder: str, **options: Any) -> None:
    """List the runs in DIR (default: runs): state, frames, steps, the last loss, damage.

    Only the start and the end of each run are read, so long runs are listed at once. A run is
    running while a process has it open; a run that was killed has no end.
    """
    from difflens.render.document.written import as_text, written
    from difflens.render.training.listing import run_list
    from difflens.training.history.listing import run_lines

    lines = [line.to_dict() for line in run_lines(folder)]
    if options["output"] in ("json", "yaml"):
        emit(as_text({"runs": lines}, options["output"]), options)
    else:
        emit(written(run_list(lines, folder), options["output"], view_of(options)), options)
