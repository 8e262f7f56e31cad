"""What a writer was given comes back; what it may not do, it refuses."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from training.history.made import append, bits, info_of, plans, random_frames, read, written

from difflens.core.errors import RunError
from difflens.training.history import open_run
from difflens.training.history.frame import is_missing, no_layers
from difflens.training.history.reader import RunReader
from difflens.training.history.writer import RunWriter, file_of
from difflens.training.records.runs import Layer, RunInfo


@given(plans())
def test_any_frames_come_back_bit_for_bit(tmp_path_factory, plan):
    path = written(tmp_path_factory.mktemp("run") / "r", plan.info, plan.frames)

    with RunReader(path) as reader:
        assert [bits(each) for each in reader.frames()] == [bits(each) for each in plan.frames]
        assert reader.info == plan.info
        assert (reader.damage, reader.tail_bytes) == ([], 0)


@given(plans(), st.integers(1, 5))
def test_frames_written_together_are_the_bytes_of_frames_written_one_by_one(
    tmp_path_factory, plan, together
):
    folder = tmp_path_factory.mktemp("run")
    single = written(folder / "single", plan.info, plan.frames, announce=False)
    with RunWriter(folder / "many", plan.info, announce=False) as writer:
        for start in range(0, len(plan.frames), together):
            writer.append_all(plan.frames[start : start + together])

    assert writer.path.read_bytes() == single.read_bytes()
    assert writer.sequence == len(plan.frames)


def test_frames_written_together_are_all_there_or_none_is(tmp_path):
    frames = random_frames(info_of(), 6)
    with RunWriter(tmp_path, info_of()) as writer:
        writer.append_all(frames[:2])
        for bad in (
            frames[2]._replace(layers=no_layers(3, 2)),
            frames[2]._replace(step=2**63),
            frames[1],
        ):
            with pytest.raises(RunError):
                writer.append_all([bad, *frames[3:5]])
        writer.append_all(frames[2:])

    assert read(writer.path) == [bits(each) for each in frames]


def test_what_is_given_by_name_lands_in_its_place_and_the_rest_is_missing(tmp_path):
    with RunWriter(tmp_path, info_of()) as writer:
        writer.append(1, {"scalar1": 7.0}, no_layers(2, 3))

    frame = next(open_run(tmp_path).frames())
    assert frame.scalars[1] == 7.0
    assert is_missing(frame.scalars).tolist() == [True, False]
    assert is_missing(frame.layers).all()


def test_a_scalar_that_the_layout_does_not_have_is_told_not_dropped(tmp_path):
    with RunWriter(tmp_path, info_of()) as writer:
        with pytest.raises(RunError, match="the scalar 'other' is not in the run's layout"):
            writer.append(1, {"scalar1": 7.0, "other": 1.0}, no_layers(2, 3))
        assert writer.sequence == 0


def test_a_run_that_is_there_is_an_error(tmp_path):
    written(tmp_path, info_of(), [])

    with pytest.raises(RunError, match="there is a run already") as caught:
        RunWriter(tmp_path, info_of())
    assert caught.value.hint == "resume=True continues it, overwrite=True replaces it"


def test_resuming_continues_the_numbers(tmp_path):
    frames = random_frames(info_of(), 6)
    path = written(tmp_path, info_of(), frames[:2])
    written(tmp_path, info_of(), frames[2:], resume=True)

    assert read(path) == [bits(each) for each in frames]
    with RunReader(path) as reader:
        list(reader.frames())
        assert [note.what for note in reader.notes] == ["begun", "ended", "resumed", "ended"]


@pytest.mark.parametrize("torn", [1, 23, 24, 30])
def test_resuming_cuts_a_torn_tail_off(tmp_path, torn):
    frames = random_frames(info_of(), 3)
    path = written(tmp_path, info_of(), frames[:2], announce=False)
    os.truncate(path, path.stat().st_size - torn)
    kept = len(read(path))
    with RunWriter(tmp_path, info_of(), resume=True) as writer:
        assert writer.sequence == kept == 1
        append(writer, frames[2])

    with RunReader(path) as reader:
        assert [frame.sequence for frame in reader.frames()] == [0, 1]
        assert (reader.damage, reader.tail_bytes) == ([], 0)


def test_resuming_works_where_the_writer_was_killed_at_any_byte_of_its_beginning(tmp_path):
    path = written(tmp_path, info_of(), [])
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with RunWriter(tmp_path, info_of(), resume=True) as writer:
            assert writer.sequence == 0
            append(writer, random_frames(info_of(), 1)[0])
        assert len(read(path)) == 1, size


def test_resuming_something_else_leaves_it_alone(tmp_path):
    path = file_of(tmp_path)
    path.write_bytes(b"the diary of somebody, which is no run" * 10)

    with pytest.raises(RunError, match="does not begin as a run does"):
        RunWriter(tmp_path, info_of(), resume=True)
    assert path.read_bytes() == b"the diary of somebody, which is no run" * 10


def test_overwriting_begins_anew_and_drops_the_files_of_other_ranks(tmp_path):
    for rank in range(3):
        written(tmp_path, info_of(rank=rank, ranks=3), random_frames(info_of(), 3))
    with RunWriter(tmp_path, info_of(ranks=2), overwrite=True) as writer:
        assert writer.sequence == 0

    assert sorted(path.name for path in tmp_path.iterdir()) == ["frames-000.dlr", "frames-001.dlr"]
    assert read(file_of(tmp_path)) == []


@pytest.mark.parametrize("how", ["resume", "overwrite"])
def test_a_second_writer_is_refused_and_harms_nothing(tmp_path, how):
    with RunWriter(tmp_path, info_of()) as writer:
        append(writer, random_frames(info_of(), 1)[0])
        with pytest.raises(RunError, match="another process is writing this run"):
            RunWriter(tmp_path, info_of(), **{how: True})
        assert len(read(writer.path)) == 1


def forked(work) -> str:
    """Run the work in a fork and give what it raised."""
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        try:
            work()
            os.write(theirs, b"nothing")
        except RunError as error:
            os.write(theirs, str(error).encode())
        finally:
            os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as stream:
        said = stream.read().decode()
    os.waitpid(child, 0)
    return said


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_a_fork_may_not_write_and_does_not_end_the_run(tmp_path):
    with RunWriter(tmp_path, info_of()) as writer:
        frame = random_frames(info_of(), 1)[0]
        append(writer, frame)

        assert "a fork of it may not" in forked(lambda: append(writer, frame))
        assert forked(writer.close) == "nothing"
        assert append(writer, frame) == 1


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_a_fork_that_outlives_its_writer_does_not_keep_the_lock(tmp_path):
    """A worker of a data loader is often the last to notice that the training is gone."""
    ours, theirs = os.pipe()
    writer = RunWriter(tmp_path, info_of())
    child = os.fork()
    if not child:
        os.close(theirs)
        os.read(ours, 1)  # until the parent lets it go
        os._exit(0)
    os.close(ours)
    try:
        writer.close()
        RunWriter(tmp_path, info_of(), resume=True).close()
    finally:
        os.close(theirs)
        os.waitpid(child, 0)


FULL = """
import resource, sys
import numpy as np
from difflens.core.errors import RunError
from difflens.training.history.writer import RunWriter
from difflens.training.records.runs import Layer, RunInfo

