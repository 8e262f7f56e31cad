"""Fingerprints in a store: kept with their snapshot, gone with it, and never wrong."""

import numpy as np
import pytest

from difflens.core.errors import StoreError
from difflens.diffs.fingerprints.file import to_bytes
from difflens.diffs.fingerprints.sides import fingerprint_of, open_side
from difflens.diffs.fingerprints.summary import summarise
from difflens.versions.find import find_relatives
from difflens.versions.records.snapshots import ModelSnapshot
from difflens.versions.store import open_store
from difflens.versions.store.database import revision
from difflens.versions.store.memory import Memory
from difflens.versions.store.tables import CURRENT, tables


def fingerprint(seed, size=40):
    values = np.random.default_rng(seed).standard_normal((3, size, 50))
    model = {f"layers.{i}.w": each.astype(np.float32) for i, each in enumerate(values)}
    return fingerprint_of(open_side(model), 1, None)


def snapshot(version, **fields):
    return ModelSnapshot(name="m", version=str(version), **fields)


@pytest.fixture(params=["sqlite", "postgresql", "memory"])
def anywhere(request, tmp_path):
    if request.param == "memory":
        yield Memory()
    elif request.param == "sqlite":
        with open_store(f"sqlite:///{tmp_path}/store.db") as store:
            yield store
    else:
        server = request.getfixturevalue("server")
        url = server.fresh()
        with open_store(url) as store:
            yield store
        server.forget(url)


def test_a_fingerprint_comes_back_as_it_was_recorded(anywhere):
    made = fingerprint(0)

    key = anywhere.put(snapshot(1), fingerprint=made)

    assert to_bytes(anywhere.fingerprint(key)) == to_bytes(made)
    assert anywhere.summaries() == [(key, summarise(made))]
    assert anywhere.fingerprint("m@2") is None


def test_snapshots_without_one_have_none(anywhere):
    anywhere.put(snapshot(1))

    assert anywhere.fingerprint("m@1") is None
    assert anywhere.summaries() == []


def test_fingerprints_go_with_their_snapshots(anywhere):
    for version in range(4):
        anywhere.put(snapshot(version, timestamp=f"2025-01-0{version + 1}T00:00:00Z"),
                     fingerprint=fingerprint(version))  # fmt: skip

    anywhere.drop("m@0")
    anywhere.put(snapshot(1, commit_hash="a"), replace=True)
    anywhere.put(snapshot(2, commit_hash="a"), replace=True, fingerprint=fingerprint(9))
    keys = [key for key, _ in anywhere.summaries()]

    assert sorted(keys) == ["m@2", "m@3"]
    assert to_bytes(anywhere.fingerprint("m@2")) == to_bytes(fingerprint(9))
    anywhere.keep(1)
    assert len(anywhere.summaries()) <= 1


def test_the_same_snapshot_recorded_twice_has_one_fingerprint(anywhere):
    again = snapshot(1, timestamp="2025-01-01T00:00:00Z")
    for _ in range(2):
        anywhere.put(again, fingerprint=fingerprint(3))

    assert len(anywhere.summaries()) == 1


def test_relatives_are_found_in_any_store(anywhere):
    for version in range(5):
        anywhere.put(snapshot(version), fingerprint=fingerprint(version))

    found = find_relatives(anywhere, fingerprint(3))

    assert [each.key for each in found.relatives] == ["m@3"]
    assert (found.searched, found.unsearched) == (5, 0)


def test_a_store_of_the_first_schema_is_upgraded_and_keeps_its_snapshots(tmp_path):
    from sqlalchemy import text

    path = tmp_path / "store.db"
    with open_store(str(path)) as store:
        store.put(snapshot(1))
        with store._writing() as connection:
            for name in ("difflens_summaries", "difflens_fingerprints"):
                connection.execute(text(f"DROP TABLE {name}"))
            connection.execute(text("UPDATE difflens_version SET version_num = '0001'"))

    with open_store(str(path)) as store:
        assert store.get("m@1").version == "1"
        store.put(snapshot(2), fingerprint=fingerprint(0))
        assert [key for key, _ in store.summaries()] == ["m@2"]
        with store._reading() as connection:
            assert revision(connection, store._place) == CURRENT == "0002"


@pytest.mark.parametrize("which", ["summaries", "fingerprints"])
def test_a_damaged_body_is_reported_and_never_returned(tmp_path, which):
    with open_store(str(tmp_path / "store.db")) as store:
        store.put(snapshot(1), fingerprint=fingerprint(0))
        assert store.verify() == 1
        table = getattr(tables(), which)
        with store._writing() as connection:
            body = connection.execute(table.select()).one().body
            connection.execute(table.update().values(body=body[:-9] + body[-8:]))

        with pytest.raises(StoreError, match="damaged"):
            store.verify()
        with pytest.raises(StoreError, match="damaged"):
            find_relatives(store, fingerprint(0))
