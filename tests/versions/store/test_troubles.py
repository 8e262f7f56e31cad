"""A store that cannot be used says so in one line, leaves the file alone and hides passwords."""

import os
import pwd
import random
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import suppress

import pytest
from versions.store.servers import PASSWORD, QUOTED
from versions.store.test_store import snap

from difflens.core.errors import DifflensError, MissingExtra, StoreError
from difflens.versions.records.snapshots import ModelSnapshot
from difflens.versions.store import open_store
from difflens.versions.store.connections import on_network, place_of
from difflens.versions.store.tables import CURRENT, KNOWN, tables

SHORT = 0.2  # seconds of patience where waiting is the point


def refusal(url: str, **options) -> StoreError:
    with pytest.raises(StoreError) as told:
        open_store(str(url), **{"patience": SHORT, **options})
    assert "\n" not in str(told.value)
    return told.value


@pytest.fixture
def file(tmp_path):
    """A store with two snapshots, closed."""
    path = tmp_path / "store.db"
    with open_store(str(path)) as store:
        store.put_all([snap(version="1", f1=0.5), snap(version="2", f1=0.6)])
    return path


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("store.db", "store.db"),
        ("sqlite:///store.db", "store.db"),
        ("sqlite:////tmp/a/store.db", "/tmp/a/store.db"),  # noqa: S108  never opened
        ("sqlite:///with%20space.db", "with space.db"),
        ("odd%name.db", "odd%name.db"),
    ],
)
def test_a_file_is_named_by_its_path_or_as_a_url(url, path):
    assert str(place_of(url).path) == path


@pytest.mark.parametrize("name", ["percent%41.db", "question?.db", "hash#.db", "sp ace.db", "é.db"])
def test_a_file_of_any_name_can_be_a_store(tmp_path, name):
    path = tmp_path / "new folder" / name

    with open_store(str(path)) as store:
        store.put(snap())

    assert path.is_file()
    with open_store(str(path)) as store:
        assert store.get("m@1")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("sqlite://", "sqlite://: names no file"),
        ("sqlite:///:memory:", ":memory:: names no file"),
        ("", "sqlite://: names no file"),
        ("mysql://me:pass@host/db", "mysql://...: is no store that is known"),
        ("postgresql://me:pass@host:notaport/db", "postgresql://...: is no address"),
        ("postgresql://[::1", "postgresql://...: is no address"),
    ],
)
def test_an_address_that_is_none_is_refused(url, said):
    error = refusal(url)

    assert str(error) == said
    assert "pass" not in f"{error} {error.hint}"


def test_an_empty_file_becomes_a_store(tmp_path):
    path = tmp_path / "store.db"
    path.touch()

    with open_store(str(path)) as store:
        store.put(snap())

        assert store.get("m")


def test_where_none_is_to_be_made_there_must_be_one(tmp_path):
    error = refusal(tmp_path / "store.db", create=False)

    assert str(error).endswith("there is no store")
    assert error.hint == "difflens snapshot add makes one"
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_no_store(tmp_path):
    assert str(refusal(tmp_path)).endswith("is a folder, a store is a file")


def test_a_file_in_the_way_of_the_folder_is_told(tmp_path):
    (tmp_path / "file").touch()

    assert "cannot be made" in str(refusal(tmp_path / "file" / "store.db"))


def damaged(path, change) -> bytes:
    """Change the bytes of a file, and give them."""
    data = bytearray(path.read_bytes())
    change(data)
    path.write_bytes(data)
    return bytes(data)


def flipped(data: bytearray) -> None:
    data[:100] = bytes(each ^ 0xFF for each in data[:100])


def text(data: bytearray) -> None:
    data[:] = b"name,version\nm,1\n" * 100


@pytest.mark.parametrize("change", [flipped, text])
def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(file, change):
    left = damaged(file, change)

    assert str(refusal(file)).endswith("is no SQLite database")
    assert file.read_bytes() == left


def test_a_damaged_page_is_told_when_it_is_read(file):
    damaged(file, lambda data: data.__setitem__(slice(4096, None), bytes(len(data) - 4096)))

    with pytest.raises(StoreError, match="is damaged"), open_store(str(file)) as store:
        store.get("m@1")


