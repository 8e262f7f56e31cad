"""Runs whose steps go back or stand still: resumed from a checkpoint, or counted anew."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from training.gradients.layer_cases import noise

from difflens import GradientAnalyzer
from difflens.training.gradients.signals import forward
from difflens.training.history.writer import RunWriter
from difflens.training.records.runs import Layer, RunInfo


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=60))
def test_steps_rise_whatever_was_recorded_and_the_last_record_stays(steps):
    found = forward(np.array(steps, np.int64))

    assert all(a < b for a, b in pairwise(found.steps.tolist()))
    assert len(found.steps) == found.kept.sum()
    assert not steps or found.kept[-1]
    rises = all(a < b for a, b in pairwise(steps))
    assert bool(found.remark) is not rises


def recorded(folder, steps, norms):
    """Write a run of one layer and a falling loss."""
    info = RunInfo(layers=(Layer("w", (4, 8), depth=0),), fields=("grad_l2",), scalars=("loss",))
    with RunWriter(folder, info) as writer:
        for step, norm in zip(steps, norms, strict=True):
            writer.append(step, {"loss": 5 - step / 100}, np.array([[norm]], np.float32))
    return folder


def test_a_run_that_went_back_to_a_checkpoint_is_that_of_its_last_attempt(tmp_path):
    """The attempt that blew up and was taken again is over, and so are its norms."""
    good = noise(300, seed=1)
    steps = [*range(150), *range(100, 300)]
    norms = np.concatenate([good[:100], np.full(50, 1e5), good[100:]])

    resumed = GradientAnalyzer("expert").analyze_run(recorded(tmp_path / "a", steps, norms))
    straight = GradientAnalyzer("expert").analyze_run(recorded(tmp_path / "b", range(300), good))

    assert resumed.layer("w") == straight.layer("w")
    assert resumed.network_level_analysis == straight.network_level_analysis
    assert resumed.warnings == ("50 of 350 records are left out: their steps were taken again",)


@pytest.mark.parametrize(
    "steps",
    [[7] * 150, range(300, 0, -2), [*range(50)] * 3],
    ids=["always the same", "downwards", "anew in every epoch"],
)
def test_steps_that_are_no_clock_give_way_to_the_number_of_records(steps, tmp_path):
    norms = noise(150, seed=2)

    odd = GradientAnalyzer("expert").analyze_run(recorded(tmp_path / "a", steps, norms))
    plain = GradientAnalyzer("expert").analyze_run(recorded(tmp_path / "b", range(150), norms))

    assert odd.layer("w") == plain.layer("w")
    assert odd.records == 150
    assert "records are counted for steps" in odd.warnings[0]


@pytest.mark.parametrize("loss", [1.7e308, -1.7e308, 1e200])
def test_a_loss_too_large_to_square_is_as_broken_as_an_infinite_one(loss, tmp_path):
    info = RunInfo(layers=(Layer("w", (4, 8)),), fields=("grad_l2",), scalars=("loss",))
    with RunWriter(tmp_path / "run", info) as writer:
        for step in range(120):
            writer.append(step, {"loss": loss}, np.ones((1, 1), np.float32))

    found = GradientAnalyzer("expert").analyze_run(tmp_path / "run")

    assert found.network_level_analysis.convergence_indicators.loss_convergence_score is None
