"""`difflens show FILE`: what is in a model."""

from __future__ import annotations

from typing import Any

import click

from ._options import FileLocation, limits_of, shared


@click.command(name="show")
@click.argument("file", type=FileLocation())
@click.option("--stats", is_flag=True, help="Read every tensor; show mean, std, min and max.")
@click.option("--health", is_flag=True, help="Read every tensor; show what is wrong with it.")
@click.option("--stable", is_flag=True, help="Write text that can be diffed, for git's textconv.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["cli", "json", "yaml", "markdown", "html"]),
    default="cli",
    help="Write text or data; yaml, markdown and html need --health.",
)
@shared
def command(file: str, **options: Any) -> None:
    """Show what is in a model: tensors, dtypes, sizes, parameter count, metadata.

    FILE is a path, or an address such as s3://bucket/model or hf://owner/name.
    """
    from difflens.diffs.inspection import inspect
    from difflens.render.report import inventory

    from ._output import emit, view, warn
    from ._progress import progress_bar

    if options["health"]:
        _show_health(file, options)
        return
    if options["output"] not in {"cli", "json"}:
        raise click.UsageError(f"-o {options['output']} needs --health")
    reads = options["stats"] or options["stable"]
    with progress_bar() as advance:
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
        warn(warning)
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

    from difflens.models.formats import open_model
    from difflens.models.health.analyzer import WeightAnalyzer
    from difflens.render.document.written import rendered
    from difflens.render.training.health import weight_health

    from ._output import emit, view, warn
    from ._progress import progress_bar

    for other in ("stats", "stable"):
        if options[other]:
            raise click.UsageError(f"--health and --{other}: name one")
    source = open_model(file, format=options["format"], limits=limits_of(options["limits"]))
    try:
        with progress_bar(sum(each.size_bytes for each in source.tensors.values())) as advance:
            found = WeightAnalyzer().analyze_weight_distribution(
                source, threads=options["threads"], progress=advance
            )
    finally:
        source.close()
    found = msgspec.structs.replace(found, source=file)
    for warning in found.warnings:
        warn(warning)
    color = "never" if options["no_color"] else options["color"]
    how = view(color=color, to_file=options["out"] is not None)
    emit(rendered(found, weight_health, options["output"], how), options["out"])
