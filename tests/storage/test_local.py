import errno
import os
import threading
from pathlib import Path

import pytest

from difflens.core.errors import ChangedWhileReading, UnknownName, UnreadableFile
from difflens.storage import local as files
from difflens.storage.local import File, unreadable

SIZE = 100_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(b"old" * SIZE)
    # A clock that ticks every few milliseconds would give a quick second write the same time.
    os.utime(path, ns=(1, 1))
    return path


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_bytes_come_from_their_place(path):
    file = File(path)
    buffer = bytearray(4)

    assert file.read(2, 5) == b"dol"
    assert file.read_into(1, memoryview(buffer)) == 4
    assert bytes(buffer) == b"ldol"
    assert file.size == 3 * SIZE
    file.close()


def test_a_file_cut_while_it_is_read_has_changed(path):
    file = File(path)
    file.read(0, SIZE)

    os.truncate(path, SIZE + 5)

    with pytest.raises(ChangedWhileReading, match=f"ends at byte {SIZE + 5}, it had {3 * SIZE}"):
        file.read(SIZE, 3 * SIZE)
    with pytest.raises(ChangedWhileReading, match=f"had {3 * SIZE} bytes, it has {SIZE + 5}"):
        file.confirm()
    file.close()


def test_a_file_rewritten_in_place_while_it_is_read_has_changed(path):
    file = File(path)
    first = file.read(0, SIZE)

    with path.open("r+b") as other:
        other.write(b"new" * SIZE)

    file.read(SIZE, 3 * SIZE)
    assert first[:3] == b"old"
    with pytest.raises(ChangedWhileReading, match="written to"):
        file.confirm()
    file.close()


def test_a_file_replaced_by_rename_while_it_is_read_stays_the_old_one(path):
    file = File(path)
    first = file.read(0, SIZE)

    new = path.with_name("new")
    new.write_bytes(b"new" * SIZE)
    new.rename(path)

    assert first + file.read(SIZE, 3 * SIZE) == b"old" * SIZE
    file.confirm()
    file.close()


def test_another_file_under_the_name_is_noticed_when_the_descriptor_was_given_up(path):
    file = File(path)
    file.descriptor = None
    path.unlink()

    with pytest.raises(ChangedWhileReading, match="no such file"):
        file.confirm()
    with pytest.raises(ChangedWhileReading, match="no such file"):
        file.read(0, 1)
    path.write_bytes(b"old" * SIZE)
    with pytest.raises(ChangedWhileReading):
        file.read(0, 1)
    file.close()


def test_no_more_than_64_descriptors_are_open_however_many_files(tmp_path):
    before = descriptors()
    opened = []
    for i in range(200):
        name = tmp_path / str(i)
        name.write_bytes(b"%03d" % i)
        opened.append(File(name))

    for _ in range(2):
        assert [b"%03d" % i for i in range(200)] == [file.read(0, 3) for file in opened]
        assert descriptors() - before <= files.MOST_OPEN
    for file in opened:
        file.confirm()
        file.close()
    # Fewer, where models of earlier tests that nobody closed gave theirs up to these files.
    assert descriptors() <= before


def test_the_file_read_last_keeps_its_descriptor(tmp_path):
    opened = []
    for i in range(files.MOST_OPEN + 1):
        (tmp_path / str(i)).write_bytes(b"x")
        opened.append(File(tmp_path / str(i)))
        opened[0].read(0, 1)

    assert opened[0].descriptor
    assert not opened[1].descriptor
    for file in opened:
        file.close()


def test_threads_that_fight_for_descriptors_read_the_right_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MOST_OPEN", 3)
    opened = []
    for i in range(20):
        (tmp_path / str(i)).write_bytes(bytes([i]) * 1000)
        opened.append(File(tmp_path / str(i)))
    wrong: list[object] = []

    def work(seed: int) -> None:
        for step in range(300):
            i = (seed * 7 + step * 3) % 20
            try:
                if opened[i].read(0, 1000) != bytes([i]) * 1000:
                    wrong.append(i)
            except Exception as error:  # noqa: BLE001  whatever it is, the test must fail with it
                wrong.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert wrong == []
    for file in opened:
        file.close()


def test_a_file_nobody_closed_gives_its_descriptor_back(path):
    before = descriptors()
    file = File(path)
    assert before + 1 == descriptors()

    del file

    assert before == descriptors()


def test_reading_after_closing_is_refused(path):
    file = File(path)
    file.close()

    with pytest.raises(UnreadableFile, match="after it was closed"):
        file.read(0, 1)


def test_a_relative_name_survives_a_change_of_folder(path, monkeypatch, tmp_path_factory):
    monkeypatch.chdir(path.parent)
    file = File(Path(path.name))
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    file.descriptor = None

    assert file.read(0, 3) == b"old"
    file.close()


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (errno.EACCES, "permission denied"),
        (errno.EIO, "the disk reported an error"),
        (errno.ENODEV, "no such device"),
    ],
)
def test_the_systems_refusal_is_told_in_plain_words(code, reason, tmp_path):
    assert reason == unreadable(tmp_path, OSError(code, "x")).reason


def test_a_read_the_disk_refuses_is_unreadable(path, monkeypatch):
    file = File(path)

    def fail(*_: object) -> int:
        raise OSError(errno.EIO, "x")

    monkeypatch.setattr(os, "preadv", fail)
    with pytest.raises(UnreadableFile, match="disk reported"):
        file.read(0, 1)
    file.close()


def test_short_reads_are_read_on(path, monkeypatch):
    file = File(path)
    whole = os.preadv
    monkeypatch.setattr(os, "preadv", lambda number, views, at: whole(number, [views[0][:7]], at))

    assert (b"old" * SIZE)[1:100] == file.read(1, 100)
    file.close()


def test_too_many_open_files_costs_an_older_file_its_descriptor(path, monkeypatch):
    # A pool of its own: what other tests left open would give way first.
    monkeypatch.setattr(files, "_POOL", files._Pool())
    other = path.with_name("other")
    other.write_bytes(b"x")
    file = File(path)
    opening, failures = os.open, [OSError(errno.EMFILE, "x")]

    def crowded(*given: object) -> int:
        if failures:
            raise failures.pop()
        return opening(*given)

    monkeypatch.setattr(os, "open", crowded)
    second = File(other)

    assert file.descriptor is None
    assert second.read(0, 1) == b"x"
    assert file.read(0, 3) == b"old"
    file.close()
    second.close()


def test_limits_are_the_users_or_the_defaults(path):
    file = File(path, {"rank": 3})

    assert (file.limit("rank"), file.limit("json_depth")) == (3, 64)
    with pytest.raises(UnknownName):
        file.limit("nothing")
    file.close()
