"""What was acknowledged stays, whatever happens to writers, servers and disks."""

import signal
from pathlib import Path

import psycopg
import pytest
from forking import hammered
from sqlalchemy import event
from sqlalchemy.exc import OperationalError
from versions.store.test_store import snap

from difflens.core.errors import DifflensError, StoreError
from difflens.versions.records.snapshots import ModelSnapshot
from difflens.versions.store import open_store

HAMMER = Path(__file__).with_name("hammer.py")
few_and_many = pytest.mark.parametrize(
    "rounds", [pytest.param(50, id="ci"), pytest.param(1000, id="full", marks=pytest.mark.slow)]
)
MOMENTS = ("before_cursor_execute", "after_cursor_execute", "commit")


@few_and_many
def test_no_acknowledged_snapshot_is_lost_to_kill_9(url, rounds):
    found = hammered(HAMMER, "kills", url, rounds)

    assert found["lost"] == []
    assert found["acknowledged"] > rounds // 5  # on a busy machine many die before they write
    assert found["slowest_open_s"] < 2


@pytest.mark.parametrize("made", [0, 1], ids=["while-it-is-made", "when-it-is-there"])
def test_a_writer_killed_at_any_call_leaves_the_old_state_or_the_new(url, made):
    found = hammered(HAMMER, "every_call", url, made)

    assert found["points"] > 8
    assert found["outcomes"][0] == made
    assert found["outcomes"][-1] == made + 1
    assert found["outcomes"] == sorted(found["outcomes"])


@pytest.mark.parametrize(
    ("number", "each"),
    [pytest.param(8, 20, id="ci"), pytest.param(16, 500, id="full", marks=pytest.mark.slow)],
)
def test_writers_wait_for_each_other_and_none_fails(url, number, each):
    found = hammered(HAMMER, "writers", url, number, each)

    assert found["troubles"] == []
    assert found["codes"] == [0]
    assert found["there"] == found["positions"] == number * each


@pytest.mark.parametrize(
    "step", [pytest.param(32768, id="ci"), pytest.param(4096, id="full", marks=pytest.mark.slow)]
)
def test_a_disk_that_fills_up_at_any_point_loses_nothing_acknowledged(tmp_path, step):
    found = hammered(HAMMER, "full", tmp_path / "store.db", step)

    assert found["outcomes"][0] == 0
    assert found["outcomes"][-1] == 6
    assert all("recorded" in line or "opened" in line for line in found["said"])


class Struck:
    """Raises at one of the calls to the database, and counts them."""

    def __init__(self, at: int, error: Exception) -> None:
        self.at, self.error, self.calls = at, error, 0

    def __call__(self, *_: object) -> None:
        self.calls += 1
        if self.calls == self.at:
            raise self.error


def faults() -> list[Exception]:
    import sqlite3

    full = sqlite3.OperationalError("database or disk is full")
    full.sqlite_errorname = "SQLITE_FULL"
    return [
        OperationalError("INSERT", {}, full),
        OperationalError("INSERT", {}, psycopg.Error("x")),
    ]


@pytest.mark.parametrize("fault", faults(), ids=["disk-full", "server-error"])
def test_a_fault_at_any_call_is_told_and_leaves_the_old_state_or_the_new(url, fault):
    with open_store(url) as store:
        store.put(snap(version="0"))
        at, done = 0, False
        while not done:
            at += 1
            strike = Struck(at, fault)
            for moment in MOMENTS:
                event.listen(store._engine, moment, strike)
            before = store_keys(url)
            try:
                store.put(snap(version=str(at), f1=0.5))
                done = strike.calls < at
            except StoreError as error:
                assert "INSERT" not in str(error)  # noqa: PT017  the message is part of the promise
            finally:
                for moment in MOMENTS:
                    event.remove(store._engine, moment, strike)

            after = store_keys(url)
            assert after - before <= {f"m@{at}"}
            assert before <= after
        assert done
        assert at > 8
        assert store.verify() == len(after)


def store_keys(url: str) -> set[str]:
    """Look from outside, where no fault strikes."""
    with open_store(url) as store:
        return {f"{line.name}@{line.version}" for line in store.find(limit=1000)}


def test_a_connection_cut_at_any_call_is_told_and_the_next_call_works(server):
    url = server.fresh()
    cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name='difflens'"
    with open_store(url) as store:
        store.put(snap(version="0"))
        at, through = 0, False
        while not through:
            at += 1
            calls = [0]

            def strike(*_: object, at: int = at, calls: list[int] = calls) -> None:
                calls[0] += 1
                if calls[0] == at:
                    server.ask(cut)

            for moment in MOMENTS:
                event.listen(store._engine, moment, strike)
            told = False
            try:
                store.put(snap(version=str(at)))
            except DifflensError:
                told = True
            for moment in MOMENTS:
                event.remove(store._engine, moment, strike)
            through = calls[0] < at

            there = {line.version for line in store.find(limit=100)}
            assert told or str(at) in there
            assert "0" in there


@pytest.mark.parametrize(
    "rounds", [pytest.param(2, id="ci"), pytest.param(50, id="full", marks=pytest.mark.slow)]
)
def test_a_server_that_is_killed_keeps_what_it_acknowledged(server, rounds):
    url, acknowledged = server.fresh(), []
    with open_store(url) as store:
        for number in range(rounds):
            acknowledged += [store.put(snap(version=f"{number}-{at}")) for at in range(5)]
            server.stop(signal.SIGQUIT)
            with pytest.raises(StoreError, match=r"cannot be reached|shutting down"):
                store.put(snap(version="while it is down"))
            server.start()

        assert store.count(ModelSnapshot) == len(acknowledged)
        assert {store.get(key).key for key in acknowledged} == set(acknowledged)
        assert store.verify() == len(acknowledged)
