import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulation import replicates
from versions.recorded import bare, examples, snapshot

from difflens.core.policy import MetricRule, Policy
from difflens.diffs.evidence.records import Past
from difflens.versions.records.regressions import RegressionDetectionResult
from difflens.versions.records.regressions import RegressionSeverity as Severity
from difflens.versions.records.snapshots import DifferentialDebuggingConfig as Config
from difflens.versions.regressions import detect_regressions
from difflens.versions.verdicts import health, severity, thresholds_of


def held(current, baseline, **given):
    return detect_regressions(current, baseline, **given)


def later(**metrics):
    custom = metrics.pop("custom", {})
    return snapshot(version="2", day=2, metrics=metrics, custom=custom)


def outcomes(result):
    return {each.metric: each.outcome for each in result.verdicts}


def past(values, metric="val_accuracy"):
    return {metric: [Past(str(at), metric, float(value)) for at, value in enumerate(values)]}


def test_a_drop_from_90_to_70_percent_is_a_regression():
    found = held(later(val_accuracy=0.7), snapshot())
    worst = found.regressions[0]

    assert (worst.metric, worst.severity) == ("val_accuracy", Severity.CRITICAL)
    assert (worst.current_value, worst.previous_value) == (0.7, 0.9)
    assert worst.magnitude == pytest.approx(0.2)
    assert found.overall_assessment.passed is False
    assert found.overall_assessment.critical_regressions == 1


def test_two_single_numbers_are_a_breach_and_not_a_proof():
    worst = held(later(val_accuracy=0.7), snapshot()).regressions[0]

    assert (worst.statistical, worst.basis) == (False, "scalars")
    assert "cannot separate change from noise" in worst.note
    assert worst.p_adjusted is None


def test_a_strictly_better_model_has_improvements_and_full_health():
    better = later(val_accuracy=0.95, val_loss=0.2, inference_latency_ms=40.0)
    found = held(better, snapshot())

    assert found.regressions == ()
    assert {each.metric for each in found.improvements} == {
        "val_accuracy", "val_loss", "inference_latency_ms",
    }  # fmt: skip
    assert found.overall_assessment.health_score == 1.0
    assert found.overall_assessment.passed is True
    assert all("worse" not in each.note for each in found.improvements)


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("val_loss", 0.4),
        ("memory_usage_mb", 120.0),
        ("model_size_mb", 50.0),
        ("inference_latency_ms", 60.0),
    ],
)
def test_every_metric_can_regress_and_improve_by_the_same_rule(metric, value):
    worse, better = later(**{metric: value}), snapshot()
    down = held(worse, better)
    up = held(snapshot(version="3", day=3), snapshot(metrics={metric: value}))

    assert [each.metric for each in down.regressions] == [metric]
    assert [each.metric for each in up.improvements] == [metric]
    assert up.regressions == down.improvements == ()


def test_a_custom_metric_regresses_too():
    found = held(later(custom={"f1": 0.7}), snapshot(custom={"f1": 0.8}))

    assert [each.metric for each in found.regressions] == ["f1"]


def test_a_metric_of_unknown_direction_is_not_judged():
    found = held(later(custom={"sparkle": 1.0}), snapshot(custom={"sparkle": 9.0}))

    assert outcomes(found)["sparkle"] == "unknown"
    assert found.overall_assessment.unknown == 1
    assert found.overall_assessment.passed is True


def test_less_than_the_margin_is_no_regression_and_costs_nothing():
    found = held(later(val_accuracy=0.895, inference_latency_ms=52.0), snapshot())

    assert found.regressions == ()
    assert found.overall_assessment.health_score == 1.0


def test_900_against_891_of_a_thousand_is_inconclusive():
    left = bare(metrics={"val_accuracy": 0.900}, evaluation={"n": 1000})
    right = bare(version="2", day=2, metrics={"val_accuracy": 0.891}, evaluation={"n": 1000})
    found = held(right, left)

    assert outcomes(found) == {"val_accuracy": "inconclusive"}
    assert found.overall_assessment.passed is None
    assert found.verdicts[0].p == pytest.approx(0.51, abs=0.005)


