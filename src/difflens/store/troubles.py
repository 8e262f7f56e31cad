"""What a database complains about, told in one line: never a password, never a statement."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import StoreError
from .places import Place

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
def told(place: Place, patience: float = 0.0) -> Iterator[None]:
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
    """Give the words for a code of SQLite or PostgreSQL; None where there are none."""
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
    for code, sign in (("3D000", "does not exist"), ("53300", "too many clients"),
                       ("53300", "connection slots"), ("28000", "no pg_hba.conf entry"),
                       ("57P03", "starting up"), ("57P03", "shutting down")):  # fmt: skip
        if sign in told:
            return _POSTGRESQL[code]
    return None
