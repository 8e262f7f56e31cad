"""`difflens export RUN`: write a run for other programs, or a foreign log as a run."""

from __future__ import annotations

import click

from ._options import FilePath

_FORMATS = ("csv", "json", "parquet", "tensorboard", "run")


@click.command(name="export")
@click.argument("run", metavar="RUN", type=FilePath())
@click.option(
    "--to",
    "to",
    required=True,
    type=click.Choice(_FORMATS),
    help="Write this format; tensorboard and run are folders.",
)
@click.option(
    "--out",
    required=True,
    type=FilePath(),
    metavar="PATH",
    help="Write this file or folder; it appears complete or not at all.",
)
@click.option(
    "--rank",
    type=click.IntRange(0),
    metavar="N",
    help="Write this rank of a run of several; the default is the first.",
)
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
def command(run: str, to: str, out: str, rank: int | None) -> None:
    """Write the frames of RUN to a file or folder.

    RUN is a run folder, what this command wrote, or a log of another program: CSV, JSONL,
    trainer_state.json, TensorBoard. `--to run` makes a run folder of it. What is damaged is left
    out and reported on stderr.
    """
    from difflens.core.escape import for_terminal
    from difflens.training.history import open_run
    from difflens.training.history.exports import export_run

    from ._output import warn

    source = open_run(run, rank)
    try:
        frames = export_run(source, to, out)
        for damage in source.damage:
            warn(f"{run}: {damage}")
        if source.tail_bytes:
            warn(f"{run}: {source.tail_bytes} bytes at the end are incomplete and were left out")
    finally:
        source.close()
    click.echo(
        f"wrote {frames:,} {'frame' if frames == 1 else 'frames'} to {for_terminal(out, 1000)}"
    )