@pytest.mark.parametrize("flips", [60, pytest.param(1000, marks=pytest.mark.slow)])
def test_no_flipped_bit_changes_what_is_read_unseen(file, flips):
    """A flip is told, or touches nothing that was recorded (L14)."""
    good = file.read_bytes()
    with open_store(str(file)) as store:
        recorded = {key: store.get(key) for key in ("m@1", "m@2")}
    draw = random.Random(7)
    told = 0
    for _ in range(flips):
        data = bytearray(good)
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        for stale in file.parent.iterdir():
            stale.unlink()
        file.write_bytes(data)
        try:
            with open_store(str(file), create=False, patience=SHORT) as store:
                store.verify()
                found = {key: store.get(key) for key in recorded}
        except DifflensError:  # the file is damaged, or the key itself was hit
            told += 1
        else:
            assert found == recorded

    assert told > 0


def test_a_newer_schema_is_refused_and_not_touched(url):
    with open_store(url) as store, store._writing() as connection:
        connection.exec_driver_sql("UPDATE difflens_version SET version_num = '9999'")

    error = refusal(url)

    assert f"its schema is '9999', this difflens knows up to {CURRENT}" in str(error)
    assert "upgrade" in error.hint


def test_the_known_revisions_are_those_of_the_folder_and_end_in_the_tables(url):
    from alembic.autogenerate import compare_metadata
    from alembic.config import Config
    from alembic.migration import MigrationContext
    from alembic.script import ScriptDirectory

    from difflens.versions.store import database

    config = Config()
    config.set_main_option("script_location", str(database._MIGRATIONS))
    found = list(ScriptDirectory.from_config(config).walk_revisions())
    assert tuple(each.revision for each in reversed(found)) == KNOWN

    with open_store(url) as store, store._reading() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": "difflens_version"})
        differences = compare_metadata(context, tables().snapshots.metadata)

    assert [each for each in differences if each[0] != "remove_index"] == []


def test_the_database_of_another_program_is_refused(tmp_path):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE runs (id)")
    connection.close()
    before = path.read_bytes()

    assert str(refusal(path)).endswith("is the database of another program")
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("runs",)]
    connection.close()
    assert len(path.read_bytes()) == len(before)


@pytest.mark.parametrize(
    "planted",
    [
        "CREATE TRIGGER t AFTER INSERT ON difflens_snapshots BEGIN SELECT load_extension('x'); END",
        "CREATE VIEW v AS SELECT load_extension('x')",
    ],
    ids=["trigger", "view"],
)
def test_a_file_with_triggers_or_views_is_refused(file, planted):
    connection = sqlite3.connect(file)
    connection.execute(planted)
    connection.commit()
    connection.close()

    assert "which difflens never makes" in str(refusal(file))


def test_a_server_may_be_shared_with_other_programs(server):
    url = server.fresh()
    import psycopg

    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE runs (id int)")
        connection.execute("CREATE TABLE alembic_version (version_num text)")

    with open_store(url) as store:
        store.put(snap())

        assert store.get("m")


def test_a_log_without_its_database_is_refused(file):
    shutil.copy(file, file.with_name("store.db-wal"))
    file.unlink()

    assert "is not there, but its write-ahead log is" in str(refusal(file))


def test_a_store_held_by_another_writer_is_waited_for_and_then_told(store, url):
    with open_store(url, patience=SHORT) as other, store._writing() as connection:
        connection.exec_driver_sql("SELECT 1")
        with pytest.raises(StoreError, match=r"another program holds it; waited 0\.2 s"):
            other.put(snap())
        assert other.count(ModelSnapshot) == 0  # readers need not wait

    assert store.put(snap()) == "m@1"


def test_opening_at_once_makes_one_schema(url):
    failures = []

    def work(number: int) -> None:
        try:
            with open_store(url, patience=20) as store:
                store.put(snap(version=str(number)))
        except Exception as error:  # noqa: BLE001  told below
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    with open_store(url) as store:
        assert store.count(ModelSnapshot) == 6


