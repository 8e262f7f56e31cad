"""`difflens watch RUN`: a run while it is recorded: loss, layers, findings."""

from __future__ import annotations

import sys
from typing import Any

import click

from . import EXIT_SAME
from ._options import FilePath


@click.command(name="watch")
@click.argument("run", type=FilePath(), metavar="RUN")
@click.option("--interval", type=click.FloatRange(0.1, 3600), default=1.0, show_default=True,
              metavar="SECONDS", help="Between two looks.")  # fmt: skip
@click.option("--once", is_flag=True, help="Look once, print, and leave.")
@click.option("--field", default="auto", show_default=True, metavar="NAME",
              help="What the heat map shows: grad_rms, update_ratio, weight_l2, ...")  # fmt: skip
@click.option("--layers", default="", metavar="PATTERN",
              help="Only layers whose name contains this, or matches it with * and ?.")  # fmt: skip
@click.option("--whole", is_flag=True, help="Draw the whole run, not its latest steps.")
@click.option("--rank", type=click.IntRange(0), metavar="N", help="Which rank of the run.")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto",
              show_default=True, help="When to colour; NO_COLOR is heard.")  # fmt: skip
@click.option("--debug", is_flag=True, expose_value=False, help="Show tracebacks.")
def command(run: str, **options: Any) -> int:
    """Watch RUN, which another process records; Ctrl-C leaves, the run goes on.

    It ends by itself when the run does. Without a terminal it looks once.
    """
    from ._watching import Watching

    with Watching(run, options) as watching:
        if options["once"] or sys.stdout is None or not sys.stdout.isatty():
            watching.look()
            click.echo(watching.text(), nl=False)
        else:
            watching.stay()
    return EXIT_SAME
