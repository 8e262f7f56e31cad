"""`difflens snapshot`: record versions of models, and look at what is recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import click

from difflens.core.errors import EvidenceError

from ._options import MOST_THREADS, FileLocation, FilePath, Threads, allow_http, limits_of
from ._store import emit, opened, result_options, show, store_option, view_of

_OUTPUTS = ("cli", "json", "yaml", "markdown")


@click.group(name="snapshot")
def command() -> None:
    """Record versions of models in a store: what they are, how they were made, what they score."""


@command.command(name="add")
@click.argument("name")
@click.option("--version", required=True, metavar="V", help="What this version is called.")
@click.option(
    "--weights",
    type=FileLocation(),
    metavar="FILE",
    help="The model, a path or an address: architecture and weights are read from it.",
)
@click.option("--metrics", type=FilePath(), metavar="FILE", help="JSON object, metric to number.")
@click.option(
    "--training",
    type=FilePath(),
    metavar="FILE",
    help="JSON object: learning_rate, batch_size, epochs, optimizer, ...",
)
@click.option("--config", type=FilePath(), metavar="FILE", help="The model's config.json.")
@click.option(
    "--eval",
    "evals",
    type=FilePath(),
    metavar="FILE",
    help="Per-example results, a table: id, score[, cluster][, metric].",
)
@click.option(
    "--replicates",
    type=FilePath(),
    metavar="FILE",
    help="Metrics over seeds, a table: seed, metric, value.",
)
@click.option(
    "--latency",
    type=FilePath(),
    metavar="FILE",
    help="Latencies: one number a line, or a CSV column ms.",
)
@click.option("--dataset", metavar="TEXT", help="What the metrics were measured on.")
@click.option(
    "--data", type=FilePath(), metavar="FILE", help="The data itself, known again by its SHA-256."
)
@click.option(
    "--examples",
    type=click.IntRange(1),
    metavar="N",
    help="How many examples; default: those of --eval.",
)
@click.option("--hardware", metavar="TEXT", help="What latency and memory were measured on.")
@click.option("--precision", metavar="TEXT", help="In which precision it was run.")
@click.option("--commit", metavar="HASH|auto", help="The source's revision; auto asks git.")
@click.option("--meta", multiple=True, metavar="K=V", help="Anything else; repeatable.")
@click.option("--replace", is_flag=True, help="Let it stand for a version of the same name.")
@click.option(
    "--keep",
    type=click.IntRange(1),
    metavar="N",
    help="Afterwards drop all but the N newest versions of NAME.",
)
@click.option("--threads", type=Threads(1), help=f"{MOST_THREADS} at most; default: all cores.")
@click.option(
    "--limit", "limits", multiple=True, metavar="NAME=VALUE", help="Raise a limit (docs/security)."
)
@allow_http
@store_option
@result_options(*_OUTPUTS)
def add(name: str, version: str, **options: Any) -> None:
    """Record a version of NAME.

    What is not given and cannot be read stays unknown.
    """
    from difflens.diffs.fingerprints.recognise import is_fingerprint
    from difflens.render.versions.snapshot import snapshot_added
    from difflens.versions.snapshot import snapshot_of

    if is_fingerprint(options["weights"]):
        raise click.UsageError("--weights names a fingerprint: name the model, which is read")

    files = _read_files(options)
    snapshot = snapshot_of(
        name,
        version,
        weights=options["weights"],
        threads=options["threads"],
        limits=limits_of(options["limits"]),
        **files,
    )
    fingerprint = _fingerprint_to_keep(options)
    with opened(options, create=True) as store:
        store.put(snapshot, replace=options["replace"], fingerprint=fingerprint)
        gone = store.keep(options["keep"], name=name) if options["keep"] else ()
        where = store.where
    show(snapshot, lambda each: snapshot_added(each, where, gone), options)


def _fingerprint_to_keep(options: dict[str, Any]) -> Any:
    """Return the fingerprint of the weights, by which `difflens find` finds them."""
    from difflens.core.errors import MissingExtra

    from ._fingerprints import read_or_make
    from ._output import warn

    if not options["weights"]:
        return None
    try:
        limits = limits_of(options["limits"])
        return read_or_make(options["weights"], None, options["threads"], limits)
    except MissingExtra as error:
        warn(f"recorded without a fingerprint, difflens find cannot find it: {error}")
        return None


def _read_files(options: dict[str, Any]) -> dict[str, Any]:
    """Read the files that were named, but for the weights, into the arguments of a snapshot."""
    from difflens.diffs.evidence.documents import config, json_object
    from difflens.diffs.evidence.measurements import evals, latency

    readers: dict[str, Callable[..., Any]] = {
        "metrics": json_object,
        "training": json_object,
        "config": config,
        "evals": evals,
        "latency": latency,
    }
    limits = limits_of(options["limits"])
    found = {name: read(options[name], limits) for name, read in readers.items() if options[name]}
    if options["replicates"]:
        found |= _replicates(options["replicates"], limits)
    return found | {
        "evaluation": _evaluation(options, found.get("evals", ()), limits),
        "meta": dict(map(_pair, options["meta"])),
        "commit": options["commit"],
    }


def _replicates(path: str, limits: Any) -> dict[str, Any]:
    """Read a table of seed, metric, value; every metric must have every seed."""
    from difflens.diffs.evidence.tables import rows

    seeds: dict[str, None] = {}
    values: dict[str, dict[str, float]] = {}
    for row in rows(path, limits, required=("seed", "metric", "value"), optional=()):
        seed, metric = row.label("seed"), row.label("metric")
        if seed in values.setdefault(metric, {}):
            reason = f"{row.place}: seed '{seed}' of metric '{metric}' stands there already"
            raise EvidenceError(path, reason)
        seeds[seed] = None
        values[metric][seed] = row.number("value")
    for metric, found in values.items():
        lacking = [seed for seed in seeds if seed not in found]
        if lacking:
            reason = f"metric '{metric}' has no value for seed '{lacking[0]}'"
            raise EvidenceError(path, reason, hint="every metric needs the same seeds")
    return {
        "replicates": {metric: [found[seed] for seed in seeds] for metric, found in values.items()},
        "replicate_ids": tuple(seeds),
    }


def _evaluation(options: dict[str, Any], evals: Iterable[Any], limits: Any) -> dict[str, Any]:
    """Say what the metrics were measured on; a data set is known by its bytes."""
    found = {name: options[name] for name in ("dataset", "hardware", "precision") if options[name]}
    examples = {each.id for each in evals}
    if options["examples"] or examples:
        found["n"] = options["examples"] or len(examples)
    if options["data"]:
        found["fingerprint"] = _fingerprint(options["data"], limits)
    return found


def _fingerprint(path: str, limits: Any) -> str:
    from hashlib import sha256

    from difflens.diffs.evidence.documents import content

    return f"sha256:{sha256(content(path, limits)).hexdigest()}"


def _pair(text: str) -> tuple[str, str]:
    """Read K=V."""
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise click.UsageError(f"--meta takes K=V, not {text}")
    return key, value


@command.command(name="list")
@click.argument("name", required=False)
@click.option(
    "--limit",
    type=click.IntRange(1, 1000),
    default=50,
    show_default=True,
    metavar="N",
    help="How many at a time.",
)
@click.option(
    "--after", type=click.IntRange(0), metavar="POSITION", help="Go on where the last page ended."
)
@store_option
@result_options(*_OUTPUTS)
def list_(name: str | None, limit: int, after: int | None, **options: Any) -> None:
    """List snapshots, of NAME or all, the last recorded first."""
    from difflens.render.document.written import as_text, written
    from difflens.render.versions.snapshot import snapshot_list

    with opened(options) as store:
        lines = store.find(name, limit=limit + 1, after=after)  # one more says whether there is one
    shown = lines[:limit]
    more = shown[-1].position if len(lines) > limit else None
    if options["output"] in ("json", "yaml"):
        page = {"snapshots": [each.to_dict() for each in shown], "next_after": more}
        emit(as_text(page, options["output"]), options)
    else:
        emit(written(snapshot_list(shown, more), options["output"], view_of(options)), options)


@command.command(name="show")
@click.argument("key", metavar="NAME[@V]")
@store_option
@result_options(*_OUTPUTS)
def show_(key: str, **options: Any) -> None:
    """Show all that is recorded of a version; without @V of the newest."""
    from difflens.render.versions.snapshot import snapshot_show

    with opened(options) as store:
        snapshot = store.get(key)
    show(snapshot, snapshot_show, options)


@command.command(name="remove")
@click.argument("key", metavar="NAME[@V]")
@store_option
@result_options(*_OUTPUTS)
def remove(key: str, **options: Any) -> None:
    """Remove a version, or without @V every version of NAME."""
    from difflens.render.document.written import as_text, written
    from difflens.render.versions.snapshot import snapshot_removed

    with opened(options) as store:
        gone = store.drop(key)
        where = store.where
    if options["output"] in ("json", "yaml"):
        emit(as_text({"removed": list(gone)}, options["output"]), options)
    else:
        document = snapshot_removed(gone, where)
        emit(written(document, options["output"], view_of(options)), options)
