from training.diagnoses.histories import asked

from difflens.core.policy import Policy, Threshold
from difflens.testing.histories import faulty
from difflens.training.detectors.signs.limits import Limits

DEFAULTS = {"points": Threshold(5, "a test")}


def test_a_threshold_of_the_policy_stands_before_the_default():
    policy = Policy({"not_training": {"points": 9}})

    assert Limits("not-training", policy, DEFAULTS)["points"] == 9
    assert Limits("not-training", Policy(), DEFAULTS)["points"] == 5


def test_a_diagnosis_hears_the_policy():
    assert asked("lr-low", faulty()["lr-low"], Policy({"lr_low": {"update": 1e-12}})) == []