def test_severity_is_taken_of_the_sure_part_of_the_loss():
    random = np.random.default_rng(0)
    left = examples(random.random(400) < 0.9)
    right = examples(random.random(400) < 0.75)
    found = held(bare(version="2", day=2, evals=right), bare(evals=left))
    worst = found.regressions[0]

    assert worst.statistical
    assert worst.interval.low < worst.magnitude
    assert (
        worst.severity
        is severity(worst.interval.low, worst.margin, 0.9, thresholds_of(Policy()))[0]
    )


@pytest.mark.parametrize(
    ("loss", "named"),
    [
        (1.0, Severity.MINOR),
        (4.9, Severity.MINOR),
        (5.0, Severity.MAJOR),
        (10.0, Severity.CRITICAL),
    ],
)
def test_severity_counts_margins(loss, named):
    assert severity(loss, 1.0, 100.0, thresholds_of(Policy()))[0] is named


def test_a_policy_may_call_small_regressions_negligible_and_let_them_pass():
    policy = Policy({"regressions": {"minor": 3.0}})
    found = held(later(val_accuracy=0.885), snapshot(), policy=policy)

    assert [each.severity for each in found.regressions] == [Severity.NEGLIGIBLE]
    assert found.overall_assessment.passed is True
    assert found.overall_assessment.health_score == pytest.approx(0.95)


def test_a_baseline_of_zero_is_no_crash_and_no_infinity():
    found = held(later(custom={"errors": 3.0}), snapshot(custom={"errors": 0.0}))

    assert [each.metric for each in found.regressions] == ["errors"]
    assert found.regressions[0].severity is Severity.MINOR
    assert found.regressions[0].relative is None


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_more_sensitive_never_finds_fewer(drop, one, other):
    baseline = bare(metrics={"val_accuracy": 1.0})
    current = bare(version="2", day=2, metrics={"val_accuracy": 1.0 - drop})
    less, more = (
        len(held(current, baseline, config=Config(regression_sensitivity=each)).regressions)
        for each in sorted((one, other))
    )

    assert less <= more


severities = st.lists(st.sampled_from(list(Severity)), max_size=6)


@given(severities, st.sampled_from(list(Severity)))
def test_health_never_rises_with_another_regression(found, further):
    steps = thresholds_of(Policy())

    assert 0 <= health([*found, further], steps) <= health(found, steps) <= 1


def test_health_falls_with_severity_and_is_zero_with_a_critical_one():
    steps = thresholds_of(Policy())
    scores = [health([each], steps) for each in reversed(Severity)]

    assert scores == sorted(scores, reverse=True)
    assert scores[-1] == 0.0


def test_nothing_recorded_is_no_health():
    found = held(bare(version="2"), bare()).overall_assessment

    assert (found.health_score, found.passed, found.checked) == (None, None, 0)
    assert found.missing[0].field == "health_score"


def test_causes_are_what_changed_and_not_a_high_learning_rate():
    baseline = snapshot(training_config={"learning_rate": 0.01, "batch_size": 32})
    current = snapshot(version="2", day=2, metrics={"val_accuracy": 0.7},
                       training_config={"learning_rate": 0.001, "batch_size": 32})  # fmt: skip
    found = held(current, baseline).regressions[0]

    assert found.possible_causes == (
        "training: learning_rate 0.01 -> 0.001 (observed together, not shown to be the cause)",
    )
    assert found.suggested_fixes == (
        "hypothesis to test: set learning_rate back to 0.01 and measure again",
    )


def test_nothing_changed_means_no_cause_and_no_fix():
    found = held(later(val_accuracy=0.7), snapshot()).regressions[0]

    assert (found.possible_causes, found.suggested_fixes) == ((), ())


@pytest.mark.parametrize(
    ("left", "right", "said"),
    [
        ({}, {}, "nothing can have changed"),
        ({"day": 3}, {"version": "2", "day": 2}, "is older than the baseline"),
    ],
)
def test_the_same_version_and_a_reversed_order_are_warned_of(left, right, said):
    assert any(said in each for each in held(snapshot(**right), snapshot(**left)).warnings)


