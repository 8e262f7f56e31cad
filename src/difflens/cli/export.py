"""`difflens export RUN`: write a run for other programs, or a foreign log as a run."""

from __future__ import annotations

import click

from ._options import FilePath

_FORMATS = ("csv", "json", "parquet", "tensorboard", "run")


@click.command(name="export")
@click.argument("run", metavar="RUN", type=FilePath())
@click.option("--to", "to", required=True, type=click.Choice(_FORMATS),
              help="The format; tensorboard and run are folders.")  # fmt: skip
@click.option("--out", required=True, type=FilePath(), metavar="PATH",
              help="The file or folder to write; it appears whole or not at all.")  # fmt: skip
@click.option("--rank", type=click.IntRange(0), metavar="N",
              help="Of a run of several ranks, which one; default: the first.")  # fmt: skip
@click.option("--debug", is_flag=True, expose_value=False, help="Show tracebacks.")
def command(run: str, to: str, out: str, rank: int | None) -> None:
    """Write the frames of RUN to a file or folder.

    RUN is a run folder, what this command wrote, or a log of another program: CSV, JSONL,
    trainer_state.json, TensorBoard. `--to run` makes a run folder of it. What is damaged is left
    out and told on stderr.
    """
    from ..escape import for_terminal
    from ..history import open_run
    from ..history.exports import export_run
    from ._store import warn

    source = open_run(run, rank)
    try:
        frames = export_run(source, to, out)
        for damage in source.damage:
            warn(f"{run}: {damage}")
        if source.tail_bytes:
            warn(f"{run}: {source.tail_bytes} bytes at the end are not whole, they were left out")
    finally:
        source.close()
    click.echo(f"wrote {frames:,} frames to {for_terminal(out, 1000)}")
