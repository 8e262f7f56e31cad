"""The thread beside the loop: order, sinks that fail, findings that come in."""

import threading

import numpy as np
import pytest

from difflens.core.errors import RunError
from difflens.core.policy import Policy
from difflens.training.history.frame import Frame, no_layers, no_scalars
from difflens.training.history.reader import RunReader
from difflens.training.history.writer import RunWriter, file_of
from difflens.training.hooks import Reading
from difflens.training.recorder.alarm import Alarm
from difflens.training.recorder.recorder import Recorder
from difflens.training.recorder.run_file import LONGEST, MOST, Names, RunFile
from difflens.training.records.runs import LAYER_FIELDS, Layer, RunInfo


class Work(Reading, frozen=True):
    """A step that some function finishes."""

    finish: object


class Worked:
    """Frames that are made one by one, by the function of each reading."""

    def make(self, reading):
        return reading.finish()

    def make_all(self, _readings):
        return None


INFO = RunInfo("run", layers=(Layer("a"), Layer("b")))


def reading(step, **scalars):
    block = np.full((len(LAYER_FIELDS), 2), float(step), np.float32)
    return Work(step, 1.0, 2.0, lambda: (scalars, block))


@pytest.fixture
def recorder(tmp_path):
    made = Recorder(
        RunFile(tmp_path, INFO), INFO, Worked(), Alarm(None, None, None, Policy(), ""), []
    )
    yield made
    made.close()


def frames(folder):
    with RunReader(file_of(folder)) as reader:
        return [
            (f.step, dict(zip(reader.info.scalars, f.scalars, strict=True)))
            for f in reader.frames()
        ]


def test_readings_are_written_in_order_and_flush_waits_for_them(recorder, tmp_path):
    for step in range(100):
        recorder.record(reading(step, loss=step / 2))

    assert recorder.flush()
    assert [(step, scalars["loss"]) for step, scalars in frames(tmp_path)] == [
        (step, step / 2) for step in range(100)
    ]


def test_a_reading_that_fails_is_counted_and_the_next_is_kept(recorder, tmp_path):
    def broken():
        raise ArithmeticError("planted")

    lost = "a reading was lost: ArithmeticError: planted"
    with pytest.warns(RuntimeWarning, match=lost):  # noqa: PT031  it may come at any moment
        recorder.record(Work(0, 1.0, 2.0, broken))
        recorder.record(reading(1))
        assert recorder.flush()

    assert [step for step, _ in frames(tmp_path)] == [1]
    assert recorder.dropped == 1


def test_a_block_of_another_shape_is_lost_alone(recorder, tmp_path):
    odd = Work(1, 1.0, 2.0, lambda: ({}, np.zeros((3, 2), np.float32)))
    with pytest.warns(RuntimeWarning, match=r"a block of \(3, 2\)"):  # noqa: PT031
        for each in (reading(0), odd, reading(2)):
            recorder.record(each)
        assert recorder.flush()

    assert [step for step, _ in frames(tmp_path)] == [0, 2]
    assert recorder.dropped == 1


def test_a_scalar_that_is_no_number_costs_its_own_step_alone(recorder, tmp_path):
    with pytest.warns(RuntimeWarning, match="could not convert"):  # noqa: PT031
        for each in (reading(0, loss=1.0), reading(1, loss="much"), reading(2, loss=3.0)):
            recorder.record(each)
        assert recorder.flush()

    assert [step for step, _ in frames(tmp_path)] == [0, 2]
    assert recorder.dropped == 1


def test_of_frames_that_fail_together_those_are_kept_that_can_be(tmp_path, monkeypatch):
    """A disk with room for two more frames takes two, not none of a batch of ten."""
    run_file, real = RunFile(tmp_path, INFO), RunWriter.append_all

    def filling(writer, given):
        if len(given) > 1 or given[0].step in {3, 4}:
            raise RunError(writer.path, "no space left")
        real(writer, given)

    monkeypatch.setattr(RunWriter, "append_all", filling)
    empty = no_scalars(len(INFO.scalars)), no_layers(len(LAYER_FIELDS), 2)
    made = [Frame(i, i, 1.0, 2.0, *empty) for i in range(10)]

    assert run_file.append(made) == 2
    assert run_file.sequence == 10
    run_file.close()
    assert [step for step, _ in frames(tmp_path)] == [0, 1, 2, 5, 6, 7, 8, 9]


