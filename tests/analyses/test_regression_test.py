import numpy as np
import pytest
from analyses.scores import correct, evals, examples, history, latencies, numbers, rules
from simulation import near, replicates

from difflens.analyses import analyse, analysis, ask
from difflens.analyses.regression_test import THRESHOLDS
from difflens.errors import DifflensError
from difflens.evidences import Evidence, Side
from difflens.pipeline import diff
from difflens.records import Interval, MetricRule, Policy
from difflens.stats.power import pairs_needed, questions_needed

MODEL = {"w": np.arange(4, dtype=np.float32)}

GOOD, BAD = [1] * 90 + [0] * 10, [1] * 60 + [0] * 40
NAME = "regression_test"


def asked(evidence=None, policy=None):
    return ask(NAME, diff(MODEL, MODEL), evidence or Evidence(), policy or Policy())


def gate(envelope):
    return analysis[NAME].options["gate"](envelope.fields)


def test_weights_alone_pass_and_fail_nothing():
    envelope = asked()

    assert envelope.status == "not_enough_information"
    assert set(envelope.fields.values()) == {None}
    assert "--eval-left/--eval-right" in envelope.missing[0].needs
    assert gate(envelope) is None


def test_a_sure_loss_fails_with_its_interval_and_is_a_finding():
    envelope = asked(evals(GOOD, BAD))

    assert envelope.fields["passed"] is False
    assert gate(envelope) is False
    assert envelope.fields["degradation"] == pytest.approx(0.3)
    assert envelope.fields["severity"] == "critical"
    interval = envelope.uncertainty["degradation"]
    assert isinstance(interval, Interval)
    assert interval.low < 0.3 < interval.high
    (finding,) = envelope.findings
    assert (finding.subject, finding.severity) == ("", "critical")
    assert finding.evidence["sure_loss"] == interval.low


def test_the_same_results_pass_without_being_called_the_same():
    envelope = asked(evals(GOOD, GOOD))

    assert envelope.fields["passed"] is True
    assert envelope.fields["severity"] == "none"
    assert "no sure loss is not sameness: that needs a margin in --policy" in envelope.assumptions


def test_a_gain_is_no_loss():
    envelope = asked(evals(BAD, GOOD))

    assert envelope.fields["passed"] is True
    assert envelope.fields["degradation"] == pytest.approx(-0.3)


def test_an_interval_over_the_margin_leaves_it_open():
    envelope = asked(evals(GOOD, GOOD), rules(accuracy=MetricRule(margin=0.01)))

    assert envelope.fields["passed"] is None
    assert envelope.status == "partial"
    assert "more examples of accuracy" in envelope.missing[0].needs


def test_numbers_alone_pass_only_against_a_limit():
    left, right = {"accuracy": 0.8, "epoch": 1.0}, {"accuracy": 0.79, "epoch": 2.0}

    assert asked(numbers(left, right)).fields["passed"] is None
    limited = asked(numbers(left, right), rules(accuracy=MetricRule(margin=0.02)))
    assert limited.fields["passed"] is True
    (check, _) = limited.fields["checks"]
    assert (check["metric"], check["outcome"], check["statistical"]) == (
        "accuracy", "within_limit", None,
    )  # fmt: skip
    assert "single numbers without a margin or limit, not judged: epoch" in limited.assumptions


def test_a_metric_that_nobody_knows_is_open():
    envelope = asked(evals(GOOD, BAD, metric="sparkle"))

    assert envelope.fields["passed"] is None
    assert envelope.fields["degradation"] is None
    assert "[metrics.sparkle] direction in --policy" in {each.needs for each in envelope.missing}


def test_the_worst_metric_is_told_first():
    left = Side(evals=examples(GOOD), metrics={"loss": 1.0})
    right = Side(evals=examples(BAD), metrics={"loss": 0.9})
    envelope = asked(Evidence(left=left, right=right))

    assert envelope.fields["metric"] == "accuracy"
    assert [each["metric"] for each in envelope.fields["checks"]] == ["accuracy", "loss"]


def test_slower_latencies_fail_and_name_the_seed():
    random = np.random.default_rng(0)
    envelope = asked(latencies(random.gamma(9, 1, 600), random.gamma(9, 1.5, 600), runs=10))

    assert envelope.fields["passed"] is False
    assert envelope.fields["metric"] == "latency_p95_ms"
    assert envelope.method == "regression_test/1 seed=0"


def test_a_value_out_of_its_history_fails():
    past = [0.80, 0.81, 0.79, 0.80, 0.82, 0.80]

    assert asked(history(past, 0.70)).fields["passed"] is False
    assert asked(history(past, 0.80)).fields["passed"] is True


def test_thresholds_are_the_users_where_set_and_refused_where_they_allow_no_test():
    policy = Policy(thresholds={NAME: {"critical": 0.9}})

    assert asked(evals(GOOD, BAD), policy).fields["severity"] == "high"
    with pytest.raises(DifflensError, match=r"alpha is 0\.7, it must lie between 0 and 0\.5"):
        asked(policy=Policy(thresholds={NAME: {"alpha": 0.7}}))


def test_every_answer_says_by_which_policy():
    envelope = analyse(NAME, diff(MODEL, MODEL), evals(GOOD, BAD))

    assert set(envelope.policy) == set(THRESHOLDS)


@replicates
def test_without_a_loss_no_more_than_alpha_of_the_tests_fail(repeats):
    random = np.random.default_rng(1)
    alarms = sum(
        asked(evals(*correct(random, 300, 0.8, 0.04, 0.04))).fields["passed"] is False
        for _ in range(repeats)
    )

    assert alarms / repeats <= 0.05 + 3 * (0.05 * 0.95 / repeats) ** 0.5
    assert near(alarms / repeats, 0.025, repeats, slack=0.01)


@replicates
def test_a_loss_of_two_points_is_found_as_often_as_computed(repeats):
    random = np.random.default_rng(2)
    n = pairs_needed(0.03, 0.01, power=0.8)
    found = sum(
        asked(evals(*correct(random, n, 0.8, 0.03, 0.01))).fields["passed"] is False
        for _ in range(repeats)
    )

    assert near(found / repeats, 0.8, repeats, slack=0.02)


@replicates
def test_a_loss_of_scores_is_found_as_often_as_computed(repeats):
    random = np.random.default_rng(3)
    n = questions_needed(0.02, 0.1**2, power=0.8)
    found = 0
    for _ in range(repeats):
        left = random.normal(0.7, 0.2, n)
        found += asked(evals(left, left + random.normal(-0.02, 0.1, n))).fields["passed"] is False

    assert near(found / repeats, 0.8, repeats, slack=0.02)


@replicates
def test_many_metrics_together_raise_no_more_false_alarms_than_one(repeats):
    random = np.random.default_rng(4)
    alarms = 0
    for _ in range(repeats):
        sides = random.normal(0.7, 0.1, (2, 6, 60))
        left, right = (
            Side(evals=tuple(each for at, scores in enumerate(side)
                             for each in examples(scores, f"f1_{at}")))
            for side in sides
        )  # fmt: skip
        alarms += asked(Evidence(left=left, right=right)).fields["passed"] is False

    assert alarms / repeats <= 0.025 + 3 * (0.025 * 0.975 / repeats) ** 0.5
