"""`difflens list`: what this installation can read, analyse and write."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ..registry import Entry

_KINDS = ("formats", "analyses", "renderers", "diagnoses", "run-formats", "exports", "sinks")


@click.command(name="list")
@click.argument("kind", required=False, type=click.Choice(_KINDS))
def command(kind: str | None) -> None:
    """List what can be read, analysed, diagnosed and written, with what each is for."""
    from ..analyses import analysis
    from ..diagnoses import diagnosis
    from ..history.exports import exporter
    from ..history.imports import importer
    from ..render import renderer
    from ..render.columns import Column, table_lines
    from ..sinks import sink
    from ..sources import source
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
