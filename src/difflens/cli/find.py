"""`difflens find MODEL`: which recorded models are its nearest relatives?"""

from __future__ import annotations

from typing import Any

import click

from ._options import MOST_THREADS, FileLocation, Threads, allow_http
from ._store import opened, result_options, show, store_option


@click.command(name="find")
@click.argument("model", type=FileLocation())
@click.option(
    "--limit",
    "most",
    type=click.IntRange(1, 50),
    default=5,
    show_default=True,
    metavar="N",
    help="How many relatives.",
)
@click.option("--format", "form", metavar="NAME", help="Read MODEL as this format.")
@click.option("--threads", type=Threads(1), help=f"{MOST_THREADS} at most; default: all cores.")
@allow_http
@store_option
@result_options("cli", "json", "yaml", "markdown")
def command(model: str, most: int, **options: Any) -> None:
    """Find the recorded models that are nearest to MODEL.

    MODEL is a model, or the fingerprint of one. Tensors with the same bits are proved by their
    hashes; distances are estimates. `difflens snapshot add --weights` records fingerprints.
    """
    from difflens.render.versions.relatives import relatives
    from difflens.versions.find import find_relatives

    from ._fingerprints import read_or_make

    with opened(options) as store:
        fingerprint = read_or_make(model, options["form"], options["threads"])
        found = find_relatives(store, fingerprint, most, name=model)
    show(found, relatives, options)
