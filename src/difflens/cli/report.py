"""`difflens report`: the state of a store."""

from __future__ import annotations

from typing import Any

import click

from ._options import direction_option
from ._store import debugger, policy_option, result_options, show, store_option


@click.command(name="report")
@policy_option
@direction_option
@store_option
@result_options("cli", "markdown", "html", "json", "yaml")
def command(**options: Any) -> None:
    """Report on a store: metrics over versions, trade-offs, ranks, the latest results.

    -o html is one page with charts that needs nothing but a browser.
    """
    from difflens.render.versions.report import report

    with debugger(options) as asked:
        show(asked.generate_report(), report, options)
