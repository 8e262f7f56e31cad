import numpy as np
from diagnoses.histories import asked, only

from difflens.testing.histories import level, recorded

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
