"""The layout of `snapshot list` and `snapshot show`."""

from __future__ import annotations

from collections.abc import Sequence

from difflens.versions.records.snapshots import ModelSnapshot, SnapshotLine

from ..document.document import Document, Line, Name, Part, part, table, unknown
from ..document.numbers import count, plural, size
from ..document.values import moment, value

_MOST_METRICS = 4
_SECTIONS = {
    "metrics": "Metrics",
    "architecture": "How it is built",
    "training_config": "Training",
    "evaluation": "Measured on",
}
_PLAIN_WEIGHTS = tuple(
    """
    mean std_dev min max zero_count sparsity count nonfinite source format content_hash
""".split()
)


def snapshot_list(lines: Sequence[SnapshotLine], more: int | None) -> Document:
    """Lay out a page of snapshots; `more` is the position the next one begins after."""
    rows = table(
        ("model", "version", "taken (UTC)", "parameters", "metrics"),
        map(_line, lines),
        most=len(lines),
    )
    further = f"; more: --after {more}" if more is not None else ""
    said = f"{plural(len(lines), 'snapshot')}{further}" if lines else "no snapshots"
    return Document(
        "snapshot list",
        "snapshots, the last recorded first",
        said,
        "Listed",
        "plain",
        tuple(part("Snapshots", rows=rows)),
    )


def _line(line: SnapshotLine) -> tuple[str, ...]:
    shown = list(line.metrics.items())[:_MOST_METRICS]
    metrics = ", ".join(f"{name}={value(number)}" for name, number in shown)
    more = len(line.metrics) - len(shown)
    return (
        Name(line.name),
        Name(line.version),
        moment(line.timestamp),
        "unknown" if line.parameter_count is None else count(line.parameter_count),
        Name(f"{metrics} and {more} more" if more > 0 else metrics),
    )


def snapshot_added(snapshot: ModelSnapshot, where: str, gone: Sequence[str]) -> Document:
    """Lay out what was recorded just now, and what was dropped for it."""
    parameters = snapshot.architecture.parameter_count
    numbers = {
        name for name, each in snapshot.metrics.to_dict().items() if isinstance(each, int | float)
    }
    sampled = {*snapshot.replicates, *(each.metric for each in snapshot.evals)}
    metrics = len(numbers | sampled | set(snapshot.metrics.custom_metrics))
    said = [
        f"{count(parameters)} parameters" if parameters is not None else "weights not read",
        plural(metrics, "metric"),
        where,
    ]
    return Document(
        "snapshot add",
        f"recorded {snapshot.key}: {', '.join(said)}",
        f"no longer kept: {', '.join(gone)}" if gone else "",
        "Dropped",
        "plain",
        (),
    )


def snapshot_removed(gone: Sequence[str], where: str) -> Document:
    """Lay out what was removed."""
    rows = table(("removed",), ((Name(key),) for key in gone), most=len(gone))
    said = f"removed {plural(len(gone), 'snapshot')} from {where}"
    return Document("snapshot remove", said, "", "Removed", "plain", tuple(part("Gone", rows=rows)))


def snapshot_show(snapshot: ModelSnapshot) -> Document:
    """Lay out one snapshot."""
    about = [
        Line(snapshot.id, "id"),
        Line(moment(snapshot.timestamp), "taken (UTC)"),
        *([Line(snapshot.commit_hash, "commit")] if snapshot.commit_hash else []),
        *(Line(said, key) for key, said in snapshot.metadata.items()),
    ]
    sections = [
        each
        for field, title in _SECTIONS.items()
        for each in part(title, _fields(getattr(snapshot, field).to_dict()))
    ]
    return Document(
        "snapshot show",
        f"snapshot {snapshot.key}",
        "",
        "Snapshot",
        "plain",
        (
            *part("About", about),
            *sections,
            *_weights(snapshot),
            *_samples(snapshot),
            *unknown(
                *(
                    getattr(snapshot, each).missing
                    for each in ("metrics", "architecture", "training_config", "weights_summary")
                )
            ),
        ),
        footer=f"taken {moment(snapshot.timestamp)} UTC",
    )


def _fields(plain: dict[str, object]) -> list[Line]:
    lines = []
    for name, found in plain.items():
        if name == "missing" or found is None:
            continue
        if isinstance(found, dict):
            lines += [Line(_text(each), f"{name}.{key}") for key, each in found.items()]
        else:
            lines.append(Line(_text(found), name))
    return lines


def _text(found: object) -> str:
    return value(found) if isinstance(found, int | float) else str(found)


def _weights(snapshot: ModelSnapshot) -> list[Part]:
    found = snapshot.weights_summary
    figures = [(name, getattr(found, name)) for name in _PLAIN_WEIGHTS]
    lines = [Line(_text(figure), name) for name, figure in figures if figure is not None]
    if found.size_bytes is not None:
        lines.append(Line(size(found.size_bytes), "size"))
    lines += [Line(value(number), label) for label, number in found.percentiles.items()]
    rows = table(
        ("tensor", "dtype", "shape", "l2", "sha256"),
        (
            (
                Name(each.name),
                each.dtype,
                str(list(each.shape)),
                value(each.l2),
                (each.sha256 or "")[:16],
            )
            for each in found.tensors
        ),
    )
    return part("Weights", lines, rows)


def _samples(snapshot: ModelSnapshot) -> list[Part]:
    lines = [
        Line(", ".join(map(value, values)), f"{metric} over seeds")
        for metric, values in snapshot.replicates.items()
    ]
    scored = dict.fromkeys(each.metric for each in snapshot.evals)
    if scored:
        said = f"{plural(len(snapshot.evals), 'score')} of {', '.join(scored)}"
        lines.append(Line(said, "per example"))
    if snapshot.latency_samples:
        lines.append(Line(plural(len(snapshot.latency_samples), "sample"), "latencies"))
    return part("Samples", lines)
