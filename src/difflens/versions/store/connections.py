"""Where a store is, how a connection to it is made, and what its database complains about."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from difflens.core.errors import MissingExtra, StoreError

if TYPE_CHECKING:
    import sqlite3

    from sqlalchemy import Connection, Engine


_SERVERS = ("postgresql", "postgres", "postgresql+psycopg")
_NETWORKS = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "fuse.sshfs", "lustre"})


class Place(NamedTuple):
    """Where a store is: a file, or the address of a server; `shown` is fit to be printed."""

    shown: str
    path: Path | None = None
    url: str = ""
    secrets: tuple[str, ...] = ()

    def without_secrets(self, told: str) -> str:
        """Take out of a text what must not be printed."""
        for secret in self.secrets:
            told = told.replace(secret, "***")
        return told


def place_of(url: str) -> Place:
    """Read `sqlite:///PATH`, a bare path or `postgresql://USER:PASSWORD@HOST/DATABASE`."""
    scheme, separator, rest = str(url).partition("://")
    if not separator:
        return _file_place(str(url))
    if scheme == "sqlite":
        return _file_place(unquote(rest.removeprefix("/")))
    if scheme in _SERVERS:
        return _server_place(rest)
    raise StoreError(
        f"{scheme}://...", "is no store that is known", hint="sqlite:///PATH or postgresql://..."
    )


def _file_place(path: str) -> Place:
    if not path or path == ":memory:" or "\0" in path:
        raise StoreError(path or "sqlite://", "names no file", hint="sqlite:///PATH")
    found = Path(path).expanduser()
    return Place(str(found), found)


def _server_place(rest: str) -> Place:
    try:
        parts = urlsplit(f"postgresql://{rest}")
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        raise StoreError("postgresql://...", "is no address", hint="postgresql://...") from None
    shown = f"postgresql://{parts.hostname or ''}{port}{parts.path}"
    given = [
        parts.password or "",
        *(
            each.partition("=")[2]
            for each in parts.query.split("&")
            if "password" in each.partition("=")[0]
        ),
    ]
    secrets = {form for each in given if each for form in (each, unquote(each))}
    return Place(shown, None, f"postgresql+psycopg://{rest}", tuple(sorted(secrets, key=len))[::-1])


def on_network(path: Path) -> str | None:
    """Name the network file system a file lies on, which cannot keep SQLite's locks."""
    try:
        mounts = Path("/proc/self/mounts").read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    here, found = os.path.realpath(path), ("", "")
    for line in mounts:
        folder, kind = line.split(" ")[1:3]
        folder = folder.replace("\\040", " ")
        inside = here == folder or here.startswith(folder.rstrip("/") + "/")
        if inside and len(folder) >= len(found[0]):
            found = folder, kind
    return found[1] if found[1] in _NETWORKS else None


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
    """Raise, before anything is written, if this is not a store."""
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


_READ_ONLY = "cannot be written: the file or its folder is read-only"
_FULL = "the disk is full, nothing of this was recorded"
_DAMAGED = "is damaged"
_SQLITE = {
    "SQLITE_BUSY": "another program holds it",
    "SQLITE_LOCKED": "another program holds it",
    "SQLITE_NOTADB": "is no SQLite database",
    "SQLITE_CORRUPT": _DAMAGED,
    "SQLITE_CANTOPEN": "cannot be opened",
    "SQLITE_READONLY": _READ_ONLY,
    "SQLITE_PERM": _READ_ONLY,
    "SQLITE_FULL": _FULL,
    "SQLITE_IOERR": "the disk failed, nothing of this was recorded",
    "SQLITE_TOOBIG": "this is larger than a database holds",
    "SQLITE_NOMEM": "there is not enough memory for it",
}
_POSTGRESQL = {
    "28P01": "the user name or the password is wrong",
    "28000": "the server lets nobody in by that name, from here, or without TLS",
    "3D000": "there is no database of that name",
    "53100": _FULL,
    "53200": "the server has not enough memory for it",
    "53300": "the server takes no more connections",
    "55P03": "another program holds it",
    "57P01": "the server is shutting down",
    "57P03": "the server is starting or shutting down",
    "25006": "cannot be written: the server is read-only",
    "42501": "the user may not do that there",
}


@contextmanager
def as_store_errors(place: Place, patience: float = 0.0) -> Iterator[None]:
    """Tell every trouble of the database as a `StoreError`."""
    import sqlite3

    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except UnicodeDecodeError as error:  # SQLite found bytes where text must be
        raise _store_error(place, error, patience) from error
    except (SQLAlchemyError, sqlite3.Error) as error:
        raise _store_error(place, getattr(error, "orig", None) or error, patience) from error


def _store_error(place: Place, cause: Any, patience: float) -> StoreError:
    reason = _reason(cause)
    if reason is None:
        first = (str(cause).strip() or type(cause).__name__).splitlines()[0]
        lead = "cannot be used" if place.path else "the server cannot be reached"
        reason = f"{lead}: {place.without_secrets(first.rpartition('failed: ')[2])}"
    hint = ""
    if reason == "another program holds it":
        reason = f"{reason}; waited {patience:g} s"
        hint = "try again when that one is done"
    if reason == _DAMAGED:
        hint = "restore it from a backup; `sqlite3 FILE .recover` saves what can be read"
    return StoreError(place.shown, reason, hint=hint)


def _reason(cause: Any) -> str | None:
    """Describe an error code of SQLite or PostgreSQL; None if it is not a known one."""
    if isinstance(cause, UnicodeDecodeError):
        return _DAMAGED
    name = getattr(cause, "sqlite_errorname", None)
    if name:
        return _SQLITE.get("_".join(name.split("_")[:2]))
    state = getattr(cause, "sqlstate", None)
    if state:
        return _POSTGRESQL.get(state)
    told = str(cause)
    if "authentication" in told:
        return _POSTGRESQL["28P01"]
    for code, sign in (
        ("3D000", "does not exist"),
        ("53300", "too many clients"),
        ("53300", "connection slots"),
        ("28000", "no pg_hba.conf entry"),
        ("57P03", "starting up"),
        ("57P03", "shutting down"),
    ):
        if sign in told:
            return _POSTGRESQL[code]
    return None