info = RunInfo(layers=tuple(Layer(f"l{i}") for i in range(500)))
writer = RunWriter(sys.argv[1], info)
size = writer.path.stat().st_size
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100_000, hard))
troubles, sizes = 0, set()
for step in range(20):
    try:
        writer.append(step, {}, np.full((7, 500), step, np.float32))
    except RunError as error:
        assert "too large" in str(error), error
        troubles += 1
        sizes.add(writer.path.stat().st_size)
assert len(sizes) == 1, sizes
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
writer.append(20, {}, np.full((7, 500), 20, np.float32))
writer.close()
print(troubles)
"""


def test_a_full_disk_leaves_no_torn_record_and_writing_goes_on_when_there_is_room(tmp_path):
    command = [sys.executable, "-c", FULL, tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lost = int(done.stdout)

    assert lost > 10
    with RunReader(file_of(tmp_path)) as reader:
        frames = list(reader.frames())
        assert [frame.sequence for frame in frames] == list(range(21 - lost))
        assert [frame.step for frame in frames] == [*range(20 - lost), 20]
        assert (reader.damage, reader.tail_bytes) == ([], 0)


def test_a_kill_within_the_second_write_of_a_frame_leaves_a_tail_and_no_wrong_frame(
    tmp_path, monkeypatch
):
    """What a crash of the disk leaves: a part of a record, never cut off."""
    writer = RunWriter(tmp_path, info_of())
    frames = random_frames(info_of(), 2)
    append(writer, frames[0])
    real = os.pwritev
    monkeypatch.setattr(os, "pwritev", lambda file, parts, at: real(file, parts[:1], at))
    monkeypatch.setattr(os, "pwrite", lambda *_: 0)
    monkeypatch.setattr(os, "ftruncate", lambda *_: (_ for _ in ()).throw(OSError(5, "io")))
    with pytest.raises(RunError, match="no space left"):
        append(writer, frames[1])
    monkeypatch.undo()

    with RunReader(writer.path) as reader:
        assert [bits(each) for each in reader.frames()] == [bits(frames[0])]
        assert reader.tail_bytes == 24
    assert append(writer, frames[1]) == 1
    writer.close()
    assert read(writer.path) == [bits(each) for each in frames]


BAD = {
    "two layers have one name": RunInfo(layers=(Layer("a"), Layer("a"))),
    "two scalars have one name": RunInfo(scalars=("a", "a")),
    "two fields have one name": RunInfo(fields=("a", "a")),
    "it cannot be written down": RunInfo(name="\ud800"),
    "can be recorded": RunInfo(
        layers=tuple(Layer(str(i)) for i in range(5000)), fields=tuple(map(str, range(5000)))
    ),
}


@pytest.mark.parametrize("reason", BAD)
def test_an_info_that_no_frame_can_follow_is_refused(tmp_path, reason):
    with pytest.raises(RunError, match=reason):
        RunWriter(tmp_path, BAD[reason])


@pytest.mark.parametrize("step", [2**63, -(2**63) - 1, 1.5, float("nan")])
def test_a_step_that_is_no_whole_number_is_refused_and_the_run_goes_on(tmp_path, step):
    with RunWriter(tmp_path, info_of()) as writer:
        with pytest.raises(RunError, match=r"is no 64-bit number"):
            writer.append(step, {}, no_layers(2, 3))
        assert writer.append(np.int64(3), {}, no_layers(2, 3)) == 0


def test_a_frame_of_another_shape_is_refused(tmp_path):
    with RunWriter(tmp_path, info_of()) as writer, pytest.raises(RunError, match="a frame of"):
        writer.append(0, {}, no_layers(3, 2))


def test_a_closed_writer_says_so(tmp_path):
    writer = RunWriter(tmp_path, info_of())
    writer.close()
    writer.close()

    with pytest.raises(RunError, match="it was closed"):
        writer.note("fact")


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(RunError, match=r"not a directory|file exists"):
        RunWriter(tmp_path / "file" / "run", info_of())


def test_a_writer_interrupted_by_signals_loses_nothing(tmp_path):
    heard = []
    before = signal.signal(signal.SIGALRM, lambda *_: heard.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        path = written(tmp_path, info_of(), random_frames(info_of(), 2000))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

    assert heard
    assert read(path) == [bits(each) for each in random_frames(info_of(), 2000)]


def test_a_stuck_reader_does_not_slow_the_writer(tmp_path):
    """R08: a reader holds no lock and no buffer of the writer's."""
    with RunWriter(tmp_path, info_of()) as writer:
        frames = random_frames(info_of(), 100)
        append(writer, frames[0])
        stuck = RunReader(writer.path)
        held = stuck.frames()
        next(held)
        size = writer.path.stat().st_size
        for frame in frames[1:]:
            append(writer, frame)

        assert len(list(held)) == 99
        assert writer.path.stat().st_size - size == 99 * (24 + 32 + 16 + 24)
        stuck.close()
