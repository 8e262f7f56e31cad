"""`difflens run-diff LEFT RIGHT`: at which step and layer two training runs part."""

from __future__ import annotations

from typing import Any

import click

from . import EXIT_DIFFERENT, EXIT_SAME
from ._options import FilePath
from ._store import emit, result_options, view_of, warn


@click.command(name="run-diff")
@click.argument("left", type=FilePath(), metavar="LEFT")
@click.argument("right", type=FilePath(), metavar="RIGHT")
@result_options("cli", "json", "yaml", "markdown", "html")
def command(left: str, right: str, **options: Any) -> int:
    """Hold two runs side by side: the first step, layer and number that differ.

    For runs that should be the same: one seed, another machine, version or kernel. Times are not
    compared. Exit code: 0 the same, 1 they differ, 2 trouble.
    """
    from ..history.parting import run_diff
    from ..render.training.parting import parting
    from ..render.versions import plain, written

    found = run_diff(left, right)
    for warning in found.warnings:
        warn(warning)
    if options["output"] in ("json", "yaml"):
        emit(plain(found.to_dict(), options["output"]), options)
    else:
        emit(written(parting(found), options["output"], view_of(options)), options)
    return EXIT_DIFFERENT if found.differs else EXIT_SAME
