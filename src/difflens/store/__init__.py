"""Where snapshots and results are kept: SQLite or PostgreSQL, one code for both."""

from __future__ import annotations

from .database import Database
from .places import place_of

DEFAULT_STORE = ".difflens/store.db"
PATIENCE_S = 30.0


def open_store(url: str, *, create: bool = True, patience: float = PATIENCE_S) -> Database:
    """Open a store by `sqlite:///PATH`, a bare path or `postgresql://...`; its schema is current.

    `create` makes one where none is; `patience` is how many seconds to wait for other writers.
    """
    return Database.open(place_of(url), create=create, patience=patience)
