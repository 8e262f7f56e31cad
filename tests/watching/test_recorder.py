"""The thread beside the loop: order, sinks that fail, findings that come in."""

import threading

import numpy as np
import pytest

from difflens.errors import RunError
from difflens.history.frame import Frame, no_layers, no_scalars
from difflens.history.reader import RunReader
from difflens.history.writer import RunWriter, file_of
from difflens.hooks import Reading
from difflens.records import Policy
from difflens.runs import LAYER_FIELDS, Layer, RunInfo
from difflens.watching.alarm import Alarm
from difflens.watching.paper import Paper
from difflens.watching.recorder import Recorder
from difflens.watching.scalars import LONGEST, MOST, Names

INFO = RunInfo("run", layers=(Layer("a"), Layer("b")))


def reading(step, **scalars):
    block = np.full((len(LAYER_FIELDS), 2), float(step), np.float32)
    return Reading(step, 1.0, 2.0, lambda: (scalars, block))


@pytest.fixture
def recorder(tmp_path):
    made = Recorder(Paper(tmp_path, INFO), INFO, Alarm(None, None, None, Policy(), ""), [])
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
        recorder.take(reading(step, loss=step / 2))

    assert recorder.flush()
    assert [(step, scalars["loss"]) for step, scalars in frames(tmp_path)] == [
        (step, step / 2) for step in range(100)
    ]


def test_a_reading_that_fails_is_counted_and_the_next_is_kept(recorder, tmp_path):
    def broken():
        raise ArithmeticError("planted")

    lost = "a reading was lost: ArithmeticError: planted"
    with pytest.warns(RuntimeWarning, match=lost):  # noqa: PT031  it may come at any moment
        recorder.take(Reading(0, 1.0, 2.0, broken))
        recorder.take(reading(1))
        assert recorder.flush()

    assert [step for step, _ in frames(tmp_path)] == [1]
    assert recorder.dropped == 1


def test_a_block_of_another_shape_is_lost_alone(recorder, tmp_path):
    odd = Reading(1, 1.0, 2.0, lambda: ({}, np.zeros((3, 2), np.float32)))
    with pytest.warns(RuntimeWarning, match=r"a block of \(3, 2\)"):  # noqa: PT031
        for each in (reading(0), odd, reading(2)):
            recorder.take(each)
        assert recorder.flush()

    assert [step for step, _ in frames(tmp_path)] == [0, 2]
    assert recorder.dropped == 1


def test_a_scalar_that_is_no_number_costs_its_own_step_alone(recorder, tmp_path):
    with pytest.warns(RuntimeWarning, match="could not convert"):  # noqa: PT031
        for each in (reading(0, loss=1.0), reading(1, loss="much"), reading(2, loss=3.0)):
            recorder.take(each)
        assert recorder.flush()

    assert [step for step, _ in frames(tmp_path)] == [0, 2]
    assert recorder.dropped == 1


def test_of_frames_that_fail_together_those_are_kept_that_can_be(tmp_path, monkeypatch):
    """A disk with room for two more frames takes two, not none of a batch of ten."""
    paper, real = Paper(tmp_path, INFO), RunWriter.append_all

    def filling(writer, given):
        if len(given) > 1 or given[0].step in {3, 4}:
            raise RunError(writer.path, "no space left")
        real(writer, given)

    monkeypatch.setattr(RunWriter, "append_all", filling)
    empty = no_scalars(len(INFO.scalars)), no_layers(len(LAYER_FIELDS), 2)
    made = [Frame(i, i, 1.0, 2.0, *empty) for i in range(10)]

    assert paper.append(made) == 2
    assert paper.sequence == 10
    paper.close()
    assert [step for step, _ in frames(tmp_path)] == [0, 1, 2, 5, 6, 7, 8, 9]


def test_a_new_scalar_changes_the_layout_of_the_frames_behind_it(recorder, tmp_path):
    recorder.take(reading(0, loss=1.0))
    recorder.take(reading(1, loss=2.0, val_loss=3.0))
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
    made = Recorder(Paper(tmp_path, INFO), INFO, alarm, [Broken(), Good()])
    left_out = "Broken is left out: ConnectionError: gone"
    with pytest.warns(RuntimeWarning, match=left_out) as warned:  # noqa: PT031  at any moment
        for step in range(3):
            made.take(reading(step))
        made.close()

    assert len(warned) == 1
    assert Good.seen == [0, 1, 2, -1]


def test_findings_come_in_while_the_run_is_recorded(tmp_path, monkeypatch):
    import difflens.diagnoses
    from difflens.runs import Diagnosed, RunFinding

    def diagnose(history, policy, *, run=""):
        del policy
        found = (RunFinding("nan", "critical", "text", {"n": 1}),) if history.frames > 4 else ()
        return Diagnosed(run, history.frames, not found, found)

    monkeypatch.setattr(difflens.diagnoses, "diagnose", diagnose)
    heard = []
    alarm = Alarm(2, heard.append, "critical", Policy(), "run")
    made = Recorder(Paper(tmp_path, INFO), INFO, alarm, [])
    for step in range(4):
        made.take(reading(step))
    assert made.flush()
    assert not alarm.should_stop
    for step in range(4, 20):
        made.take(reading(step))
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

    recorder.take(Reading(0, 1.0, 2.0, long))
    for step in range(1, 100):
        recorder.take(reading(step))
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
    kept, is_new = names.take({"loss": 1.0, "x" * (LONGEST + 1): 1.0, "bad\nname": 1.0, "": 1.0})
    assert (kept, is_new, names.refused) == ({"loss": 1.0}, False, 3)

    kept, is_new = names.take({str(i): 0.0 for i in range(2 * MOST)})
    assert is_new
    assert len(names.known) == MOST
    assert names.refused == 3 + 2 * MOST - len(kept)
