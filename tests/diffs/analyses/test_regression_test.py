import numpy as np
import pytest
from diffs.analyses.scores import correct, evals, examples, history, latencies, numbers, rules
from simulation import near, replicates

from difflens.core.errors import DifflensError
from difflens.core.findings import Interval
from difflens.core.policy import MetricRule, Policy
from difflens.diffs.analyses import analyse, analysis, ask
from difflens.diffs.evidence.records import Evidence, Side
from difflens.diffs.story import diff

MODEL = {"w": np.arange(4, dtype=np.float32)}

GOOD, BAD = [1] * 90 + [0] * 10, [1] * 60 + [0] * 40
NAME = "regression_test"


SURE = rules(accuracy=MetricRule(margin=0.0))  # every sure loss counts, however small


def asked(evidence=None, policy=None):
    return ask(NAME, diff(MODEL, MODEL), evidence or Evidence(), policy or Policy())


def gate(envelope):
    return envelope.fields[analysis[NAME].options["gate"]]


def test_weights_alone_pass_and_fail_nothing():
    envelope = asked()

    assert envelope.status == "not_enough_information"
    assert set(envelope.fields.values()) == {None}
    assert "--eval-left/--eval-right" in envelope.missing[0].needs
    assert gate(envelope) is None


def test_a_sure_loss_fails_with_its_interval_and_is_a_finding():
    envelope = asked(evals(GOOD, BAD))

    assert envelope.fields["passed"] is False
    assert gate(envelope) == "failed"
    assert envelope.fields["degradation"] == pytest.approx(0.3)
    assert envelope.fields["severity"] == "critical"
    interval = envelope.uncertainty["degradation"]
    assert isinstance(interval, Interval)
    assert interval.low < 0.3 < interval.high
    (finding,) = envelope.findings
    assert (finding.subject, finding.severity) == ("", "critical")
    assert finding.evidence["sure_loss"] == interval.low


def test_the_same_results_pass_where_they_exclude_a_loss_beyond_the_margin():
    envelope = asked(evals(GOOD * 10, GOOD * 10))

    assert (envelope.fields["verdict"], envelope.fields["passed"]) == ("passed", True)
    assert envelope.fields["severity"] == "none"


def test_too_few_results_cannot_tell_and_say_what_would():
    envelope = asked(evals(GOOD, GOOD))

    assert (envelope.fields["verdict"], envelope.fields["passed"]) == ("cannot_tell", None)
    assert gate(envelope) == "cannot_tell"
    assert "examples of accuracy (there are 100)" in envelope.missing[0].needs


def test_a_bare_score_is_better_higher_and_says_so():
    envelope = asked(evals(GOOD, BAD, metric="score"))

    assert envelope.fields["verdict"] == "failed"
    assert envelope.fields["directions"] == {
        "score": "higher (assumed; --lower-is-better changes it)"
    }
    turned = asked(evals(GOOD, BAD, metric="score"), Policy(direction="lower"))
    assert turned.fields["verdict"] == "passed"


def test_the_policy_goes_before_the_option_and_the_name():
    rule = Policy(metrics={"accuracy": MetricRule("lower")}, direction="higher")

    assert asked(evals(GOOD, BAD), rule).fields["verdict"] == "passed"
    assert asked(evals(GOOD, BAD), Policy(direction="lower")).fields["verdict"] == "failed"


def test_a_gain_is_no_loss():
    envelope = asked(evals(BAD, GOOD))

    assert envelope.fields["passed"] is True
    assert envelope.fields["degradation"] == pytest.approx(-0.3)


def test_an_interval_over_the_margin_leaves_it_open():
    envelope = asked(evals(GOOD, GOOD), rules(accuracy=MetricRule(margin=0.01)))

    assert envelope.fields["passed"] is None
    assert envelope.status == "partial"
    assert "examples of accuracy" in envelope.missing[0].needs


def test_numbers_alone_are_held_against_a_margin():
    left, right = {"accuracy": 0.8, "epoch": 1.0}, {"accuracy": 0.79, "epoch": 2.0}

    assert asked(numbers(left, right)).fields["verdict"] == "failed"
    limited = asked(numbers(left, right), rules(accuracy=MetricRule(margin=0.02)))
    assert limited.fields["passed"] is True
    (check, _) = limited.fields["checks"]
    assert (check["metric"], check["outcome"], check["statistical"]) == (
        "accuracy", "within_limit", None,
    )  # fmt: skip
    assert "single numbers without a known direction, not judged: epoch" in limited.assumptions


def test_a_metric_that_nobody_knows_is_open():
    envelope = asked(evals(GOOD, BAD, metric="sparkle"))

    assert envelope.fields["passed"] is None
    assert envelope.fields["degradation"] is None
    assert envelope.fields["verdict"] == "cannot_tell"
    assert any("[metrics.sparkle] direction in --policy" in each.needs for each in envelope.missing)


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
    assert {each["metric"] for each in envelope.fields["checks"]} == {
        "latency_p95_ms", "inference_latency_ms",
    }  # fmt: skip
    assert envelope.method == "regression_test/1 seed=0"


def test_a_value_out_of_its_history_fails():
    past = [0.80, 0.81, 0.79, 0.80, 0.82, 0.80]

    assert asked(history(past, 0.70)).fields["passed"] is False
    wide = rules(accuracy=MetricRule(margin=0.1))
    assert asked(history(past, 0.80), wide).fields["passed"] is True
    assert asked(history(past, 0.80)).fields["verdict"] == "cannot_tell"


def test_thresholds_are_the_users_where_set_and_refused_where_they_allow_no_test():
    policy = Policy(thresholds={NAME: {"critical": 0.9}})

    assert asked(evals(GOOD, BAD), policy).fields["severity"] == "high"
    with pytest.raises(DifflensError, match=r"alpha is 0\.7, it must lie between 0 and 0\.5"):
        asked(policy=Policy(thresholds={NAME: {"alpha": 0.7}}))


def test_every_answer_says_by_which_policy():
    envelope = analyse(NAME, diff(MODEL, MODEL), evals(GOOD, BAD))

    assert set(envelope.policy) == set(analysis[NAME].options["thresholds"])


@replicates
def test_without_a_loss_no_more_than_alpha_of_the_tests_fail(repeats):
    random = np.random.default_rng(1)
    alarms = sum(
        asked(evals(*correct(random, 300, 0.8, 0.04, 0.04)), SURE).fields["passed"] is False
        for _ in range(repeats)
    )

    assert alarms / repeats <= 0.05 + 3 * (0.05 * 0.95 / repeats) ** 0.5
    assert near(alarms / repeats, 0.025, repeats, slack=0.01)


@replicates
def test_a_loss_of_two_points_is_found_as_often_as_computed(repeats):
    random = np.random.default_rng(2)
    n = 783  # pairs for a power of 0.8: McNemar's test, 3 % broken, 1 % fixed (Connor 1987)
    found = sum(
        asked(evals(*correct(random, n, 0.8, 0.03, 0.01)), SURE).fields["passed"] is False
        for _ in range(repeats)
    )

    assert near(found / repeats, 0.8, repeats, slack=0.02)


@replicates
def test_a_loss_of_scores_is_found_as_often_as_computed(repeats):
    random = np.random.default_rng(3)
    n = 197  # (1.960 + 0.842)² (0.1/0.02)²: pairs for a power of 0.8
    found = 0
    for _ in range(repeats):
        left = random.normal(0.7, 0.2, n)
        scores = evals(left, left + random.normal(-0.02, 0.1, n))
        found += asked(scores, SURE).fields["passed"] is False

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
