"""Where snapshots and results are kept: SQLite or PostgreSQL, one code for both."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol, TypeVar

from difflens.core.kept import Kept
from difflens.diffs.evidence.records import Past

from ..records.snapshots import ModelSnapshot, SnapshotLine
from .connections import place_of
from .database import Database

if TYPE_CHECKING:
    from difflens.diffs.fingerprints.records import Fingerprint
    from difflens.diffs.fingerprints.summary import Summary

DEFAULT_STORE = ".difflens/store.db"
PATIENCE_S = 30.0
KeptT = TypeVar("KeptT", bound=Kept)


class Store(Protocol):
    """Snapshots by name and version, and the results made of them; several threads may use it.

    What `put` returned for is on disk. Nothing is dropped unless it is asked for.
    """

    where: str  # what it is called in words to people: never with a password
    warnings: list[str]

    def put(
        self, record: Kept, *, replace: bool = False, fingerprint: Fingerprint | None = None
    ) -> str:
        """Keep a snapshot or a result and give its key; a snapshot with its fingerprint.

        A snapshot whose NAME@VERSION is taken by another one is refused, or with `replace`
        stands in its place, the former one behind it.
        """

    def put_all(self, records: Iterable[Kept], *, replace: bool = False) -> list[str]:
        """Keep all of them or none."""

    def get(self, key: str) -> ModelSnapshot:
        """Return a snapshot by NAME@VERSION, or the newest of NAME; `UnknownModel` if none is."""

    def find(
        self, name: str | None = None, *, limit: int = 50, after: int | None = None
    ) -> tuple[SnapshotLine, ...]:
        """List snapshots, the last recorded first; `after` is the position the last page ended."""

    def fingerprint(self, key: str) -> Fingerprint | None:
        """Return the fingerprint of NAME@VERSION; None if it was recorded without."""

    def summaries(self) -> list[tuple[str, Summary]]:
        """Return the summaries of all fingerprints, by NAME@VERSION, the last recorded first."""

    def drop(self, key: str) -> tuple[str, ...]:
        """Remove NAME@VERSION, or every version of NAME, and say which were."""

    def keep(
        self, newest: int, *, name: str | None = None, pinned: Iterable[str] = ()
    ) -> tuple[str, ...]:
        """Remove all but the newest versions of each name, or of that name, and say which were."""

    def names(self, *, limit: int = 100, after: str = "") -> tuple[str, ...]:
        """List the names of models, in alphabetical order."""

    def metrics(self, name: str | None = None) -> tuple[str, ...]:
        """List the metrics that snapshots have, in alphabetical order."""

    def history(self, name: str, metric: str, *, limit: int = 1000) -> tuple[Past, ...]:
        """Return the newest values of a metric over the versions of a model, oldest first."""

    def best(self, metric: str, *, highest: bool, limit: int = 1) -> tuple[tuple[str, float], ...]:
        """Return the keys with the best values of a metric, and the values; ties by age."""

    def results(
        self, kind: type[KeptT], *, limit: int = 5, after: int | None = None
    ) -> tuple[KeptT, ...]:
        """Return the last results of a kind, the newest first; `after` that many."""

    def count(self, kind: type[Kept]) -> int:
        """Count the snapshots or the results of a kind."""

    def close(self) -> None:
        """Close the connections."""


def open_store(url: str, *, create: bool = True, patience: float = PATIENCE_S) -> Database:
    """Open a store by `sqlite:///PATH`, a bare path or `postgresql://...`; its schema is current.

    `create` makes one where none is; `patience` is how many seconds to wait for other writers.
    """
    return Database.open(place_of(url), create=create, patience=patience)
