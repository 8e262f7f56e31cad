import numpy as np
import pytest
from scipy.stats import ttest_ind, ttest_rel

from difflens.core.policy import MetricRule, Policy
from difflens.diffs.evidence.records import Evidence, Example, Side
from difflens.diffs.quality.check import differences


def examples(scores, prefix="e", metric="accuracy"):
    return tuple(Example(f"{prefix}{i}", score, metric) for i, score in enumerate(scores))


def test_metrics_alone_differ_without_an_interval():
    evidence = Evidence(left=Side(metrics={"loss": 2.0}), right=Side(metrics={"loss": 1.5}))

    (found,) = differences(evidence, Policy())

    assert (found.change, found.direction, found.interval) == (-0.5, "lower", None)


def test_examples_of_one_name_are_paired():
    random = np.random.default_rng(0)
    left, right = random.normal(size=(2, 40))
    evidence = Evidence(left=Side(evals=examples(left)), right=Side(evals=examples(right)))

    (found,) = differences(evidence, Policy())

    low, high = ttest_rel(right, left).confidence_interval(0.95)
    assert (found.interval.low, found.interval.high) == pytest.approx((low, high))


def test_examples_of_other_names_are_two_samples():
    random = np.random.default_rng(0)
    left, right = random.normal(size=(2, 40))
    evidence = Evidence(left=Side(evals=examples(left)), right=Side(evals=examples(right, "f")))

    (found,) = differences(evidence, Policy())

    low, high = ttest_ind(right, left, equal_var=False).confidence_interval(0.95)
    assert (found.interval.low, found.interval.high) == pytest.approx((low, high))


def test_the_user_says_which_way_is_better():
    side = Side(metrics={"sparkle": 1.0})
    policy = Policy(metrics={"sparkle": MetricRule("lower")})

    assert differences(Evidence(left=side, right=side), Policy())[0].direction is None
    assert differences(Evidence(left=side, right=side), policy)[0].direction == "lower"


def test_what_only_one_side_has_is_not_compared():
    assert differences(Evidence(left=Side(metrics={"loss": 1.0})), Policy()) == []