@pytest.mark.parametrize(
    ("field", "metric"), [("fingerprint", "val_accuracy"), ("hardware", "inference_latency_ms")]
)
def test_figures_of_other_data_or_hardware_are_not_judged(field, metric):
    baseline = snapshot(evaluation={field: "one"})
    current = snapshot(version="2", day=2, evaluation={field: "other"}, metrics={metric: 0.1})
    found = held(current, baseline)

    assert outcomes(found)[metric] == "unknown"
    assert found.overall_assessment.passed is None
    assert any("different" in each for each in found.warnings)


def test_a_value_within_the_noise_of_past_versions_is_no_regression():
    random = np.random.default_rng(1)
    noise = random.normal(0.9, 0.02, 30)
    found = held(later(val_accuracy=0.88), snapshot(), history=past(noise))

    assert outcomes(found)["val_accuracy"] == "inconclusive"
    assert found.verdicts[0].basis == "history"
    assert found.histories[0].limits.low < 0.88


def test_a_value_far_out_of_the_past_is_a_regression():
    random = np.random.default_rng(1)
    found = held(later(val_accuracy=0.8), snapshot(), history=past(random.normal(0.9, 0.005, 30)))

    assert found.regressions[0].basis == "history"
    assert found.regressions[0].statistical


def test_only_the_present_level_of_the_past_counts_as_noise():
    random = np.random.default_rng(2)
    levels = [*random.normal(0.6, 0.004, 15), *random.normal(0.9, 0.004, 15)]
    found = held(later(val_accuracy=0.75), snapshot(), history=past(levels))

    assert found.regressions[0].metric == "val_accuracy"
    assert found.histories[0].change_points[0].version == "15"
    assert any("changed its level" in said for said in found.warnings)


def test_a_slow_drift_raises_an_alarm_with_its_price():
    random = np.random.default_rng(3)
    values = random.normal(0.9, 0.01, 40)
    values[25:] -= np.linspace(0, 0.02, 15)
    found = held(later(val_accuracy=0.88), snapshot(), history=past(values))

    assert found.histories[0].alarms
    assert found.histories[0].in_control_run_length == pytest.approx(465, abs=1)


def test_seeds_that_do_not_vary_are_not_passed_over():
    found = held(bare(version="2", day=2, replicates={"f1": (0.7,) * 6}),
                 bare(replicates={"f1": (0.9,) * 6}))  # fmt: skip

    assert outcomes(found) == {"f1": "breached"}
    assert found.overall_assessment.passed is False
    assert "its samples do not vary" in found.verdicts[0].note


@pytest.mark.parametrize("after", [(0.7, 0.71, 0.72), (0.9, 0.91, 0.92)], ids=["worse", "equal"])
def test_too_few_seeds_cannot_tell_and_say_how_many_are_needed(after):
    found = held(bare(version="2", day=2, replicates={"f1": after}),
                 bare(replicates={"f1": (0.9, 0.91, 0.92)}))  # fmt: skip

    assert outcomes(found) == {"f1": "unknown"}
    assert found.overall_assessment.verdict == "cannot_tell"
    assert "3 values on a side, a verdict needs 5" in found.verdicts[0].needs


@pytest.mark.parametrize("size", [1, 2, 4, 5])
def test_fewer_equal_examples_never_pass_where_more_cannot_tell(size):
    same = examples([1] * size, "score")
    found = held(bare(version="2", day=2, evals=same), bare(evals=same))

    assert found.overall_assessment.verdict == "cannot_tell"


def test_single_numbers_pass_by_a_threshold_and_that_is_said():
    found = held(later(val_accuracy=0.9), snapshot())

    assert found.overall_assessment.verdict == "passed"
    assert "no test" in found.overall_assessment.recommendation


def test_a_limit_that_is_passed_fails_however_small_the_loss():
    policy = Policy(metrics={"score": MetricRule(threshold=0.97, margin=0.5)})
    same = examples([1] * 90 + [0] * 10, "score")
    found = held(bare(version="2", day=2, evals=same), bare(evals=same), policy=policy)

    assert outcomes(found) == {"score": "breached"}
    assert found.overall_assessment.verdict == "failed"


