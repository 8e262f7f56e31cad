"""Engines: how a connection is made, what is set on it, and how a transaction begins."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ..errors import MissingExtra, StoreError
from .places import Place

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

    from sqlalchemy import Connection, Engine

WRITES = "difflens_writes"  # the execution option of a connection that is going to write
_LOCK = 0x646C656E73  # one writer at a time: the number that stands for our tables
_CONNECT_S = 10


def engine_of(place: Place, *, create: bool, patience: float) -> Engine:
    """Make the engine of a place; SQLite's file is made only if it may be."""
    if place.path is None:
        return _server(place, patience)
    return _file(place.path, place, create=create, patience=patience)


def _file(path: Path, place: Place, *, create: bool, patience: float) -> Engine:
    """SQLite: write-ahead log, every commit synced, one writer at a time, waiting for others."""
    from sqlalchemy import create_engine, event
    from sqlalchemy.pool import QueuePool

    _look_at(path, place, create=create)
    mode = "rwc" if create else "rw"
    address = f"file:{quote(str(path.absolute()))}?mode={mode}"

    def connect() -> sqlite3.Connection:
        import sqlite3

        return sqlite3.connect(
            address, uri=True, timeout=patience, isolation_level=None, check_same_thread=False
        )

    engine = create_engine("sqlite://", creator=connect, poolclass=QueuePool, max_overflow=-1)

    @event.listens_for(engine, "connect")
    def _set(connection: sqlite3.Connection, _: Any) -> None:
        for setting in ("trusted_schema=OFF", "cell_size_check=ON", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {setting}")
        _log_ahead(connection, patience)
        connection.execute("PRAGMA synchronous=FULL")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        # A transaction that reads first and then writes cannot wait for another writer.
        immediate = connection.get_execution_options().get(WRITES)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")

    return engine


def _look_at(path: Path, place: Place, *, create: bool) -> None:
    """Refuse what can be told to be no store before it is touched."""
    try:
        if path.is_dir():
            raise StoreError(place.shown, "is a folder, a store is a file")
        if path.exists():
            return
        if path.with_name(f"{path.name}-wal").exists():
            raise StoreError(
                place.shown,
                "is not there, but its write-ahead log is",
                hint=f"put the database beside {path.name}-wal, or remove that",
            )
        if not create:
            raise StoreError(
                place.shown, "there is no store", hint="difflens snapshot add makes one"
            )
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(place.shown, f"cannot be made: {error.strerror or error}") from error


def _log_ahead(connection: sqlite3.Connection, patience: float) -> None:
    """Switch to the write-ahead log once; SQLite does not wait by itself for that."""
    import sqlite3

    until = time.monotonic() + patience
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(0.01)


def _server(place: Place, patience: float) -> Engine:
    """PostgreSQL: connections are tried before use, writers wait for each other."""
    try:
        import psycopg  # noqa: F401  the driver, asked for before SQLAlchemy does
    except ImportError as error:
        raise MissingExtra("postgresql", "postgres") from error
    from sqlalchemy import create_engine, event
    from sqlalchemy.exc import ArgumentError

    try:
        engine = create_engine(
            place.url,
            pool_pre_ping=True,
            max_overflow=-1,
            hide_parameters=True,
            connect_args={"connect_timeout": _CONNECT_S, "application_name": "difflens"},
        )
    except (ArgumentError, ValueError) as error:
        raise StoreError(place.shown, "is no address of a database") from error

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        if connection.get_execution_options().get(WRITES):
            wait = max(1, round(patience * 1000))
            connection.exec_driver_sql(_PREPARE.format(wait=wait))
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")

    return engine


# What is acknowledged is on disk, also where the server's default says otherwise.
_PREPARE = """
SELECT set_config('lock_timeout', '{wait}', true),
       CASE WHEN current_setting('synchronous_commit') = 'off'
            THEN set_config('synchronous_commit', 'on', true) END
"""
