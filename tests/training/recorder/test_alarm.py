"""Diagnoses while training: told once for a cause, at an interval, and never fatal."""

import pytest

import difflens.training.diagnoses
from difflens.core.policy import Policy
from difflens.training.recorder.alarm import Alarm
from difflens.training.records.runs import Diagnosed, RunFinding


def finding(name, severity):
    return RunFinding(name, severity, "text", {"number": 1})


@pytest.fixture
def found(monkeypatch):
    """Hand in what the diagnoses are to find at each look."""
    looks = []

    def diagnose(history, policy, *, run=""):
        del history, policy
        return Diagnosed(run, 1, None, tuple(looks.pop(0)))

    monkeypatch.setattr(difflens.training.diagnoses, "diagnose", diagnose)
    return looks


def told(found, looks, **how):
    """Look so often, and give what was called back, and the alarm."""
    found.extend(looks)
    heard = []
    alarm = Alarm(how.pop("every", 1), heard.append, how.pop("stop_on", None), Policy(), "run")
    for step in range(len(looks)):
        assert alarm.is_due(step)
        alarm.look(None, step)
    return [(each.name, each.severity) for each in heard], alarm


def test_a_cause_is_told_once_and_again_only_when_it_is_worse(found):
    warning, critical = finding("dead", "warning"), finding("dead", "critical")
    heard, alarm = told(found, [[warning], [warning], [], [warning], [critical], [warning]])

    assert heard == [("dead", "warning"), ("dead", "critical")]
    assert alarm.findings == (warning,)


def test_what_is_only_information_calls_nobody(found):
    heard, alarm = told(found, [[finding("slow", "info")]])

    assert heard == []
    assert [each.name for each in alarm.findings] == ["slow"]


@pytest.mark.parametrize(
    ("stop_on", "severity", "stops"),
    [
        (None, "critical", False),
        ("critical", "warning", False),
        ("critical", "critical", True),
        ("warning", "critical", True),
    ],
)
def test_it_asks_to_stop_from_the_severity_on_that_was_named(found, stop_on, severity, stops):
    _, alarm = told(found, [[finding("nan", severity)]], stop_on=stop_on)

    assert alarm.should_stop is stops


def test_a_callback_that_fails_is_told_once_and_left_out(found):
    found.extend([[finding("nan", "critical")], [finding("dead", "critical")]])
    calls = []

    def broken(each):
        calls.append(each)
        raise KeyError("theirs")

    alarm = Alarm(1, broken, None, Policy(), "run")
    with pytest.warns(RuntimeWarning, match="on_finding failed"):
        alarm.look(None, 0)
    alarm.look(None, 1)  # a second warning would be an error here

    assert len(calls) == 1


def test_a_diagnosis_that_fails_stops_the_diagnoses_and_nothing_else(monkeypatch):
    def diagnose(*_, **__):
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(difflens.training.diagnoses, "diagnose", diagnose)
    alarm = Alarm(1, None, None, Policy(), "run")
    with pytest.warns(RuntimeWarning, match="ZeroDivisionError: planted"):
        alarm.look(None, 0)
    assert not alarm.is_due(10)


def test_the_interval_in_steps_is_kept(found):
    found.extend([[], []])
    alarm = Alarm(10, None, None, Policy(), "run")
    due = []
    for step in range(25):
        due.append(alarm.is_due(step))
        if due[-1] and found:
            alarm.look(None, step)

    assert [step for step, is_due in enumerate(due) if is_due][:2] == [0, 10]


def test_never_is_never(found):
    found.append([])
    assert not Alarm(None, None, None, Policy(), "run").is_due(1000)


def test_a_new_finding_is_one_line_of_the_log(found, caplog):
    again = [[RunFinding("dead", "critical", "all of\x1b[2J it", {"n": 1}, since_step=7)]] * 3
    with caplog.at_level("WARNING", logger="difflens"):
        told(found, again)

    (line,) = caplog.records
    assert line.levelname == "ERROR"
    assert line.getMessage().startswith("critical: dead since step 7: all of\\x1b[2J it")


def test_a_log_that_fails_breaks_nothing(found, monkeypatch):
    import logging

    def broken(*_arguments):
        raise OSError("the disk is full")

    monkeypatch.setattr(logging.Logger, "log", broken)

    assert told(found, [[finding("dead", "critical")]])[0] == [("dead", "critical")]


def test_a_checkpoint_is_wanted_once_for_each_new_finding(found):
    from difflens.training.recorder.monitors import RunMonitor

    _, alarm = told(found, [[finding("dead", "warning")]] * 2)
    watched = RunMonitor()
    watched._alarm = alarm

    assert [watched.checkpoint_is_wanted() for _ in range(3)] == [True, False, False]


class Clock:
    """Time that passes only as it is moved."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def looks_within(seconds, *, took, hurries=()):
    """Let time pass in hundredths of a second, a step each; give the times of the looks."""
    clock, looks = Clock(), []
    alarm = Alarm("auto", None, None, Policy(), "run")
    alarm.clock = clock
    begun = clock.now

    def diagnose(history, policy, *, run=""):
        del history, policy
        clock.now += took
        return Diagnosed(run, 1, None, ())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(difflens.training.diagnoses, "diagnose", diagnose)
        waiting = list(hurries)
        for step in range(int(seconds * 100)):
            clock.now = max(clock.now, begun + step / 100)
            if waiting and clock.now - begun >= waiting[0]:
                waiting.pop(0)
                alarm.hurry()
            if alarm.is_due(step):
                looks.append(clock.now - begun)
                alarm.look(None, step)
    return looks


def test_a_run_that_begins_is_looked_at_often_and_then_by_a_share_of_its_time():
    looks = looks_within(100, took=0.05)

    assert len([at for at in looks if at < 1.2]) >= 9
    later = [at for at in looks if at >= 1.2]
    assert 3 <= len(later) <= 100 / 20
    assert 0.05 * len(later) / 100 <= 0.0025


def test_something_that_looks_wrong_is_looked_at_with_the_next_step_and_often():
    looks = looks_within(60, took=0.05, hurries=[30.0])

    assert len([at for at in looks if 30.0 <= at < 30.02]) == 1
    assert len([at for at in looks if 30.0 <= at < 31.2]) >= 9


def test_what_looks_wrong_all_the_time_does_not_cost_all_the_time():
    looks = looks_within(60, took=0.05, hurries=[each / 2 for each in range(120)])

    assert 0.05 * len(looks) / 60 < 0.07
