"""The questions a store answers, each one query that an index serves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from difflens.core.kept import Kept
from difflens.diffs.evidence.records import Past

from ..records.snapshots import AT, ModelSnapshot, SnapshotLine
from .tables import KINDS, tables

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection, Row, Table

_NEAR = 500  # names that a misspelt one is held against
_BATCH = 1000


def by_key(connection: Connection, name: str, version: str) -> Row[Any] | None:
    """Return the row of NAME@VERSION."""
    table = tables().snapshots
    wanted = table.select().where(table.c.current, table.c.name == name, table.c.version == version)
    return connection.execute(wanted).first()


def newest(connection: Connection, name: str) -> Row[Any] | None:
    """Return the row of the version with the latest time; of equal times the last recorded."""
    table = tables().snapshots
    wanted = table.select().where(table.c.current, table.c.name == name)
    latest = (table.c.timestamp.desc(), table.c.position.desc())
    return connection.execute(wanted.order_by(*latest).limit(1)).first()


def like(connection: Connection, name: str) -> list[str]:
    """Return keys that somebody may have meant: the versions of that name, or all names."""
    found = keys(connection, name, None, limit=_NEAR)
    return [f"{name}{AT}{version}" for name, version in found] or list(names(connection, _NEAR, ""))


def keys(
    connection: Connection, name: str, version: str | None, limit: int | None = None
) -> list[tuple[str, str]]:
    """Return the names and versions there are, the first recorded first."""
    from sqlalchemy import select

    table = tables().snapshots
    wanted = select(table.c.name, table.c.version).where(table.c.current, table.c.name == name)
    if version is not None:
        wanted = wanted.where(table.c.version == version)
    ordered = wanted.order_by(table.c.position).limit(limit)
    return [(row.name, row.version) for row in connection.execute(ordered)]


def older(connection: Connection, newest: int, name: str | None) -> list[tuple[str, str]]:
    """Return all but the newest versions of each name."""
    from sqlalchemy import func, select

    table = tables().snapshots
    rank = func.row_number().over(
        partition_by=table.c.name, order_by=(table.c.timestamp.desc(), table.c.position.desc())
    )
    ranked = select(table.c.name, table.c.version, table.c.position, rank.label("rank"))
    ranked = ranked.where(table.c.current)
    if name is not None:
        ranked = ranked.where(table.c.name == name)
    within = ranked.subquery()
    wanted = select(within.c.name, within.c.version).where(within.c.rank > newest)
    return [
        (row.name, row.version) for row in connection.execute(wanted.order_by(within.c.position))
    ]


def page(
    connection: Connection, name: str | None, limit: int, after: int | None
) -> tuple[SnapshotLine, ...]:
    """Return a page of snapshots with their figures, the last recorded first."""
    from sqlalchemy import select

    table = tables().snapshots
    columns = ("position", "id", "name", "version", "timestamp", "commit_hash", "parameter_count")
    wanted = select(*(table.c[each] for each in columns)).where(table.c.current)
    if name is not None:
        wanted = wanted.where(table.c.name == name)
    if after is not None:
        wanted = wanted.where(table.c.position < after)
    rows = connection.execute(wanted.order_by(table.c.position.desc()).limit(limit)).all()
    figures = _figures(connection, [row.position for row in rows])
    return tuple(_line(row, figures.get(row.position, {})) for row in rows)


def _line(row: Row[Any], metrics: dict[str, float]) -> SnapshotLine:
    return SnapshotLine(
        name=row.name,
        version=row.version,
        id=row.id,
        timestamp=row.timestamp,
        commit_hash=row.commit_hash,
        position=row.position,
        parameter_count=None if row.parameter_count is None else int(row.parameter_count),
        metrics=metrics,
    )


def _figures(connection: Connection, positions: Sequence[int]) -> dict[int, dict[str, float]]:
    table = tables().figures
    found: dict[int, dict[str, float]] = {}
    for start in range(0, len(positions), _BATCH):
        some = positions[start : start + _BATCH]
        wanted = table.select().where(table.c.position.in_(some)).order_by(table.c.metric)
        for row in connection.execute(wanted):
            found.setdefault(row.position, {})[row.metric] = row.value
    return found


def names(connection: Connection, limit: int, after: str) -> tuple[str, ...]:
    """Return the names that come after one in the alphabet."""
    table = tables().snapshots
    return tuple(_distinct(connection, table.c.name, table.c.current, limit, after))


def metrics(connection: Connection, name: str | None) -> tuple[str, ...]:
    """Return the metrics of all models, or of one."""
    from sqlalchemy import true

    table = tables().figures
    which = true() if name is None else table.c.name == name
    return tuple(_distinct(connection, table.c.metric, which))


def _distinct(
    connection: Connection,
    column: ColumnElement[str],
    which: ColumnElement[bool],
    limit: int | None = None,
    after: str = "",
) -> Iterator[str]:
    """Step through the different values of a column: as many seeks as there are values."""
    from sqlalchemy import func, select

    found = 0
    while limit is None or found < limit:
        following = select(func.min(column)).where(which, column > after)
        value = connection.execute(following).scalar()
        if value is None:
            return
        yield value
        after, found = value, found + 1


def history(connection: Connection, name: str, metric: str, limit: int) -> tuple[Past, ...]:
    """Return the newest values of a metric, oldest first."""
    from sqlalchemy import select

    figures, table = tables().figures, tables().snapshots
    wanted = (
        select(
            table.c.version,
            figures.c.timestamp,
            figures.c.value,
            figures.c.standard_error,
            figures.c.n,
        )
        .join(table, table.c.position == figures.c.position)
        .where(figures.c.name == name, figures.c.metric == metric)
        .order_by(figures.c.timestamp.desc(), figures.c.position.desc())
        .limit(limit)
    )
    rows = reversed(connection.execute(wanted).all())
    return tuple(
        Past(row.version, metric, row.value, row.timestamp, row.standard_error, row.n)
        for row in rows
    )


def best(
    connection: Connection, metric: str, highest: bool, limit: int
) -> tuple[tuple[str, float], ...]:
    """Return the keys with the best values of a metric; of equal ones the first recorded first."""
    from sqlalchemy import select

    figures, table = tables().figures, tables().snapshots
    value = figures.c.value.desc() if highest else figures.c.value
    wanted = (
        select(table.c.name, table.c.version, figures.c.value)
        .join(table, table.c.position == figures.c.position)
        .where(figures.c.metric == metric)
        .order_by(value, figures.c.position)
        .limit(limit)
    )
    return tuple((f"{row.name}{AT}{row.version}", row.value) for row in connection.execute(wanted))


def results(connection: Connection, kind: str, limit: int, skipped: int) -> Sequence[Row[Any]]:
    """Return the rows of the last results of a kind, the newest first."""
    table = tables().results
    wanted = table.select().where(table.c.kind == kind).order_by(table.c.position.desc())
    return connection.execute(wanted.offset(skipped).limit(limit)).all()


def count_snapshots(connection: Connection) -> int:
    """Count the snapshots that stand."""
    from sqlalchemy import func, select

    table = tables().snapshots
    counted = select(func.count()).select_from(table).where(table.c.current)
    return int(connection.execute(counted).scalar() or 0)


def count_results(connection: Connection, kind: str) -> int:
    """Count the results of a kind."""
    from sqlalchemy import func, select

    table = tables().results
    counted = select(func.count()).select_from(table).where(table.c.kind == kind)
    return int(connection.execute(counted).scalar() or 0)


def everything(connection: Connection) -> Iterator[tuple[type[Kept], str, Row[Any]]]:
    """Step through all rows that hold a record, with what each is."""
    for row in _all(connection, tables().snapshots):
        yield ModelSnapshot, f"{row.name}{AT}{row.version}", row
    kinds = {word: kind for kind, word in KINDS.items()}
    for row in _all(connection, tables().results):
        yield kinds[row.kind], f"{row.kind} {row.position}", row


def _all(connection: Connection, table: Table) -> Iterator[Row[Any]]:
    """Step through a table in the order of arrival, some rows at a time."""
    last = 0
    while True:
        following = table.select().where(table.c.position > last).order_by(table.c.position)
        rows = connection.execute(following.limit(_BATCH)).all()
        if not rows:
            return
        yield from rows
        last = rows[-1].position
