"""Replaying a run: when an alarm first stood, and what stands at the end."""

from __future__ import annotations

import numpy as np
import pytest

from difflens.training.history.frame import no_layers
from difflens.training.history.writer import RunWriter
from difflens.training.records.runs import Fix, Layer, RunFinding, RunInfo
from zoo.replay import replay


@pytest.fixture
def run(tmp_path):
    info = RunInfo("made", layers=(Layer("w", (2,)),), scalars=("loss",))
    with RunWriter(tmp_path / "run", info) as writer:
        for step in range(47):
            if step == 30:
                writer.note("fact", cracked=True)
            writer.append(step, {"loss": 1.0 / (step + 1)}, no_layers(len(info.fields), 1))
    return tmp_path / "run"


def finding(name, severity="warning", **more):
    return RunFinding(name, severity, name, {"x": 1}, **more)


def test_an_alarm_is_dated_to_the_step_at_which_it_first_stands(run):
    said = replay(run, lambda history: (finding("slow"),) if history.frames >= 24 else ())

    assert [(alarm.step, sorted(alarm.names)) for alarm in said.alarms] == [(23, ["slow"])]


def test_an_alarm_that_goes_away_was_raised_all_the_same_and_its_remedy_told(run):
    def judge(history):
        return (finding("dead", fix=Fix("reinitialise")),) if 8 <= history.frames <= 12 else ()

    said = replay(run, judge)

    assert [alarm.step for alarm in said.alarms] == [7]
    assert [(min(alarm.names), alarm.step) for alarm in said.last] == [("dead", 10)]
    assert said.fixes == ({"code": "reinitialise", "parameters": {}},)


def test_what_is_only_worth_knowing_is_no_alarm(run):
    assert replay(run, lambda _: (finding("slow", "info"),)).alarms == ()


def test_each_name_is_dated_by_itself_and_the_first_cause_leads_at_the_end(run):
    def judge(history):
        later = (finding("nan", "critical", fix=Fix("stable_loss")),) if history.frames > 40 else ()
        return (*later, *((finding("slow"),) if history.frames > 10 else ()))

    said = replay(run, judge)

    assert [(min(alarm.names), alarm.step) for alarm in said.alarms] == [("slow", 10), ("nan", 40)]
    assert [min(alarm.names) for alarm in said.last] == ["nan", "slow"]
    assert said.alarms[1].critical
    assert said.fixes == ({"code": "stable_loss", "parameters": {}},)


def test_a_fact_is_not_known_before_it_was_written(run):
    def judge(history):
        return (finding("wiring"),) if history.fact("cracked") else ()

    assert [alarm.step for alarm in replay(run, judge).alarms] == [30]


def test_a_replay_sees_the_run_as_a_whole_in_the_end(run):
    seen = []

    def judge(history):
        seen.append(np.array(history.course.scalar("loss")))
        return ()

    replay(run, judge)

    assert len(seen[-1]) == 47