READ_ONLY = """
import os, sys
import alembic.command, sqlite3, sqlalchemy.dialects.sqlite
from difflens.core.errors import StoreError
from difflens.versions.store import open_store
from difflens.versions.records.snapshots import ModelSnapshot
os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[2]))
try:
    open_store(sys.argv[1], patience=0.2).put(ModelSnapshot(name="m", version="9"))
except StoreError as error:
    print(error)
"""


@pytest.mark.parametrize("what", ["file", "folder", "missing"])
def test_what_may_not_be_written_is_told(tmp_path_factory, what):
    if os.getuid():
        pytest.skip("only root can become somebody who may not write")
    folder = tmp_path_factory.mktemp("read-only")
    for each in [folder, *folder.parents][:3]:
        each.chmod(0o755)
    path = folder / "store.db"
    if what != "missing":
        open_store(str(path)).close()
        path.chmod(0o444 if what == "file" else 0o666)
    nobody = str(pwd.getpwnam("nobody").pw_uid)

    done = subprocess.run(
        [sys.executable, "-c", READ_ONLY, path, nobody], capture_output=True, text=True, check=True
    )

    assert done.stdout.count("\n") == 1
    assert str(path) in done.stdout
    assert any(word in done.stdout for word in ("read-only", "cannot be opened"))


def test_a_full_database_says_so_and_keeps_what_was_acknowledged(file):
    with open_store(str(file)) as store:
        with store._reading() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
            connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreError, match="the disk is full, nothing of this was recorded"):
            store.put(ModelSnapshot(name="m", version="3", metadata={"a": "x" * 100_000}))

        assert store.count(ModelSnapshot) == 2
        assert store.verify() == 2


def test_a_password_is_printed_nowhere(server):
    right = server.fresh()
    wrong = right.replace(QUOTED, "wr0ng%2Fpass")
    addresses = {
        wrong: "the user name or the password is wrong",
        right.replace("/test_", "/nothing_"): "there is no database of that name",
        right.replace(f":{server.port}", ":1"): "the server cannot be reached: Connection refused",
        right.replace("lens:", "nobody:"): "the user name or the password is wrong",
        f"{right}?sslmode=require": "cannot be reached",
        f"{right}?sslmode=nonsense&password={QUOTED}": "sslmode",
    }

    for address, said in addresses.items():
        error = refusal(address)
        everything = f"{error!r} {error} {error.hint} {error.where}"

        assert said in everything
        for secret in (PASSWORD, QUOTED, "wr0ng/pass", "wr0ng%2Fpass"):
            assert secret not in everything
    with open_store(right) as store:
        assert PASSWORD not in store.where


def test_a_server_without_free_connections_says_so(server):
    import psycopg

    url, held = server.fresh(), []
    with open_store(url):
        pass
    try:
        with suppress(psycopg.OperationalError):
            while True:
                held.append(psycopg.connect(url))
        assert "the server takes no more connections" in str(refusal(url))
    finally:
        for connection in held:
            connection.close()


def test_without_the_driver_the_command_that_installs_it_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)

    with pytest.raises(MissingExtra, match=r"postgresql needs an extra: pip install 'difflens\[po"):
        open_store("postgresql://host/db")


def test_a_network_disk_is_warned_of(tmp_path, monkeypatch):
    line = f"server:/export {tmp_path} nfs4 rw 0 0\n"
    monkeypatch.setattr(
        "difflens.versions.store.connections.Path.read_text",
        lambda *_, **__: f"x / ext4 rw\n{line}",
    )

    assert on_network(tmp_path / "store.db") == "nfs4"
    assert on_network(tmp_path.parent / "store.db") is None
    with open_store(str(tmp_path / "store.db")) as store:
        assert "lies on nfs4: SQLite needs a local disk" in store.warnings[0]


IMPORTS = """
import sys
from difflens.versions.store import open_store
with open_store(sys.argv[1]) as store:
    store.find()
print("alembic" in sys.modules)
"""


def test_migrations_are_imported_only_where_the_schema_is_not_current(tmp_path):
    command = [sys.executable, "-c", IMPORTS, str(tmp_path / "store.db")]

    said = [subprocess.check_output(command, text=True).strip() for _ in range(2)]

    assert said == ["True", "False"]
