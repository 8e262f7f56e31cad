"""`difflens compare NAME[@V] NAME[@V]...`: which of several recorded models is best, and is it?"""

from __future__ import annotations

from typing import Any

import click

from ._options import direction_option
from ._store import debugger, policy_option, result_options, show, store_option


@click.command(name="compare")
@click.argument("keys", nargs=-1, required=True, metavar="NAME[@V] NAME[@V]...")
@policy_option
@direction_option
@store_option
@result_options("cli", "json", "yaml", "markdown", "html")
def command(keys: tuple[str, ...], **options: Any) -> None:
    """Compare two or more recorded models: every metric, who is told apart, trade-offs.

    NAME is the newest version of it, NAME@V the version V. Tests need samples (--eval, --replicates
    or --latency of `snapshot add`); of single numbers only the difference is told.
    """
    from difflens.render.versions.comparison import comparison

    if len(keys) < 2:
        raise click.UsageError("a comparison takes two models or more")
    with debugger(options) as asked:
        show(asked.compare_models(list(keys)), comparison, options)
