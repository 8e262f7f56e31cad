"""Runs are listed by their heads and tails: how each stands, quickly, however long it is."""

import os
import time
from pathlib import Path

import numpy as np
import pytest
from training.history.made import append, info_of, random_frames, written

from difflens.core.errors import RunError
from difflens.training.history import listing, read_history
from difflens.training.history.frame import no_layers
from difflens.training.history.listing import RunLine, is_written, line_of, run_lines
from difflens.training.history.reader import RunReader
from difflens.training.history.writer import RunWriter, file_of
from difflens.training.records.runs import Layer, RunInfo

INFO = RunInfo(layers=(Layer("a"),), scalars=("loss", "lr"))


def record(folder, losses, **how):
    writer = RunWriter(folder, INFO, **how)
    for step, loss in enumerate(losses):
        writer.append(10 * step, {"loss": loss}, no_layers(7, 1), wall_time=1e9 + step)
    return writer


def test_a_run_is_running_while_it_is_written_and_ended_when_it_was_closed(tmp_path):
    writer = record(tmp_path / "one", [3.0, 2.0])
    running = line_of(tmp_path / "one")
    writer.close()
    ended = line_of(tmp_path / "one")

    assert (running.state, ended.state) == ("running", "ended")
    assert (ended.frames, ended.first_step, ended.last_step, ended.last_loss) == (2, 0, 10, 2.0)
    assert ended.latest == "2001-09-09T01:46:41Z"
    assert ended.damage == ended.missing == ()


def test_a_run_that_was_killed_stopped_without_end(tmp_path):
    record(tmp_path / "one", [1.0])._let_go()

    assert line_of(tmp_path / "one").state == "stopped without end"


def test_a_run_that_ended_and_was_resumed_and_killed_stopped_without_end(tmp_path):
    record(tmp_path / "one", [1.0]).close()
    record(tmp_path / "one", [1.0], resume=True)._let_go()

    assert line_of(tmp_path / "one").state == "stopped without end"


def test_a_torn_tail_is_damage_of_a_run_that_stopped_and_none_of_one_that_runs(tmp_path):
    writer = record(tmp_path / "one", [1.0, 2.0])
    with writer.path.open("ab") as file:
        file.write(b"DLR1 half of a frame")
    assert line_of(tmp_path / "one").damage == ()
    writer._let_go()

    line = line_of(tmp_path / "one")
    assert line.damage == ("20 bytes at the end are incomplete",)
    assert (line.frames, line.last_loss) == (2, 2.0)


def test_a_loss_that_is_nan_is_told_and_one_that_is_missing_has_a_reason(tmp_path):
    record(tmp_path / "nan", [1.0, float("nan")]).close()
    written(tmp_path / "none", info_of(), random_frames(info_of(), 2))
    nan, none = line_of(tmp_path / "nan"), line_of(tmp_path / "none")

    assert nan.last_loss == "NaN"
    assert none.last_loss is None
    assert [each.field for each in none.missing] == ["last_loss"]
    assert RunLine.from_json(nan.to_json()) == nan


def test_the_last_loss_is_read_by_the_layout_of_its_own_frame(tmp_path):
    with RunWriter(tmp_path / "one", INFO) as writer:
        writer.append(0, {"loss": 1.0}, no_layers(7, 1))
        writer.describe(RunInfo(layers=(Layer("a"),), scalars=("other", "loss")))
        writer.append(1, {"loss": 2.0, "other": 9.0}, no_layers(7, 1))

    assert line_of(tmp_path / "one").last_loss == 2.0


def test_a_run_without_frames_and_a_file_that_is_none_are_listed_beside_the_others(tmp_path):
    record(tmp_path / "b", [1.0]).close()
    record(tmp_path / "a", []).close()
    (tmp_path / "c").mkdir()
    file_of(tmp_path / "c").write_bytes(b"garbage")
    (tmp_path / "d").mkdir()
    found = {line.name: line for line in run_lines(tmp_path)}

    assert list(found) == ["a", "b", "c"]
    assert (found["a"].frames, found["a"].last_step) == (0, None)
    assert found["c"].state == "unreadable"
    assert found["c"].damage == ("it does not begin as a run does",)


def test_a_run_named_itself_is_listed_alone_and_its_ranks_are_counted(tmp_path):
    for rank in range(3):
        written(tmp_path / "one", info_of(rank=rank, ranks=3), random_frames(info_of(), 1))

    assert [line.ranks for line in run_lines(tmp_path / "one")] == [3]


def test_a_folder_that_is_not_there_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    for name, reason in {"none": "no such folder", "file": "it is not a folder"}.items():
        with pytest.raises(RunError, match=reason):
            run_lines(tmp_path / name)
    assert run_lines(tmp_path) == []


def test_a_long_run_is_listed_without_being_read(tmp_path, monkeypatch):
    info = RunInfo(layers=tuple(Layer(f"l{i}") for i in range(100)))
    block = np.ones((7, 100), np.float32)
    with RunWriter(tmp_path / "long", info) as writer:
        for step in range(5000):
            writer.append(step, {"loss": 0.5}, block)
    read = []
    real = os.pread
    monkeypatch.setattr(
        os, "pread", lambda file, size, at: read.append(found := real(file, size, at)) or found
    )
    start = time.perf_counter()
    line = line_of(tmp_path / "long")

    assert time.perf_counter() - start < 10
    assert (line.frames, line.last_loss, line.state) == (5000, 0.5, "ended")
    assert line.size_bytes > 14_000_000
    assert sum(map(len, read)) < 10_000_000


def test_listing_does_not_keep_a_writer_from_starting(tmp_path, monkeypatch):
    """Who lists holds the lock for a moment; a training that begins then must not fail."""
    import fcntl

    record(tmp_path, [1.0]).close()
    file = os.open(file_of(tmp_path), os.O_RDONLY)
    fcntl.flock(file, fcntl.LOCK_SH)
    real = time.sleep
    monkeypatch.setattr(time, "sleep", lambda seconds: (os.close(file), real(0), seconds))
    writer = RunWriter(tmp_path, INFO, resume=True)

    assert is_written(writer.path)
    writer.close()
    assert not is_written(writer.path)


def test_a_writer_killed_right_at_the_start_is_listed_as_unreadable(tmp_path):
    record(tmp_path / "one", []).close()
    path = file_of(tmp_path / "one")
    path.write_bytes(path.read_bytes()[:50])

    line = line_of(tmp_path / "one")
    assert line.state == "unreadable"
    assert "its head is not whole yet" in line.damage[0]


def test_the_tail_is_found_behind_damage_and_many_notes(tmp_path):
    frames = random_frames(info_of(), 3)
    with RunWriter(tmp_path / "one", info_of()) as writer:
        for frame in frames:
            append(writer, frame)
        for _ in range(2000):
            writer.note("fact", "x" * 100)
    line = line_of(tmp_path / "one")

    assert (line.frames, line.last_step) == (3, frames[-1].step)
    assert listing.read_tail(writer.path).end == writer.path.stat().st_size
    with RunReader(writer.path) as reader:
        assert len(list(reader.frames())) == 3


@pytest.mark.parametrize("read", [run_lines, read_history])
def test_a_folder_that_may_not_be_read_is_refused_and_not_called_empty(read, tmp_path, monkeypatch):
    written(tmp_path / "one", info_of(), [])

    def refuse(_folder: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)

    with pytest.raises(RunError, match="one: permission denied"):
        read(tmp_path / "one")
