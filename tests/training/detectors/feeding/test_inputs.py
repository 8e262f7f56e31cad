import numpy as np
from training.diagnoses.histories import asked, only

from difflens.testing.histories import falling, level, recorded

CLASSES = {"output": {"rows_sum_to_one": False, "shape": [64, 10]}}


def test_a_batch_whose_examples_are_all_alike_is_told_at_once():
    facts = {**CLASSES, "input": {"dtype": "float32", "mean": 0.1, "std": 0.9,
                                  "features_std_max": 0.0}}  # fmt: skip

    found = only("data", recorded(level(20), facts=facts))

    assert (found.severity, "alike" in found.text) == ("critical", True)


def test_inputs_that_are_not_scaled_are_not_to_blame_where_the_loss_broke_out_of_sound_outputs():
    facts = {"output": {"shape": [64, 10], "min": -80.0, "max": 70.0},
             "input": {"dtype": "float32", "mean": 0.0, "std": 20.0}}  # fmt: skip
    history = recorded(np.full(10, np.nan), facts=facts)

    assert asked("data", history) == []
    assert only("nan", history).fix.code == "stable_loss"


def test_inputs_of_a_usual_size_are_not_to_blame_where_nothing_was_ever_finite():
    """Sound weights make no infinities of a spread of twenty."""
    for spread, told in ((20.0, 0), (1e5, 1)):
        facts = {**CLASSES, "input": {"dtype": "float32", "mean": 0.0, "std": spread}}
        assert len(asked("data", recorded(np.full(10, np.nan), facts=facts))) == told


def test_a_loss_that_fell_by_far_does_not_suffer_from_its_inputs():
    facts = {"output": {"shape": [96, 76]}, "input": {"dtype": "float32", "mean": 0.3, "std": 80.0}}

    assert asked("data", recorded(falling(200, start=300.0, end=2.0, pace=0.1), facts=facts)) == []
    assert asked("data", recorded(falling(200, start=300.0, end=60.0, pace=0.01), facts=facts))


def test_targets_hundreds_off_the_first_outputs_are_told_where_the_loss_rests():
    facts = {"output": {"shape": [32, 40], "min": -1.0, "max": 1.0}}
    resting = falling(160, start=9e4, end=4e4, pace=0.2)
    learned = falling(160, start=9e4, end=10.0, pace=0.2)

    assert only("data", recorded(resting, facts=facts)).fix.code == "scale_targets"
    assert asked("data", recorded(learned, facts=facts)) == []


def test_a_cross_entropy_that_is_summed_has_no_large_targets():
    facts = {"output": {"shape": [64, 10], "min": -1.0, "max": 1.0}}

    told = asked("data", recorded(64 * falling(160, end=1.2, pace=0.2), facts=facts))

    assert "scale_targets" not in [each.fix.code for each in told]
