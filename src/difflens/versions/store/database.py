"""A store in a database: once `put` returns, a record is on disk; a failed one leaves no trace."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from difflens.core.errors import ModelError, SnapshotError, StoreError, UnknownModel
from difflens.core.kept import Kept
from difflens.diffs.evidence.records import Past
from difflens.diffs.fingerprints.file import parse_fingerprint, to_bytes
from difflens.diffs.fingerprints.summary import parse_summary, summarise

from ..records.snapshots import AT, ModelSnapshot, SnapshotLine
from . import fingerprints, lookups
from .connections import WRITES, Place, as_store_errors, engine_of, on_network
from .tables import (
    CURRENT,
    KINDS,
    KNOWN,
    NO_SPREAD,
    VERSION_TABLE,
    figures_of,
    read,
    result_row,
    snapshot_row,
    spreads_of,
    tables,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from difflens.diffs.fingerprints.records import Fingerprint
    from difflens.diffs.fingerprints.summary import Summary

KeptT = TypeVar("KeptT", bound=Kept)


class Database:
    """Snapshots by name and version, and results, in SQLite or PostgreSQL.

    Writers go one at a time and wait for each other; several threads and processes may use it.
    """

    def __init__(self, place: Place, engine: Engine, patience: float) -> None:
        """Take what `open` made."""
        self.where = place.shown
        self.warnings: list[str] = []
        self._place = place
        self._engine = engine
        self._patience = patience
        self._process = os.getpid()

    @classmethod
    def open(cls, place: Place, *, create: bool, patience: float) -> Self:
        """Open it and bring its schema up to date."""
        store = cls(place, engine_of(place, create=create, patience=patience), patience)
        try:
            store._prepare()
        except BaseException:
            store.close()
            raise
        kind = on_network(place.path) if place.path else None
        if kind:
            store.warnings.append(f"{store.where} lies on {kind}: SQLite needs a local disk")
        return store

    def _prepare(self) -> None:
        with self._reading() as connection:
            found = revision(connection, self._place)
        if found == CURRENT:
            return
        with self._writing() as connection:
            if revision(connection, self._place) != CURRENT:  # another one may have been
                upgrade(connection)

    def put(
        self, record: Kept, *, replace: bool = False, fingerprint: Fingerprint | None = None
    ) -> str:
        """Keep a snapshot or a result and give its key; a snapshot with its fingerprint."""
        if fingerprint is None or not isinstance(record, ModelSnapshot):
            return self.put_all([record], replace=replace)[0]
        bodies = summarise(fingerprint).to_bytes(), to_bytes(fingerprint)
        with self._writing() as connection:
            key = self._put_snapshot(connection, record, replace)
            fingerprints.put(connection, record.name, record.version, *bodies)
            return key

    def fingerprint(self, key: str) -> Fingerprint | None:
        """Return the fingerprint of NAME@VERSION; None if it was recorded without."""
        name, _, version = key.partition(AT)
        with self._reading() as connection:
            body = fingerprints.body(connection, name, version)
        if body is None:
            return None
        with as_damage(self._place, f"the fingerprint of {key}"):
            return parse_fingerprint(body, key)

    def summaries(self) -> list[tuple[str, Summary]]:
        """Return the summaries of all fingerprints, by NAME@VERSION, the last recorded first."""
        with self._reading() as connection:
            rows = fingerprints.summaries(connection)
        with as_damage(self._place, "the summary of a fingerprint"):
            return [(key, parse_summary(body, key)) for key, body in rows]

    def put_all(self, records: Iterable[Kept], *, replace: bool = False) -> list[str]:
        """Keep all of them or none."""
        with self._writing() as connection:
            return [
                self._put_snapshot(connection, record, replace)
                if isinstance(record, ModelSnapshot)
                else _put_result(connection, record)
                for record in records
            ]

    def _put_snapshot(self, connection: Connection, snapshot: ModelSnapshot, replace: bool) -> str:
        table, figures, *_ = tables()
        row = snapshot_row(snapshot)
        former = lookups.by_key(connection, snapshot.name, snapshot.version)
        if former is not None:
            if former.digest == row["digest"]:
                return snapshot.key  # said twice: a writer that did not hear the first answer
            if not replace:
                raise SnapshotError(
                    f"{snapshot.key} is already recorded in {self.where}",
                    hint="give another version, or replace it",
                )
            is_former = table.c.position == former.position
            connection.execute(table.update().where(is_former).values(current=False))
            connection.execute(figures.delete().where(figures.c.position == former.position))
            fingerprints.drop(connection, former.position)
        inserted = connection.execute(table.insert().values(row)).inserted_primary_key
        position = inserted[0] if inserted else 0
        spreads = spreads_of(snapshot)
        found = [
            {
                "position": position,
                "name": snapshot.name,
                "timestamp": snapshot.timestamp,
                "metric": metric,
                "value": value,
                **spreads.get(metric, NO_SPREAD),
            }
            for metric, value in figures_of(snapshot).items()
        ]
        if found:
            connection.execute(figures.insert(), found)
        return snapshot.key

    def get(self, key: str) -> ModelSnapshot:
        """Return a snapshot by NAME@VERSION, or the newest of NAME."""
        name, _, version = key.partition(AT)
        with self._reading() as connection:
            row = (
                lookups.by_key(connection, name, version)
                if AT in key
                else lookups.newest(connection, name)
            )
            if row is None:
                raise UnknownModel(key, lookups.like(connection, name))
        return read(ModelSnapshot, row, self._place, f"{row.name}{AT}{row.version}")

    def find(
        self, name: str | None = None, *, limit: int = 50, after: int | None = None
    ) -> tuple[SnapshotLine, ...]:
        """List snapshots, the last recorded first; `after` is the position the last page ended."""
        with self._reading() as connection:
            return lookups.page(connection, name, limit, after)

    def drop(self, key: str) -> tuple[str, ...]:
        """Remove NAME@VERSION, or every version of NAME, and say which were."""
        name, _, version = key.partition(AT)
        with self._writing() as connection:
            found = lookups.keys(connection, name, version if AT in key else None)
            if not found:
                raise UnknownModel(key, lookups.like(connection, name))
            self._remove(connection, found)
        return tuple(f"{name}{AT}{version}" for name, version in found)

    def keep(
        self, newest: int, *, name: str | None = None, pinned: Iterable[str] = ()
    ) -> tuple[str, ...]:
        """Remove all but the newest versions of each name, or of that name, and say which were."""
        if newest < 1:
            raise SnapshotError(f"keeping {newest} versions would keep none")
        safe = set(pinned)
        with self._writing() as connection:
            old = lookups.older(connection, newest, name)
            gone = [each for each in old if f"{each[0]}{AT}{each[1]}" not in safe]
            self._remove(connection, gone)
        return tuple(f"{name}{AT}{version}" for name, version in gone)

    def _remove(self, connection: Connection, keys: Iterable[tuple[str, str]]) -> None:
        from sqlalchemy import and_

        table = tables().snapshots
        for name, version in keys:
            is_it = and_(table.c.name == name, table.c.version == version)
            connection.execute(table.delete().where(is_it))

    def names(self, *, limit: int = 100, after: str = "") -> tuple[str, ...]:
        """List the names of models, in alphabetical order."""
        with self._reading() as connection:
            return lookups.names(connection, limit, after)

    def metrics(self, name: str | None = None) -> tuple[str, ...]:
        """List the metrics that snapshots have, in alphabetical order."""
        with self._reading() as connection:
            return lookups.metrics(connection, name)

    def history(self, name: str, metric: str, *, limit: int = 1000) -> tuple[Past, ...]:
        """Return the newest values of a metric over the versions of a model, oldest first."""
        with self._reading() as connection:
            return lookups.history(connection, name, metric, limit)

    def best(self, metric: str, *, highest: bool, limit: int = 1) -> tuple[tuple[str, float], ...]:
        """Return the keys with the best values of a metric, and the values; ties by age."""
        with self._reading() as connection:
            return lookups.best(connection, metric, highest, limit)

    def results(
        self, kind: type[KeptT], *, limit: int = 5, after: int | None = None
    ) -> tuple[KeptT, ...]:
        """Return the last results of a kind, the newest first; `after` that many."""
        word = _kind(kind)
        with self._reading() as connection:
            rows = lookups.results(connection, word, limit, after or 0)
        return tuple(read(kind, row, self._place, f"{word} {row.position}") for row in rows)

    def count(self, kind: type[Kept]) -> int:
        """Count the snapshots or the results of a kind."""
        with self._reading() as connection:
            if kind is ModelSnapshot:
                return lookups.count_snapshots(connection)
            return lookups.count_results(connection, _kind(kind))

    def verify(self) -> int:
        """Read everything there is, hold it against its digest, and count it."""
        seen = 0
        with self._reading() as connection:
            if connection.dialect.name == "sqlite":
                said = connection.exec_driver_sql("PRAGMA integrity_check").scalar()
                if said != "ok":
                    raise StoreError(self.where, f"is damaged: {said}")
            for kind, what, row in lookups.everything(connection):
                read(kind, row, self._place, what)
                seen += 1
            keys = [key for key, _ in fingerprints.summaries(connection)]
        self.summaries()
        for key in keys:
            self.fingerprint(key)
        return seen

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        self.close()

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with as_store_errors(self._place, self._patience), self._connected() as connection:
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with as_store_errors(self._place, self._patience), self._connected() as connection:
            connection.execution_options(**{WRITES: True})
            with connection.begin():
                yield connection

    def _connected(self) -> Any:
        if self._process != os.getpid():  # a fork: the connections are the parent's
            self._engine.dispose(close=False)
            self._process = os.getpid()
        return self._engine.connect()


@contextmanager
def as_damage(place: Place, what: str) -> Iterator[None]:
    """Let a fingerprint that cannot be read be damage of the store."""
    try:
        yield
    except ModelError as error:
        raise StoreError(place.shown, f"{what} is damaged: {error.reason}") from error


def _put_result(connection: Connection, result: Kept) -> str:
    row = result_row(result)
    inserted = connection.execute(tables().results.insert().values(row)).inserted_primary_key
    return f"{row['kind']} {inserted[0] if inserted else 0}"


def _kind(kind: type[Kept]) -> str:
    if kind not in KINDS:
        raise SnapshotError(f"{kind.__name__} is nothing that a store keeps")
    return KINDS[kind]


_MIGRATIONS = Path(__file__).parent / "migrations"


def revision(connection: Connection, place: Place) -> str | None:
    """Return the revision of the schema, None if there is no schema yet; refuse a foreign one."""
    if connection.dialect.name == "sqlite":
        known = _is_ours(connection, place)
    else:
        asked = f"SELECT to_regclass('{VERSION_TABLE}') IS NOT NULL"
        known = bool(connection.exec_driver_sql(asked).scalar())
    if not known:
        return None
    found = connection.exec_driver_sql(f"SELECT version_num FROM {VERSION_TABLE}").scalar()  # noqa: S608  our own constant
    if found in KNOWN or found is None:
        return found
    raise StoreError(
        place.shown,
        f"its schema is {found!r}, this difflens knows up to {CURRENT}",
        hint="it was made by a newer difflens: upgrade this one",
    )


def _is_ours(connection: Connection, place: Place) -> bool:
    """Look through a file for what we did not make: it may come from anywhere."""
    listed = connection.exec_driver_sql("SELECT type, name FROM sqlite_master").all()
    for kind, name in listed:
        if kind not in ("table", "index"):
            raise StoreError(place.shown, f"holds the {kind} {name!r}, which difflens never makes")
    tables = {name for kind, name in listed if kind == "table" and not name.startswith("sqlite_")}
    if tables and VERSION_TABLE not in tables:
        raise StoreError(place.shown, "is the database of another program")
    return VERSION_TABLE in tables


def upgrade(connection: Connection) -> None:
    """Bring the schema up to date, within the transaction the connection is in."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
