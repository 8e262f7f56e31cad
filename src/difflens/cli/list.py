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
    from ..sinks import sink
    from ..sources import source

    registries: dict[str, Iterable[Entry]] = {
        "formats": source,
        "analyses": analysis,
        "renderers": renderer,
        "diagnoses": diagnosis,
        "run-formats": importer,
        "exports": exporter,
        "sinks": sink,
    }
    for name in [kind] if kind else _KINDS:
        if not kind:
            click.echo(f"{name}:")
        for entry in registries[name]:
            click.echo(f"{'' if kind else '  '}{entry.name:<16} {entry.summary}")
