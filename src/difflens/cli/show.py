"""`difflens show FILE`: what is in a model."""

from __future__ import annotations

import sys
from typing import Any

import click

from ._options import FilePath, limits_of, shared


@click.command(name="show")
@click.argument("file", type=FilePath())
@click.option("--stats", is_flag=True, help="Read every tensor and tell mean, std, min, max.")
@click.option("--health", is_flag=True, help="Read every tensor and tell what is wrong with it.")
@click.option("--stable", is_flag=True, help="Text that can be diffed, for git's textconv.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["cli", "json", "yaml", "markdown", "html"]),
    default="cli",
    help="The last three with --health.",
)
@shared
def command(file: str, **options: Any) -> None:
    """Show what is in a model: tensors, dtypes, sizes, parameter count, metadata."""
    from ..escape import for_terminal
    from ..inspection import inspect
    from ..render import inventory
    from ._output import emit, view
    from ._progress import progress_bar, size_on_disk

    if options["health"]:
        _show_health(file, options)
        return
    if options["output"] not in {"cli", "json"}:
        raise click.UsageError(f"-o {options['output']} needs --health")
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
        how = view(color="never", to_file=options["out"] is not None)
        text = inventory.show_text(shown, how)
    emit(text, options["out"])


def _show_health(file: str, options: dict[str, Any]) -> None:
    """Look at every tensor of a model, and write what was found as asked."""
    import msgspec

    from ..escape import for_terminal
    from ..render.training.health import weight_health
    from ..render.versions import rendered
    from ..sources import open_model
    from ..weights.analyzer import WeightAnalyzer
    from ._output import emit, view
    from ._progress import progress_bar, size_on_disk

    for other in ("stats", "stable"):
        if options[other]:
            raise click.UsageError(f"--health and --{other}: name one")
    source = open_model(file, format=options["format"], limits=limits_of(options["limits"]))
    try:
        with progress_bar(size_on_disk(file)) as advance:
            found = WeightAnalyzer().analyze_weight_distribution(
                source, threads=options["threads"], progress=advance
            )
    finally:
        source.close()
    found = msgspec.structs.replace(found, source=file)
    for warning in found.warnings:
        sys.stderr.write(f"difflens: warning: {for_terminal(warning, 1000)}\n")
    color = "never" if options["no_color"] else options["color"]
    how = view(color=color, to_file=options["out"] is not None)
    emit(rendered(found, weight_health, options["output"], how), options["out"])
