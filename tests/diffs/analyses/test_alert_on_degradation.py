import numpy as np
import pytest
from diffs.analyses.scores import correct, evals, examples, latencies, numbers, rules
from simulation import near, replicates

from difflens.core.errors import DifflensError
from difflens.core.policy import MetricRule, Policy
from difflens.diffs.analyses import analysis, ask
from difflens.diffs.evidence.records import Evidence, Side
from difflens.diffs.story import diff

MODEL = {"w": np.arange(4, dtype=np.float32)}

GOOD, BAD = [1] * 90 + [0] * 10, [1] * 60 + [0] * 40
NAME = "alert_on_degradation"


def alert(evidence=None, mode="limit", metrics=None, **thresholds):
    policy = Policy(thresholds={NAME: {"mode": mode} | thresholds}, metrics=metrics or {})
    return ask(NAME, diff(MODEL, MODEL), evidence or Evidence(), policy)


def gate(envelope):
    return envelope.fields[analysis[NAME].options["gate"]]


def test_weights_alone_are_not_evaluated_and_never_pass():
    envelope = alert()

    assert set(envelope.fields.values()) == {None}
    assert envelope.missing[0].why.startswith("not evaluated")
    assert gate(envelope) is None


def test_the_alarm_goes_off_where_the_loss_is_sure():
    envelope = alert(evals(GOOD, BAD))

    assert envelope.fields["alert_triggered"] is True
    assert gate(envelope) == "failed"
    assert 0 < envelope.fields["current"] < 0.3
    assert len(envelope.findings) == 1


def test_a_loss_that_may_be_noise_alarms_in_point_mode_alone():
    evidence = evals([1] * 30 + [0] * 10, [1] * 28 + [0] * 12)

    assert alert(evidence).fields["alert_triggered"] is False
    assert gate(alert(evidence)) == "cannot_tell"
    pointed = alert(evidence, "point")
    assert pointed.fields["alert_triggered"] is True
    assert pointed.fields["current"] == pytest.approx(0.05)


def test_single_numbers_alarm_where_they_pass_their_margin():
    """As --regression-test has it: 5 % of the value where nobody sets a margin."""
    evidence = numbers({"loss": 1.0}, {"loss": 1.2})

    assert alert(evidence).fields["verdict"] == "failed"
    assert alert(numbers({"loss": 1.0}, {"loss": 1.04})).fields["verdict"] == "passed"
    assert alert(numbers({"loss": 1.0}, {"loss": 1.04}), "point").fields["verdict"] == "failed"
    assert alert(evidence, "point").fields["alert_triggered"] is True
    assert alert(evidence, "point", degradation=0.3).fields["alert_triggered"] is False


def test_a_margin_is_the_line_of_its_metric():
    evidence = numbers({"loss": 1.0}, {"loss": 1.2})
    envelope = alert(evidence, "point", rules(loss=MetricRule(margin=0.5)).metrics)

    assert envelope.fields["alert_triggered"] is False
    assert envelope.fields["threshold"] == 0.5


@pytest.mark.parametrize(
    ("limit", "mode", "alarm"),
    [(0.5, "limit", False), (0.97, "limit", True), (0.92, "limit", False), (0.92, "point", True)],
)
def test_a_limit_of_the_value_is_a_line_too(limit, mode, alarm):
    """90 of 100 right: the interval reaches from 0.83 to 0.94."""
    metrics = rules(accuracy=MetricRule(threshold=limit, margin=0.5)).metrics

    assert alert(evals(GOOD, GOOD), mode, metrics).fields["alert_triggered"] is alarm


def test_metrics_in_other_units_are_compared_by_what_they_lost():
    random = np.random.default_rng(0)
    timed = latencies(random.gamma(9, 1, 400), random.gamma(9, 1.05, 400), runs=8)
    left = Side(evals=examples(GOOD), latency=timed.left.latency)
    right = Side(evals=examples(BAD), latency=timed.right.latency)
    envelope = alert(Evidence(left=left, right=right), "point")

    assert envelope.fields["metric"] == "accuracy"
    assert envelope.method.endswith("seed=0")


def test_too_few_examples_or_clusters_raise_no_alarm():
    few = evals([1.0, 0.9, 0.95], [0.1, 0.05, 0.0])
    clusters = [f"c{i // 20}" for i in range(100)]
    clustered = evals(np.linspace(0, 1, 100), np.linspace(0, 0.2, 100), clusters=clusters)

    assert alert(few).fields["alert_triggered"] is None
    assert alert(clustered).fields["alert_triggered"] is None
    assert "5 clusters, a verdict needs 10" in alert(clustered).missing[0].why


def test_a_sure_loss_alarms_whatever_else_lacks_evidence():
    left = Side(evals=examples(GOOD), latency=latencies([1.0], [1.0]).left.latency)
    right = Side(evals=examples(BAD), latency=latencies([1.0], [1.0]).left.latency)
    envelope = alert(Evidence(left=left, right=right))

    assert (envelope.fields["verdict"], envelope.fields["metric"]) == ("failed", "accuracy")


def test_what_is_left_out_is_named():
    left = Side(evals=examples(GOOD), metrics={"sparkle": 1.0})
    right = Side(evals=examples(GOOD), metrics={"sparkle": 2.0})
    envelope = alert(Evidence(left=left, right=right))

    assert any("sparkle" in line for line in envelope.assumptions)


def test_a_mode_that_does_not_exist_is_refused():
    with pytest.raises(DifflensError, match="mode is 'loud', limit or point is wanted"):
        alert(mode="loud")


@replicates
def test_without_a_loss_the_alarm_goes_off_no_more_often_than_promised(repeats):
    random = np.random.default_rng(5)
    alarms = sum(
        alert(evals(*correct(random, 300, 0.8, 0.04, 0.04)), degradation=0.0).fields[
            "alert_triggered"
        ]
        for _ in range(repeats)
    )

    assert near(alarms / repeats, 0.025, repeats, slack=0.01)


@replicates
def test_a_loss_of_two_points_raises_the_alarm_as_often_as_computed(repeats):
    random = np.random.default_rng(6)
    n = 783  # pairs for a power of 0.8: McNemar's test, 3 % broken, 1 % fixed (Connor 1987)
    found = sum(
        alert(evals(*correct(random, n, 0.8, 0.03, 0.01)), degradation=0.0).fields[
            "alert_triggered"
        ]
        for _ in range(repeats)
    )

    assert near(found / repeats, 0.8, repeats, slack=0.02)


@replicates
def test_the_point_alone_alarms_every_other_time_without_any_loss(repeats):
    """What the confidence limit is there for."""
    random = np.random.default_rng(7)
    alarms = 0
    for _ in range(repeats):
        left = random.normal(0.7, 0.2, 50)
        right = left + random.normal(0, 0.1, 50)
        alarms += alert(evals(left, right), "point").fields["alert_triggered"]

    assert near(alarms / repeats, 0.5, repeats)
