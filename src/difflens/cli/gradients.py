"""`difflens gradients RUN`: what gradients say of each layer and of the network."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from . import EXIT_SAME
from ._options import FilePath
from ._store import result_options, show

if TYPE_CHECKING:
    from difflens.render.document.document import Document

    Layout = Callable[[Any], Document]


@click.command(name="gradients")
@click.argument("run", metavar="RUN", type=FilePath())
@click.option(
    "--depth",
    type=click.Choice(["basic", "standard", "comprehensive", "expert"]),
    default="standard",
    show_default=True,
    help="Compute more; each depth adds to the one before it.",
)
@click.option(
    "--layer", metavar="PATTERN", help="Show only layers whose name matches PATTERN (* and ?)."
)
@click.option(
    "--window",
    type=int,
    default=100,
    show_default=True,
    metavar="N",
    help="Judge trends and health by the latest N records.",
)
@click.option(
    "--rank", type=int, metavar="R", help="Read this rank, if each rank recorded the run."
)
@result_options("cli", "json", "yaml", "markdown", "html")
def command(run: str, **options: Any) -> int:
    """Analyse the gradients of RUN, a folder of the monitor or a log that can be read as one.

    Exit code: 0, or 2 if the run cannot be read. To fail a build, use `difflens diagnose`.
    """
    from difflens.render.training.gradients import gradients
    from difflens.training.gradients.analyzer import GradientAnalyzer, chosen

    analyzer = GradientAnalyzer(options["depth"], options["window"])
    found = analyzer.analyze_run(run, rank=options["rank"])
    layout = _page_of(run, options["rank"]) if options["output"] == "html" else gradients
    show(chosen(found, options["layer"]) if options["layer"] else found, layout, options)
    return EXIT_SAME


def _page_of(run: str, rank: int | None) -> Layout:
    """Return the layout with the pictures of the run."""
    from difflens.render.training.gradients import gradients
    from difflens.render.training.pictures import MOST_COLUMNS, MOST_LAYERS, with_pictures
    from difflens.training.flow.run import curves_of
    from difflens.training.history import read_history

    curves = curves_of(read_history(run, rank), columns=MOST_COLUMNS, rows=MOST_LAYERS)
    return lambda found: with_pictures(gradients(found), [("", curves)])
