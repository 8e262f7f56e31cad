"""`difflens policy`: every threshold with its default, as TOML."""

from __future__ import annotations

import click

from ._options import FilePath


@click.command(name="policy")
@click.option("--out", type=FilePath(), metavar="FILE",
              help="Write the result there instead of stdout.")  # fmt: skip
def command(out: str | None) -> None:
    """Print every threshold an analysis judges by, with its default and the reason for it.

    Change what you want to, delete the rest, and hand it in with `difflens diff --policy FILE`.
    """
    from ..evidence.policy_text import policy_text
    from ._output import emit
    from ._policy import known

    emit(policy_text(known()), out)
