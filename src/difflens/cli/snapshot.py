"""`difflens snapshot`: record versions of models, and look at what is recorded."""

from __future__ import annotations

from typing import Any

import click

from ._options import FilePath
from ._store import emit, opened, result_options, show, store_option, view_of

_OUTPUTS = ("cli", "json", "yaml", "markdown")


@click.group(name="snapshot")
def command() -> None:
    """Record versions of models in a store: what they are, how they were made, what they score."""


@command.command(name="add")
@click.argument("name")
@click.option("--version", required=True, metavar="V", help="What this version is called.")
@click.option("--weights", type=FilePath(), metavar="FILE",
              help="The model: architecture and weights are read from it.")  # fmt: skip
@click.option("--metrics", type=FilePath(), metavar="FILE", help="JSON object, metric to number.")
@click.option("--training", type=FilePath(), metavar="FILE",
              help="JSON object: learning_rate, batch_size, epochs, optimizer, ...")  # fmt: skip
@click.option("--config", type=FilePath(), metavar="FILE", help="The model's config.json.")
@click.option("--eval", "evals", type=FilePath(), metavar="FILE",
              help="Per-example results, a table: id, score[, cluster][, metric].")  # fmt: skip
@click.option("--replicates", type=FilePath(), metavar="FILE",
              help="Metrics over seeds, a table: seed, metric, value.")  # fmt: skip
@click.option("--latency", type=FilePath(), metavar="FILE",
              help="Latencies: one number a line, or a CSV column ms.")  # fmt: skip
@click.option("--dataset", metavar="TEXT", help="What the metrics were measured on.")
@click.option("--data", type=FilePath(), metavar="FILE",
              help="The data itself, known again by its SHA-256.")  # fmt: skip
@click.option("--examples", type=click.IntRange(1), metavar="N",
              help="How many examples; default: those of --eval.")  # fmt: skip
@click.option("--hardware", metavar="TEXT", help="What latency and memory were measured on.")
@click.option("--precision", metavar="TEXT", help="In which precision it was run.")
@click.option("--commit", metavar="HASH|auto", help="The source's revision; auto asks git.")
@click.option("--meta", multiple=True, metavar="K=V", help="Anything else; repeatable.")
@click.option("--replace", is_flag=True, help="Let it stand for a version of the same name.")
@click.option("--keep", type=click.IntRange(1), metavar="N",
              help="Afterwards drop all but the N newest versions of NAME.")  # fmt: skip
@click.option("--threads", type=click.IntRange(1, 256, clamp=True), help="Default: all cores.")
@click.option("--limit", "limits", multiple=True, metavar="NAME=VALUE",
              help="Raise a limit (docs/security).")  # fmt: skip
@store_option
@result_options(*_OUTPUTS)
def add(name: str, version: str, **options: Any) -> None:
    """Record a version of NAME.

    What is not handed in and cannot be read stays unknown.
    """
    from ..render.versions.snapshot import snapshot_added
    from ..versions.snapshot import snapshot_of
    from ._options import limits_of
    from ._snapshot_files import found_again, handed

    found = handed(options)
    snapshot = snapshot_of(
        name,
        version,
        weights=options["weights"],
        threads=options["threads"],
        limits=limits_of(options["limits"]),
        **found,
    )
    snapshot = found_again(snapshot, options["weights"])
    with opened(options, create=True) as store:
        store.put(snapshot, replace=options["replace"])
        gone = store.keep(options["keep"], name=name) if options["keep"] else ()
        where = store.where
    show(snapshot, lambda each: snapshot_added(each, where, gone), options)


@command.command(name="list")
@click.argument("name", required=False)
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, metavar="N",
              help="How many at a time.")  # fmt: skip
@click.option("--after", type=click.IntRange(0), metavar="POSITION",
              help="Go on where the last page ended.")  # fmt: skip
@store_option
@result_options(*_OUTPUTS)
def list_(name: str | None, limit: int, after: int | None, **options: Any) -> None:
    """List snapshots, of NAME or all, the last recorded first."""
    from ..render.versions import plain, written
    from ..render.versions.snapshot import snapshot_list

    with opened(options) as store:
        lines = store.find(name, limit=limit + 1, after=after)  # one more says whether there is one
    shown = lines[:limit]
    more = shown[-1].position if len(lines) > limit else None
    if options["output"] in ("json", "yaml"):
        page = {"snapshots": [each.to_dict() for each in shown], "next_after": more}
        emit(plain(page, options["output"]), options)
    else:
        emit(written(snapshot_list(shown, more), options["output"], view_of(options)), options)


@command.command(name="show")
@click.argument("key", metavar="NAME[@V]")
@store_option
@result_options(*_OUTPUTS)
def show_(key: str, **options: Any) -> None:
    """Show all that is recorded of a version; without @V of the newest."""
    from ..render.versions.snapshot import snapshot_show

    with opened(options) as store:
        snapshot = store.get(key)
    show(snapshot, snapshot_show, options)


@command.command(name="remove")
@click.argument("key", metavar="NAME[@V]")
@store_option
@result_options(*_OUTPUTS)
def remove(key: str, **options: Any) -> None:
    """Remove a version, or without @V every version of NAME."""
    from ..render.versions import plain, written
    from ..render.versions.snapshot import snapshot_removed

    with opened(options) as store:
        gone = store.drop(key)
        where = store.where
    if options["output"] in ("json", "yaml"):
        emit(plain({"removed": list(gone)}, options["output"]), options)
    else:
        document = snapshot_removed(gone, where)
        emit(written(document, options["output"], view_of(options)), options)
