import pytest
from hypothesis import given
from hypothesis import strategies as st
from versions.recorded import bare, examples, snapshot

from difflens.core.policy import MetricRule, Policy
from difflens.diffs.evidence.records import Latency
from difflens.versions.compare import compare
from difflens.versions.metrics import BUILTIN, depends_on, known, relative, rules
from difflens.versions.records.snapshots import DifferentialDebuggingConfig as Config


def rule(metric, reference=0.9, config=None, policy=None):
    return rules({metric: reference}, config or Config(), policy or Policy())[metric]


def test_every_metric_of_a_snapshot_is_known_not_only_five():
    found = known(snapshot(custom={"f1": 0.8}, metrics={"test_accuracy": 0.88, "flops": 10}))

    assert list(found)[:2] == ["val_accuracy", "test_accuracy"]
    assert {"f1", "flops", "val_loss", "memory_usage_mb"} <= set(found)


def test_a_custom_metric_that_is_not_a_number_is_not_known():
    assert "f1" not in known(snapshot(custom={"f1": "NaN"}))


def test_seeds_examples_and_latencies_are_metrics_too():
    found = known(
        bare(
            replicates={"f1": (0.8, 0.9)},
            evals=examples([1, 0, 1, 1]),
            latency_samples=[Latency(float(ms)) for ms in range(1, 102)],
        )
    )

    assert found["f1"][:2] == (pytest.approx(0.85), "seeds")
    assert found["accuracy"][:2] == (0.75, "evals")
    assert found["inference_latency_ms"][:2] == (51.0, "latency")
    assert found["latency_p95_ms"].value == 96.0


def test_a_recorded_number_that_its_samples_contradict_is_told():
    odd = known(snapshot(replicates={"val_accuracy": (0.5, 0.6)}))["val_accuracy"]
    fine = known(snapshot(replicates={"val_accuracy": (0.85, 0.95)}))["val_accuracy"]

    assert "recorded as 0.9" in odd.note
    assert fine.note == ""


def test_directions_come_from_the_user_then_the_table_then_the_name():
    lower = Policy(metrics={"val_accuracy": MetricRule("lower")})

    assert rule("val_accuracy").direction == "higher"
    assert rule("model_size_mb").direction == "lower"
    assert rule("bleu").direction == "higher"
    assert rule("sparkle").direction is None
    assert rule("val_accuracy", policy=lower).direction == "lower"


def test_a_policy_goes_before_the_configuration():
    config = Config(metrics={"f1": MetricRule(margin=0.5)})
    policy = Policy(metrics={"f1": MetricRule(margin=0.1)})

    assert rule("f1", config=config).margin == 0.5
    assert rule("f1", config=config, policy=policy).margin == 0.1


def test_margins_are_points_of_a_share_and_percent_of_anything_else():
    assert rule("val_accuracy").margin == pytest.approx(0.008)
    assert rule("f1").margin == pytest.approx(0.008)
    assert rule("inference_latency_ms", 50.0).margin == pytest.approx(2.5)
    assert rule("bleu", 40.0).margin == pytest.approx(2.0)
    assert rule("sparkle", 40.0).margin is None


@given(st.floats(0, 1), st.floats(0, 1))
def test_more_sensitive_never_means_a_wider_margin(one, other):
    less, more = sorted((one, other))
    margins = [rule("val_accuracy", config=Config(regression_sensitivity=each)).margin
               for each in (less, more)]  # fmt: skip

    assert margins[1] <= margins[0]


@pytest.mark.parametrize(
    ("reference", "value"), [(0.0, 1.0), (1e-300, 1.0), (-2.0, -1.0), (1.0, -1.0)]
)
def test_a_ratio_without_a_zero_that_means_none_is_not_given(reference, value):
    assert relative(reference, value) is None


def test_latency_depends_on_the_hardware_and_accuracy_on_the_data():
    assert depends_on("inference_latency_ms") == depends_on("latency_p95_ms") == "hardware"
    assert depends_on("val_accuracy") == depends_on("f1") == "data"
    assert depends_on("model_size_mb") == "model"
    assert all(each.direction for each in BUILTIN.values())


def test_numbers_too_large_to_be_squared_are_left_out_of_everything():
    huge = bare(
        metrics={"val_loss": 1e200, "custom_metrics": {"f1": -1e300}},
        replicates={"bleu": (1e200, 1.0)},
        evals=examples([1.0, 1e200]),
        latency_samples=[Latency(1e300), Latency(2.0)],
    )
    found = known(huge)

    assert set(found) == {"accuracy", "inference_latency_ms", "latency_p95_ms"}
    assert compare({"a": huge, "b": bare("b", evals=examples([1.0, 0.0]))}).models == ("a", "b")
