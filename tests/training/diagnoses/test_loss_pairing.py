import math

import numpy as np
import pytest
from training.diagnoses.histories import asked, only

from difflens.testing.histories import falling, faulty, level, noise, recorded
from difflens.training.diagnoses.loss_pairing import bounds

FACTS = {"output": {"rows_sum_to_one": True, "shape": [64, 10]}, "final_module": "Softmax"}


@pytest.mark.parametrize("classes", [2, 10, 1000])
def test_the_bounds_are_those_of_cross_entropy_of_probabilities(classes):
    right = np.eye(classes)[0]
    wrong = np.eye(classes)[1]

    def cross_entropy(logits):
        return math.log(np.exp(logits).sum()) - logits[0]

    assert bounds(classes) == pytest.approx((cross_entropy(right), cross_entropy(wrong)))


def test_a_softmax_before_cross_entropy_is_told():
    assert only("loss-pairing", faulty()["loss-pairing"]).fix.code == "remove_softmax"


def test_probabilities_whose_loss_falls_below_the_bound_are_paired_rightly():
    assert asked("loss-pairing", recorded(falling(200, start=2.303), facts=FACTS)) == []


def test_a_loss_that_falls_below_zero_without_bound_is_negated():
    losses = -2.3 * 1.05 ** np.arange(80)

    assert only("loss-pairing", recorded(losses)).fix.code == "negate_loss"


def test_a_negative_loss_with_a_floor_is_a_log_likelihood():
    losses = -1.0 - 4.0 * (1 - np.exp(-0.05 * np.arange(200)))

    assert asked("loss-pairing", recorded(losses)) == []


def test_logits_are_not_suspected():
    facts = {"output": {"rows_sum_to_one": False, "shape": [64, 10]}, "final_module": "Linear"}

    assert asked("loss-pairing", recorded(level(100), facts=facts)) == []


def test_a_loss_that_is_negated_midway_is_told_with_the_step():
    losses = np.concatenate([falling(100), -0.2 * 1.15 ** np.arange(60)])

    found = only("loss-pairing", recorded(losses))

    assert (found.fix.code, found.since_step) == ("negate_loss", 100)


def test_a_loss_that_slides_through_zero_without_a_floor_has_one_part_of_the_wrong_sign():
    losses = np.concatenate([np.linspace(1.1, 0.02, 30), -0.02 * 1.2 ** np.arange(40)])

    assert only("loss-pairing", recorded(losses)).fix.code == "check_signs"


def test_a_log_likelihood_that_passes_through_zero_is_in_order():
    losses = 2.0 - 5.0 * (1 - np.exp(-0.03 * np.arange(200)))

    assert asked("loss-pairing", recorded(losses)) == []


def test_a_loss_of_both_signs_is_not_negated():
    random = np.random.default_rng(8)
    losses = 0.01 * random.standard_normal(80) - 1e-5 * np.arange(80) ** 2
    losses[-20:] = -0.05 * 1.05 ** np.arange(20)

    assert asked("loss-pairing", recorded(losses)) == []


def test_a_reward_that_grows_from_next_to_nothing_is_not_negated():
    losses = -0.02 * 1.03 ** np.arange(60)
    facts = {"output": {"rows_sum_to_one": False, "shape": [64, 10]}}

    assert asked("loss-pairing", recorded(losses, facts=facts)) == []
    assert asked("loss-pairing", recorded(100 * losses, facts=facts))


@pytest.mark.parametrize(("final", "end"), [("ReLU", 1.4), ("ReLU", 0.5), ("Tanh", 0.95)])
def test_scores_behind_a_nonlinearity_are_told_where_the_loss_rests(final, end):
    losses = falling(120, start=2.5, end=end, pace=0.1)
    facts = {"output": {"shape": [64, 10], "min": 0.0, "max": 0.9}, "final_module": final}

    found = only("loss-pairing", recorded(losses, facts=facts))

    assert found.fix.code == "remove_softmax"
    assert asked("loss-pairing", recorded(losses, facts={**facts, "final_module": "Linear"})) == []


def test_a_nonlinearity_behind_a_squared_error_or_a_loss_that_falls_on_is_no_fault():
    squared = {"output": {"shape": [64, 10], "min": 0.0, "max": 1.0}, "final_module": "ReLU"}
    falls = falling(120, start=2.5, end=0.01, pace=0.1)

    assert asked("loss-pairing", recorded(falling(120, start=0.9, end=0.5), facts=squared)) == []
    assert asked("loss-pairing", recorded(falls, facts=squared)) == []


REGRESSION = {"output": {"shape": [32, 1], "min": 0.2, "max": 0.8}, "final_module": "Sigmoid"}


def test_a_sigmoid_before_a_squared_error_is_told_where_most_of_the_targets_stay_unexplained():
    losses = (0.7 + 0.4 * np.exp(-np.arange(150) / 10)) * noise(150, 0.1)

    found = only("loss-pairing", recorded(losses, facts=REGRESSION, act_std=0.35))

    assert (found.fix.code, found.severity) == ("remove_softmax", "warning")


def test_a_sigmoid_whose_outputs_explain_their_targets_is_in_order():
    losses = (0.02 + 0.03 * np.exp(-np.arange(150) / 10)) * noise(150, 0.1)

    assert asked("loss-pairing", recorded(losses, facts=REGRESSION, act_std=0.35)) == []


def test_scores_taken_for_log_likelihoods_fall_below_zero_in_their_first_steps_and_on():
    losses = np.concatenate([[0.3, -0.1, 0.2], -0.5 * 1.1 ** np.arange(60)])

    assert only("loss-pairing", recorded(losses)).fix.code == "negate_loss"


def test_a_loss_that_falls_steadily_as_the_held_back_loss_rises_is_negated():
    course = np.linspace(1.4, 60.0, 200)
    held_back = np.where(np.arange(200) % 20 == 19, course, np.nan)

    found = only("loss-pairing", recorded(-course, scalars={"val_loss": held_back}))

    assert (found.fix.code, found.evidence["mirrored"]) == ("negate_loss", True)


def test_a_softmax_of_one_score_is_one_whatever_the_score():
    one = {"output": {"shape": [64, 1], "min": 1.0, "max": 1.0}, "final_module": "Softmax"}
    linear = {**one, "final_module": "Linear"}

    assert only("loss-pairing", recorded(level(20), facts=one)).fix.code == "remove_softmax"
    assert asked("loss-pairing", recorded(level(20), facts=linear)) == []
