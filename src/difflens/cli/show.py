"""`difflens show FILE`: what is in a model."""

from __future__ import annotations

import sys
from typing import Any

import click

from ._options import FilePath, limits_of, shared


@click.command(name="show")
@click.argument("file", type=FilePath())
@click.option("--stats", is_flag=True, help="Read every tensor and tell mean, std, min, max.")
@click.option("--stable", is_flag=True, help="Text that can be diffed, for git's textconv.")
@click.option("-o", "--output", type=click.Choice(["cli", "json"]), default="cli")
@shared
def command(file: str, **options: Any) -> None:
    """Show what is in a model: tensors, dtypes, sizes, parameter count, metadata."""
    from ..escape import for_terminal
    from ..inspection import inspect
    from ..render import inventory
    from ._output import emit
    from ._progress import progress_bar, size_on_disk

    reads = options["stats"] or options["stable"]
    with progress_bar(size_on_disk(file)) as advance:
        shown = inspect(
            file,
            statistics=reads,
            digests=options["stable"],
            format=options["format"],
            limits=limits_of(options["limits"]),
            threads=options["threads"],
            progress=advance,
        )
    for warning in shown.warnings:
        sys.stderr.write(f"difflens: warning: {for_terminal(warning, 1000)}\n")
    if options["output"] == "json":
        text = inventory.show_json(shown)
    elif options["stable"]:
        text = inventory.show_stable(shown)
    else:
        text = inventory.show_text(shown)
    emit(text, options["out"])