def test_a_new_scalar_changes_the_layout_of_the_frames_behind_it(recorder, tmp_path):
    recorder.record(reading(0, loss=1.0))
    recorder.record(reading(1, loss=2.0, val_loss=3.0))
    assert recorder.flush()

    assert [scalars.get("val_loss") for _, scalars in frames(tmp_path)] == [None, 3.0]


def test_a_sink_that_fails_is_left_out_with_one_warning(tmp_path):
    class Broken:
        def write(self, *_):
            raise ConnectionError("gone")

        def close(self):
            raise AssertionError("it was left out")

    class Good(Broken):
        seen: list[int] = []  # noqa: RUF012

        def write(self, frame, info):
            assert info.layers == INFO.layers
            self.seen.append(frame.step)

        def close(self):
            self.seen.append(-1)

    alarm = Alarm(None, None, None, Policy(), "")
    made = Recorder(RunFile(tmp_path, INFO), INFO, Worked(), alarm, [Broken(), Good()])
    left_out = "Broken is left out: ConnectionError: gone"
    with pytest.warns(RuntimeWarning, match=left_out) as warned:  # noqa: PT031  at any moment
        for step in range(3):
            made.record(reading(step))
        made.close()

    assert len(warned) == 1
    assert Good.seen == [0, 1, 2, -1]


def test_findings_come_in_while_the_run_is_recorded(tmp_path, monkeypatch):
    import difflens.training.diagnoses
    from difflens.training.records.runs import Diagnosed, RunFinding

    def diagnose(history, policy, *, run=""):
        del policy
        found = (RunFinding("nan", "critical", "text", {"n": 1}),) if history.frames > 4 else ()
        return Diagnosed(run, history.frames, not found, found)

    monkeypatch.setattr(difflens.training.diagnoses, "diagnose", diagnose)
    heard = []
    alarm = Alarm(2, heard.append, "critical", Policy(), "run")
    made = Recorder(RunFile(tmp_path, INFO), INFO, Worked(), alarm, [])
    for step in range(4):
        made.record(reading(step))
    assert made.flush()
    assert not alarm.should_stop
    for step in range(4, 20):
        made.record(reading(step))
    assert made.flush()
    made.close()

    assert alarm.should_stop
    assert [each.name for each in heard] == ["nan"]


def test_a_recorder_that_is_parked_begins_nothing_more_and_says_what_it_left(recorder, tmp_path):
    begun, gate = threading.Event(), threading.Event()
    block = np.zeros((len(LAYER_FIELDS), 2), np.float32)

    def long():
        begun.set()
        assert gate.wait(60)
        return {}, block

    recorder.record(Work(0, 1.0, 2.0, long))
    for step in range(1, 100):
        recorder.record(reading(step))
    assert begun.wait(60)
    recorder.park(0.0)
    assert not recorder.has_ended
    gate.set()
    recorder.park(60.0)

    assert recorder.has_ended
    assert [step for step, _ in frames(tmp_path)] == [0]
    with RunReader(file_of(tmp_path)) as reader:
        list(reader.frames())
        assert [(each.what, each.data) for each in reader.notes][1:] == [
            ("dropped", {"count": 99, "scalars": 0})
        ]


def test_names_of_scalars_are_bounded():
    names = Names(("loss",))
    kept, is_new = names.place({"loss": 1.0, "x" * (LONGEST + 1): 1.0, "bad\nname": 1.0, "": 1.0})
    assert (kept, is_new, names.refused) == ({"loss": 1.0}, False, 3)

    kept, is_new = names.place({str(i): 0.0 for i in range(2 * MOST)})
    assert is_new
    assert len(names.known) == MOST
    assert names.refused == 3 + 2 * MOST - len(kept)
