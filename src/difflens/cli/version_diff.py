"""`difflens version-diff FROM TO`: what changed between two recorded versions."""

from __future__ import annotations

from typing import Any

import click

from ._options import direction_option
from ._store import debugger, policy_option, result_options, show, store_option


@click.command(name="version-diff")
@click.argument("left", metavar="FROM")
@click.argument("right", metavar="TO")
@policy_option
@direction_option
@store_option
@result_options("cli", "json", "yaml", "markdown", "html")
def command(left: str, right: str, **options: Any) -> None:
    """Show what changed between two recorded versions: metrics, build, settings, weights.

    FROM and TO are NAME[@V]. Where both weight files are still where they were, the weights are
    compared element by element; else their fingerprints show which tensors changed.
    """
    from difflens.render.versions.version_diff import version_diff

    with debugger(options) as asked:
        show(asked.track_version_diff(left, right), version_diff, options)
