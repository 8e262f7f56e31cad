"""`difflens fingerprint MODEL -o FILE`: what a model is, in 4 KB per tensor."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from . import EXIT_SAME
from ._options import MOST_THREADS, FileLocation, FilePath, Threads, allow_http, limits_of

if TYPE_CHECKING:
    from difflens.diffs.fingerprints.records import Fingerprint


@click.command(name="fingerprint")
@click.argument("model", type=FileLocation())
@click.option(
    "-o", "--out", type=FilePath(), metavar="FILE", help="Write it to FILE, such as m.fingerprint."
)
@click.option("-v", "--verbose", is_flag=True, help="List the tensors, with hashes and statistics.")
@click.option("--format", "form", metavar="NAME", help="Read as this format.")
@click.option(
    "--threads",
    type=Threads(1),
    metavar="N",
    help=f"Use N threads, at most {MOST_THREADS}; the default is one for each core.",
)
@click.option(
    "--limit",
    "limits",
    multiple=True,
    metavar="NAME=VALUE",
    help="Raise a limit on what files may hold; docs/security.md lists them.",
)
@allow_http
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
def command(model: str, out: str | None, verbose: bool, **options: Any) -> int:
    """Write the fingerprint of MODEL, by which it can be compared without its bytes.

    It has a hash, statistics and a sketch of each tensor. `difflens A.fingerprint B` and `difflens
    find` take it in place of the model. MODEL may be a fingerprint, to look at it.
    """
    from ._fingerprints import read_or_make

    if out and os.path.exists(out) and os.path.realpath(out) == os.path.realpath(model):  # noqa: PTH110
        raise click.UsageError("-o names the model itself, which it would replace")
    limits = limits_of(options["limits"])
    fingerprint = read_or_make(model, options["form"], options["threads"], limits)
    size = None
    if out:
        from difflens.diffs.fingerprints.file import write_fingerprint

        size = write_fingerprint(fingerprint, out)
    click.echo(_summary(fingerprint, model, out, size))
    if verbose:
        for line in _lines(fingerprint):
            click.echo(line)
    return EXIT_SAME


def _summary(fingerprint: Fingerprint, name: str, out: str | None, written: int | None) -> str:
    from difflens.core.escape import for_terminal
    from difflens.render.document.numbers import count, plural, size

    model = fingerprint.model
    parts = [
        plural(model.tensor_count, "tensor"),
        f"{count(model.parameter_count)} parameters",
        size(model.size_bytes),
    ]
    text = f"{for_terminal(name)}: {', '.join(parts)}"
    if out and written is not None:
        text += f"; {size(written)} in {for_terminal(out)}"
    return text


def _lines(fingerprint: Fingerprint) -> list[str]:
    from difflens.core.escape import for_terminal
    from difflens.render.document.numbers import brackets, short

    lines = []
    for name, each in fingerprint.tensors.items():
        stats = each.stats
        about = ""
        if stats and stats.mean is not None and stats.std is not None:
            about = f" mean={short(stats.mean)} std={short(stats.std)}"
        if stats and stats.nonfinite:
            about += f" NON-FINITE: {stats.nonfinite}"
        head = f"{each.info.dtype} {brackets(each.info.shape)}"
        lines.append(f"{each.root[:16]} {head} {for_terminal(name)}{about}")
    return lines
