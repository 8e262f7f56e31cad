import pytest
from diffs.analyses.scores import evals, numbers, rules

from difflens.core.policy import MetricRule, Policy
from difflens.diffs.quality.check import checks
from difflens.diffs.quality.outcomes import outcome, verdict
from difflens.diffs.quality.trials import Settings

STEPS = {"low": 0.0, "medium": 0.02, "high": 0.05, "critical": 0.1}
GOOD, BAD = [1] * 90 + [0] * 10, [1] * 60 + [0] * 40


def outcomes(evidence, policy=None):
    found = checks(evidence, policy or Policy(), Settings())
    return [outcome(each, 0.05, STEPS) for each in found]


def only(evidence, **rule):
    (found,) = outcomes(evidence, rules(accuracy=MetricRule(**rule)))
    return found


def test_a_sure_loss_is_a_regression_with_its_least_size():
    found = only(evals(GOOD, BAD))

    assert (found.word, found.passed) == ("regressed", False)
    assert 0 < found.limit < 0.3
    assert found.severity == "critical"


def test_no_sure_loss_is_not_found_and_says_how_large_one_may_be():
    found = only(evals(GOOD, GOOD))

    assert (found.word, found.passed) == ("not_found", True)
    assert "is possible" in found.why


def test_within_a_margin_is_ok_only_where_the_interval_is():
    assert only(evals(GOOD, GOOD), margin=0.2).word == "ok"
    assert only(evals(GOOD, GOOD), margin=0.01).word == "inconclusive"
    assert only(evals(GOOD, BAD), margin=0.05).word == "regressed"
    assert only(evals(GOOD, BAD), margin=0.29).word == "inconclusive"


def test_a_margin_of_nothing_asks_for_a_gain():
    assert only(evals(GOOD, GOOD), margin=0.0).word == "inconclusive"
    assert only(evals(BAD, GOOD), margin=0.0).word == "ok"


def test_a_limit_is_held_against_the_interval_of_the_right_value():
    assert only(evals(GOOD, GOOD), threshold=0.5).passed is True
    assert only(evals(GOOD, GOOD), threshold=0.88).word == "inconclusive"
    assert only(evals(GOOD, GOOD), threshold=0.99).word == "breached"


@pytest.mark.parametrize(
    ("rule", "word"),
    [
        ({}, "unknown"),
        ({"margin": 0.2}, "within_limit"),
        ({"margin": 0.05}, "breached"),
        ({"threshold": 0.6}, "within_limit"),
        ({"threshold": 0.75}, "breached"),
        ({"margin": 0.2, "threshold": 0.75}, "breached"),
        ({"margin": 0.05, "threshold": 0.6}, "breached"),
    ],
)
def test_two_numbers_are_held_against_what_the_user_set(rule, word):
    found = only(numbers({"accuracy": 0.8}, {"accuracy": 0.7}), **rule)

    assert found.word == word


def test_a_metric_without_a_direction_has_no_loser():
    (found,) = outcomes(evals(GOOD, BAD, metric="sparkle"))

    assert found.passed is None
    assert found.needs == (
        "[metrics.sparkle] direction in --policy, or --lower-is-better or --higher-is-better"
    )


def test_single_numbers_without_a_limit_do_not_hold_up_the_others():
    policy = rules(accuracy=MetricRule(margin=0.2))
    found = outcomes(numbers({"accuracy": 0.8, "epoch": 3}, {"accuracy": 0.7, "epoch": 4}), policy)

    assert verdict(found) is True
    assert verdict([each for each in found if each.check.metric == "epoch"]) is None


@pytest.mark.parametrize(("size", "severity"), [(40, "medium"), (80, "high"), (200, "critical")])
def test_severity_follows_the_sure_part_of_the_loss(size, severity):
    """A loss of 15 points weighs more the surer it is."""
    left = ([1] * 18 + [0] * 2) * (size // 20)
    right = ([1] * 15 + [0] * 5) * (size // 20)

    assert only(evals(left, right)).severity == severity
