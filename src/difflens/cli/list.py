"""`difflens list`: what this installation can read, analyse and write."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from difflens.core.registry import Entry

_KINDS = ("formats", "analyses", "renderers", "diagnoses", "run-formats", "exports", "sinks")


@click.command(name="list")
@click.argument("kind", required=False, type=click.Choice(_KINDS))
def command(kind: str | None) -> None:
    """List what can be read, analysed, diagnosed and written, with its purpose."""
    from difflens.diffs.analyses import analysis
    from difflens.models.formats import source
    from difflens.render.diffs import renderer
    from difflens.render.document.text import Column, table_lines
    from difflens.training.diagnoses import diagnosis
    from difflens.training.history.exports import exporter
    from difflens.training.history.imports import importer
    from difflens.training.sinks import sink

    from ._output import view

    registries: dict[str, Iterable[Entry]] = {
        "formats": source,
        "analyses": analysis,
        "renderers": renderer,
        "diagnoses": diagnosis,
        "run-formats": importer,
        "exports": exporter,
        "sinks": sink,
    }
    how = view(color="never", to_file=False)
    indent = "" if kind else "  "
    room = how.width - len(indent) if how.fitted else None
    for name in [kind] if kind else _KINDS:
        if not kind:
            click.echo(f"{name}:")
        entries = list(registries[name])
        columns = [
            Column("", [entry.name for entry in entries], "value"),  # what is typed is not cut
            Column("", [entry.summary for entry in entries]),
        ]
        for line in table_lines(columns, room):
            click.echo(indent + line)
