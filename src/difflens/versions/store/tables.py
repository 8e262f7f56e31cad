"""The tables of a store, and records as rows: compact JSON with a digest, figures one by one."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from math import fsum, inf, isclose, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from difflens.core.errors import SnapshotError, StoreError
from difflens.core.kept import Kept

from ..records.ab import ABTestResult
from ..records.comparisons import ModelComparisonResult, VersionDiff
from ..records.regressions import RegressionDetectionResult
from ..records.snapshots import ModelMetrics, ModelSnapshot
from .connections import Place

if TYPE_CHECKING:
    from sqlalchemy import MetaData, Table


VERSION_TABLE = "difflens_version"
KNOWN = ("0001", "0002")  # the revisions in migrations/versions, oldest first
CURRENT = KNOWN[-1]


class Tables(NamedTuple):
    """The tables: snapshots, their figures one by one, results, and fingerprints.

    The summaries of fingerprints lie apart: a search reads thousands of them and no fingerprint.
    """

    snapshots: Table
    figures: Table
    results: Table
    summaries: Table
    fingerprints: Table


@cache
def tables() -> Tables:
    """Return the tables; they are prefixed, for a database may be shared with other programs."""
    from sqlalchemy import Boolean, Column, Double, ForeignKey, Integer, MetaData, Table, Text

    metadata = MetaData()
    text = exact_text()
    snapshots = Table(
        "difflens_snapshots",
        metadata,
        Column("position", Integer, primary_key=True),
        Column("id", text, nullable=False),
        Column("name", text, nullable=False),
        Column("version", text, nullable=False),
        Column("current", Boolean, nullable=False),  # False: another one stands in its place
        Column("timestamp", text, nullable=False),
        Column("commit_hash", text),
        Column("parameter_count", text),  # as text: 2^64 - 1 is no integer of a database
        Column("body", Text, nullable=False),
        Column("digest", text, nullable=False),
    )
    at = ForeignKey("difflens_snapshots.position", ondelete="CASCADE")
    figures = Table(
        "difflens_figures",
        metadata,
        Column("position", Integer, at, primary_key=True),
        Column("metric", text, primary_key=True),
        Column("name", text, nullable=False),
        Column("timestamp", text, nullable=False),
        Column("value", Double, nullable=False),
        Column("standard_error", Double),
        Column("n", Integer),
    )
    results = Table(
        "difflens_results",
        metadata,
        Column("position", Integer, primary_key=True),
        Column("kind", text, nullable=False),
        Column("timestamp", text, nullable=False),
        Column("body", Text, nullable=False),
        Column("digest", text, nullable=False),
    )
    bodies = (_body_table(metadata, name) for name in ("summaries", "fingerprints"))
    return Tables(snapshots, figures, results, *bodies)


def _body_table(metadata: MetaData, name: str) -> Table:
    """Describe a table of bytes, one row for a snapshot that has them."""
    from sqlalchemy import Column, ForeignKey, Integer, LargeBinary, Table

    at = ForeignKey("difflens_snapshots.position", ondelete="CASCADE")
    return Table(
        f"difflens_{name}",
        metadata,
        Column("position", Integer, at, primary_key=True),
        Column("body", LargeBinary, nullable=False),
    )


def exact_text() -> Any:
    """Return text that compares byte by byte, whatever the language of the database."""
    from sqlalchemy import String, Text

    return Text(collation="C").with_variant(String(), "sqlite")


KeptT = TypeVar("KeptT", bound=Kept)

KINDS: dict[type[Kept], str] = {
    ModelComparisonResult: "comparison",
    ABTestResult: "ab_test",
    VersionDiff: "version_diff",
    RegressionDetectionResult: "regression",
}

_SQUARABLE = 1e150  # the square of a larger number overflows

NO_SPREAD: dict[str, Any] = {"standard_error": None, "n": None}


def snapshot_row(snapshot: ModelSnapshot) -> dict[str, Any]:
    """Return the row of a snapshot."""
    parameters = snapshot.architecture.parameter_count
    return {
        "id": snapshot.id,
        "name": snapshot.name,
        "version": snapshot.version,
        "current": True,
        "timestamp": snapshot.timestamp,
        "commit_hash": snapshot.commit_hash,
        "parameter_count": None if parameters is None else str(parameters),
        **_body(snapshot),
    }


def result_row(result: Kept) -> dict[str, Any]:
    """Return the row of a result."""
    kind = KINDS.get(type(result))
    if kind is None:
        raise SnapshotError(f"{type(result).__name__} is nothing that a store keeps")
    moment = getattr(result, "timestamp", None) or getattr(result, "end_time", "")
    return {"kind": kind, "timestamp": moment, **_body(result)}


def figures_of(snapshot: ModelSnapshot) -> dict[str, float]:
    """Return every finite number that can be ranked or charted, by the name of its metric.

    A metric without a single value stands as the mean over its seeds, else over its examples;
    measured latencies stand as their median.
    """
    metrics = snapshot.metrics
    given: dict[str, Any] = {
        metric: sum(values) / len(values) for metric, values in _sampled(snapshot).items()
    }
    given |= metrics.custom_metrics
    given |= {
        field: value
        for field in ModelMetrics.__struct_fields__
        for value in [getattr(metrics, field)]
        if field not in ("custom_metrics", "missing") and value is not None
    }
    return {
        metric: float(value) for metric, value in given.items() if isinstance(value, (int, float))
    }


def spreads_of(snapshot: ModelSnapshot) -> dict[str, dict[str, Any]]:
    """Return the standard error and the sample size of figures that are means of samples."""
    figures = figures_of(snapshot)
    found = {}
    for metric, samples in _sampled(snapshot).items():
        n = len(samples)
        if max(map(abs, samples)) > _SQUARABLE:
            continue
        mean = sum(samples) / n
        if n > 1 and isclose(mean, figures.get(metric, inf), rel_tol=1e-9, abs_tol=1e-12):
            spread = fsum((each - mean) ** 2 for each in samples) / (n - 1)
            found[metric] = {"standard_error": sqrt(spread / n), "n": n}
    return found


def _sampled(snapshot: ModelSnapshot) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for example in snapshot.evals:
        found.setdefault(example.metric, []).append(example.score)
    if snapshot.latency_samples:
        from statistics import median

        found["inference_latency_ms"] = [median(each.ms for each in snapshot.latency_samples)]
    return found | {name: list(each) for name, each in snapshot.replicates.items() if each}


def read(kind: type[KeptT], row: Any, place: Place, what: str) -> KeptT:
    """Read a record from its row; a body that is not the one recorded is refused."""
    body = row.body
    if not isinstance(body, str) or _digest(body) != row.digest:
        raise StoreError(place.shown, f"{what} is damaged: its digest does not fit its content")
    try:
        return kind.from_json(body)
    except SnapshotError as error:
        raise StoreError(place.shown, f"{what} cannot be read: {error.reason}") from error


def _body(record: Kept) -> dict[str, str]:
    body = msgspec.json.encode(_without_defaults(record, record.to_dict())).decode()
    return {"body": body, "digest": _digest(body)}


def _digest(body: str) -> str:
    return sha256(body.encode("utf-8", "surrogatepass")).hexdigest()


def _without_defaults(record: Kept, data: dict[str, Any]) -> dict[str, Any]:
    """Leave out nulls, and reasons that are made anew when the record is read."""
    packed: dict[str, Any] = {}
    for field, value in data.items():
        original = getattr(record, field)
        if value is None and record.says_why is None:
            packed[field] = None
        elif isinstance(original, Kept):
            packed[field] = _without_defaults(original, value)
        elif field == "missing" and record.says_why:
            kept = [each for each in value if (each["needs"], each["why"]) != record.says_why]
            if kept:
                packed[field] = kept
        elif value is not None:
            packed[field] = value
    return packed