def test_a_history_without_any_noise_leaves_the_two_numbers():
    found = held(later(val_accuracy=0.7), snapshot(), history=past([0.9] * 6))

    assert outcomes(found)["val_accuracy"] == "breached"
    assert found.regressions[0].previous_value == 0.9


def test_a_metric_that_is_no_longer_recorded_is_warned_of():
    found = held(snapshot(version="2", day=2), snapshot(custom={"f1": 0.9}))

    assert any(said.startswith("f1: recorded of the baseline only") for said in found.warnings)


def test_a_margin_of_the_policy_decides():
    policy = Policy(metrics={"val_accuracy": MetricRule(margin=0.3)})

    assert held(later(val_accuracy=0.7), snapshot(), policy=policy).regressions == ()


def test_a_limit_in_the_metrics_own_units_is_a_breach():
    policy = Policy(metrics={"inference_latency_ms": MetricRule(threshold=51.0)})
    found = held(later(inference_latency_ms=52.0), snapshot(), policy=policy)

    assert outcomes(found)["inference_latency_ms"] == "breached"


@given(st.dictionaries(st.sampled_from(["f1", "loss", "sparkle", "errors"]),
                       st.tuples(*[st.floats(-5, 5).map(lambda v: round(v, 2))] * 2),
                       max_size=4))  # fmt: skip
def test_every_result_survives_json_and_counts_add_up(pairs):
    before, after = ({name: pair[at] for name, pair in pairs.items()} for at in (0, 1))
    baseline = bare(metrics={"custom_metrics": before})
    current = bare(version="2", day=2, metrics={"custom_metrics": after})
    found = held(current, baseline)
    total = found.overall_assessment

    assert RegressionDetectionResult.from_json(found.to_json()) == found
    assert total.checked + total.unknown == len(pairs)
    assert sum(total.by_severity.values()) == len(found.regressions)


def test_swapping_the_versions_turns_regressions_into_improvements():
    one = snapshot(metrics={"val_accuracy": 0.7, "val_loss": 0.5})
    other = snapshot(version="2", metrics={"val_accuracy": 0.8, "val_loss": 0.4})

    assert {each.metric for each in held(one, other).regressions} == {
        each.metric for each in held(other, one).improvements
    }


@replicates
def test_equal_models_on_the_same_examples_regress_in_five_percent_at_most(repeats):
    random = np.random.default_rng(21)
    alarms = 0
    for _ in range(repeats):
        hard = random.random(150)
        left, right = (examples((random.random(150) < 0.8 * hard + 0.2) * 1.0) for _ in range(2))
        sure = Config(metrics={"accuracy": MetricRule(margin=0.0)})
        found = held(bare(version="2", day=2, evals=right), bare(evals=left), config=sure)
        alarms += bool(found.regressions)

    assert alarms / repeats <= 0.05 + 3 * (0.05 * 0.95 / repeats) ** 0.5


@replicates
def test_a_quiet_history_raises_a_false_alarm_in_five_percent_at_most(repeats):
    random = np.random.default_rng(22)
    sure = Config(metrics={"score": MetricRule("higher", margin=0.0)})
    alarms = 0
    for _ in range(repeats):
        values = random.normal(size=13)
        current = bare(version="99", day=2, metrics={"custom_metrics": {"score": values[-1]}})
        baseline = bare(metrics={"custom_metrics": {"score": values[-2]}})
        found = held(current, baseline, config=sure, history=past(values[:-1], "score"))
        alarms += bool(found.regressions) or bool(found.improvements)

    assert alarms / repeats <= 0.05 + 3 * (0.05 * 0.95 / repeats) ** 0.5 + 0.01


@replicates
def test_a_loss_of_ten_points_is_found_as_often_as_it_can_be(repeats):
    random = np.random.default_rng(23)
    hits = 0
    for _ in range(repeats // 3):
        left = examples(random.random(400) < 0.9)
        right = examples(random.random(400) < 0.8)
        hits += bool(held(bare(version="2", day=2, evals=right), bare(evals=left)).regressions)

    assert hits / (repeats // 3) > 0.9
