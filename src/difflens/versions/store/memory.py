"""A store that lives as long as its process, and holds a bounded number of snapshots.

What was recorded or replaced last is dropped last; a snapshot that was pinned is never dropped.
"""

from __future__ import annotations

from collections.abc import Iterable
from threading import RLock
from typing import TypeVar

from difflens.core.errors import SnapshotError, UnknownModel
from difflens.core.kept import Kept
from difflens.diffs.evidence.records import Past
from difflens.diffs.fingerprints.records import Fingerprint
from difflens.diffs.fingerprints.summary import Summary, summarise

from ..records.snapshots import AT, ModelSnapshot, SnapshotLine
from .tables import KINDS, NO_SPREAD, figures_of, spreads_of

KeptT = TypeVar("KeptT", bound=Kept)
RESULTS = 1000  # results of a kind that are held: older ones are counted, not kept


class Memory:
    """Snapshots by name and version, and results, in memory; `capacity` None bounds nothing."""

    where = "memory"

    def __init__(self, capacity: int | None = None) -> None:
        """Begin empty."""
        self.warnings: list[str] = []
        self.dropped: dict[str, int] = {}
        self._capacity = capacity
        self._snapshots: dict[str, tuple[int, ModelSnapshot]] = {}  # the last updated last
        self._results: dict[type, list[Kept]] = {}
        self._fingerprints: dict[str, Fingerprint] = {}
        self._pinned: set[str] = set()
        self._position = 0
        self._lock = RLock()

    def put(
        self, record: Kept, *, replace: bool = False, fingerprint: Fingerprint | None = None
    ) -> str:
        """Keep a snapshot or a result and give its key; a snapshot with its fingerprint."""
        with self._lock:
            key = self.put_all([record], replace=replace)[0]
            if isinstance(record, ModelSnapshot) and fingerprint:
                self._fingerprints[key] = fingerprint
            return key

    def fingerprint(self, key: str) -> Fingerprint | None:
        """Return the fingerprint of NAME@VERSION; None if it was recorded without."""
        with self._lock:
            return self._fingerprints.get(key) if key in self._snapshots else None

    def summaries(self) -> list[tuple[str, Summary]]:
        """Return the summaries of all fingerprints, by NAME@VERSION, the last recorded first."""
        with self._lock:
            known = [(key, self.fingerprint(key)) for key in reversed(self._snapshots)]
        return [(key, summarise(each)) for key, each in known if each]

    def put_all(self, records: Iterable[Kept], *, replace: bool = False) -> list[str]:
        """Keep all of them or none."""
        every = list(records)
        with self._lock:
            if not replace:
                self._refuse(each for each in every if isinstance(each, ModelSnapshot))
            return [
                self._keep(each) if isinstance(each, ModelSnapshot) else self._note(each)
                for each in every
            ]

    def _refuse(self, snapshots: Iterable[ModelSnapshot]) -> None:
        for each in snapshots:
            former = self._snapshots.get(each.key)
            if former is not None and former[1] != each:
                said = f"{each.key} is already recorded in {self.where}"
                raise SnapshotError(said, hint="give another version, or replace it")

    def _keep(self, snapshot: ModelSnapshot) -> str:
        self._position += 1
        self._snapshots.pop(snapshot.key, None)
        self._fingerprints.pop(snapshot.key, None)
        self._snapshots[snapshot.key] = self._position, snapshot
        while self._capacity is not None and len(self._snapshots) > self._capacity:
            oldest = next(
                (key for key in self._snapshots if key not in self._pinned and key != snapshot.key),
                None,
            )
            if oldest is None:
                break
            del self._snapshots[oldest]
            self._fingerprints.pop(oldest, None)
            self._count("snapshots")
            self.warnings.append(f"{oldest} was dropped: {self._capacity} snapshots are held")
        return snapshot.key

    def _note(self, result: Kept) -> str:
        kept = self._results.setdefault(_known(type(result)), [])
        kept.append(result)
        if len(kept) > RESULTS:
            del kept[0]
            self._count(type(result).__name__)
        return f"{type(result).__name__} {len(kept)}"

    def _count(self, kind: str) -> None:
        self.dropped[kind] = self.dropped.get(kind, 0) + 1

    def pin(self, key: str) -> None:
        """Never drop that snapshot: it is a baseline."""
        self._pinned.add(self.get(key).key)

    def get(self, key: str) -> ModelSnapshot:
        """Return a snapshot by NAME@VERSION, or the newest of NAME."""
        with self._lock:
            if AT in key and key in self._snapshots:
                return self._snapshots[key][1]
            found = [] if AT in key else self._of(key)
            if not found:
                raise UnknownModel(key, self._snapshots)
            return found[-1][1]

    def _of(self, name: str | None) -> list[tuple[int, ModelSnapshot]]:
        """Return the versions of a model, the oldest first."""
        chosen = [each for each in self._snapshots.values() if name in (None, each[1].name)]
        return sorted(chosen, key=lambda each: (each[1].timestamp, each[0]))

    def find(
        self, name: str | None = None, *, limit: int = 50, after: int | None = None
    ) -> tuple[SnapshotLine, ...]:
        """List snapshots, the last recorded first; `after` is the position the last page ended."""
        with self._lock:
            chosen = [each for each in self._snapshots.values() if name in (None, each[1].name)]
        chosen.sort(key=lambda each: -each[0])
        page = [each for each in chosen if after is None or each[0] < after][:limit]
        return tuple(_line(*each) for each in page)

    def drop(self, key: str) -> tuple[str, ...]:
        """Remove NAME@VERSION, or every version of NAME, and say which were."""
        with self._lock:
            gone = [each for each in self._snapshots if key in (each, each.partition(AT)[0])]
            if not gone:
                raise UnknownModel(key, self._snapshots)
            for each in gone:
                del self._snapshots[each]
                self._fingerprints.pop(each, None)
        return tuple(gone)

    def keep(
        self, newest: int, *, name: str | None = None, pinned: Iterable[str] = ()
    ) -> tuple[str, ...]:
        """Remove all but the newest versions of each name, or of that name, and say which were."""
        if newest < 1:
            raise SnapshotError(f"keeping {newest} versions would keep none")
        safe = {*pinned, *self._pinned}
        with self._lock:
            names = dict.fromkeys(each.name for _, each in self._of(name))
            old = [each.key for own in names for _, each in self._of(own)[:-newest]]
            gone = [key for key in old if key not in safe]
            for key in gone:
                del self._snapshots[key]
                self._fingerprints.pop(key, None)
        return tuple(gone)

    def names(self, *, limit: int = 100, after: str = "") -> tuple[str, ...]:
        """List the names of models, in alphabetical order."""
        with self._lock:
            every = {each.name for _, each in self._snapshots.values()}
        return tuple(sorted(name for name in every if name > after)[:limit])

    def metrics(self, name: str | None = None) -> tuple[str, ...]:
        """List the metrics that snapshots have, in alphabetical order."""
        with self._lock:
            return tuple(sorted({m for _, each in self._of(name) for m in figures_of(each)}))

    def history(self, name: str, metric: str, *, limit: int = 1000) -> tuple[Past, ...]:
        """Return the newest values of a metric over the versions of a model, oldest first."""
        with self._lock:
            found = [
                Past(
                    each.version,
                    metric,
                    figures[metric],
                    each.timestamp,
                    **spreads_of(each).get(metric, NO_SPREAD),
                )
                for _, each in self._of(name)
                if metric in (figures := figures_of(each))
            ]
        return tuple(found[-limit:])

    def best(self, metric: str, *, highest: bool, limit: int = 1) -> tuple[tuple[str, float], ...]:
        """Return the keys with the best values of a metric, and the values; ties by age."""
        with self._lock:
            found = [
                (place, each.key, figures[metric])
                for place, each in self._snapshots.values()
                if metric in (figures := figures_of(each))
            ]
        found.sort(key=lambda each: (-each[2] if highest else each[2], each[0]))
        return tuple((key, value) for _, key, value in found[:limit])

    def results(
        self, kind: type[KeptT], *, limit: int = 5, after: int | None = None
    ) -> tuple[KeptT, ...]:
        """Return the last results of a kind, the newest first; `after` that many."""
        with self._lock:
            found = list(reversed(self._results.get(_known(kind), [])))
        start = after or 0
        return tuple(found[start : start + limit])  # type: ignore[arg-type]

    def count(self, kind: type[Kept]) -> int:
        """Count the snapshots or the results of a kind, those no longer held included."""
        with self._lock:
            if kind is ModelSnapshot:
                return len(self._snapshots)
            return len(self._results.get(kind, [])) + self.dropped.get(kind.__name__, 0)

    def close(self) -> None:
        """Nothing is open."""


def _known(kind: type[Kept]) -> type[Kept]:
    if kind not in KINDS:
        raise SnapshotError(f"{kind.__name__} is nothing that a store keeps")
    return kind


def _line(position: int, snapshot: ModelSnapshot) -> SnapshotLine:
    return SnapshotLine(
        name=snapshot.name,
        version=snapshot.version,
        id=snapshot.id,
        timestamp=snapshot.timestamp,
        commit_hash=snapshot.commit_hash,
        position=position,
        parameter_count=snapshot.architecture.parameter_count,
        metrics=figures_of(snapshot),
    )
