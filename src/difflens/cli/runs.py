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

    Only the head and the tail of each run are read, so that long runs are listed at once. A run
    is running while a process holds it open; one that was killed stopped without end.
    """
    from ..history.listing import run_lines
    from ..render.training.listing import run_list
    from ..render.versions import plain, written

    lines = [line.to_dict() for line in run_lines(folder)]
    if options["output"] in ("json", "yaml"):
        emit(plain({"runs": lines}, options["output"]), options)
    else:
        emit(written(run_list(lines, folder), options["output"], view_of(options)), options)
