import math

import numpy as np
import pytest
from diagnoses.histories import asked, only

from difflens.diagnoses.loss_pairing import bounds
from difflens.testing.histories import falling, faulty, level, recorded

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
