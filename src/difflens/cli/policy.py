"""`difflens policy`: every threshold with its default, as TOML."""

from __future__ import annotations

import click

from ._options import FilePath


@click.command(name="policy")
@click.option(
    "--out", type=FilePath(), metavar="FILE", help="Write the result to FILE instead of stdout."
)
def command(out: str | None) -> None:
    """Print every threshold with its default and its meaning.

    Change what you want, delete the rest, and pass it as `difflens diff --policy FILE`.
    """
    from difflens.diffs.evidence.policy import policy_text

    from ._options import known
    from ._output import emit

    emit(policy_text(known()), out)
