import numpy as np
from training.diagnoses.histories import only

from difflens.testing.histories import falling, level, noise, recorded

CLASSES = {"output": {"rows_sum_to_one": False, "shape": [64, 10]}}


def stands(losses, held_back):
    looks = np.where(np.arange(len(losses)) % 20 == 19, held_back, np.nan)
    return recorded(losses, update_l2=0.02, facts=CLASSES, scalars={"val_loss": looks})


def test_labels_that_are_wrong_are_learned_by_heart_in_part():
    losses = np.linspace(2.35, 2.1, 200) * noise(200, 0.005)

    assert only("data", stands(losses, 2.4)).fix.code == "check_labels"


def test_examples_that_never_reach_the_output_are_not_even_learned_by_heart():
    assert only("data", stands(level(200, at=2.31), 2.31)).fix.code == "follow_example"


def test_outputs_that_are_all_the_mean_of_the_targets_come_of_a_column_and_a_row():
    losses = falling(120, start=3.0, end=1.0, pace=0.2)
    column = {"output": {"shape": [64, 1], "min": -2.0, "max": 2.0}}

    for act_std, code in ((0.02, "match_shapes"), (0.3, "check_labels")):
        assert only("data", recorded(losses, facts=column, act_std=act_std)).fix.code == code


def test_a_regression_that_was_better_once_has_its_shapes_right():
    losses = np.concatenate([falling(60, start=3.0, end=0.5, pace=0.2), np.full(140, 1.0)])
    column = {"output": {"shape": [64, 1], "min": -2.0, "max": 2.0}}

    found = only("data", recorded(losses * noise(200, 0.01), facts=column, act_std=0.02))

    assert found.fix.code == "check_labels"


def test_examples_that_pull_each_their_own_way_have_targets_of_their_own():
    losses = falling(120, start=3.0, end=1.0, pace=0.2)
    column = {"output": {"shape": [64, 1], "min": -2.0, "max": 2.0}}
    gradients = 1e-2 * noise(120, 0.15, 3)

    found = only("data", recorded(losses, facts=column, act_std=0.02, grad_l2=gradients))

    assert found.fix.code == "check_labels"


def test_a_little_that_holds_elsewhere_comes_of_examples_that_get_through_in_part():
    losses = np.linspace(2.3, 2.1, 200) * noise(200, 0.005)

    assert only("data", stands(losses, 2.25)).fix.code == "follow_example"
    assert only("data", stands(losses, np.linspace(2.24, 2.4, 200))).fix.code == "check_labels"
