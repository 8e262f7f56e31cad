"""`difflens gradients RUN`: what gradients say of each layer and of the network."""

from __future__ import annotations

from typing import Any

import click

from . import EXIT_SAME
from ._store import result_options, show


@click.command(name="gradients")
@click.argument("run", metavar="RUN")
@click.option(
    "--depth",
    type=click.Choice(["basic", "standard", "comprehensive", "expert"]),
    default="standard",
    show_default=True,
    help="How far to go: each adds to the one before it.",
)
@click.option("--layer", metavar="PATTERN", help="Show the layers of that name; * and ? fit any.")
@click.option(
    "--window",
    type=int,
    default=100,
    show_default=True,
    metavar="N",
    help="The latest records that trends and health are judged by.",
)
@click.option("--rank", type=int, metavar="R", help="Of a run that each rank recorded: which one.")
@result_options("cli", "json", "yaml", "markdown", "html")
def command(run: str, **options: Any) -> int:
    """Analyse the gradients of RUN, a folder of the monitor or a log that can be read as one.

    Exit code: 0, or 2 where the run cannot be read. `difflens diagnose` is what fails a build.
    """
    from ..gradients.analyzer import GradientAnalyzer, chosen
    from ..render.training.gradients import gradients

    analyzer = GradientAnalyzer(options["depth"], options["window"])
    found = analyzer.analyze_run(run, rank=options["rank"])
    show(chosen(found, options["layer"]) if options["layer"] else found, gradients, options)
    return EXIT_SAME
