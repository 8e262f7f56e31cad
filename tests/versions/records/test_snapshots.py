"""Snapshots: what can be recorded, what is refused and how that is said."""

import math
import uuid
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflens.core.errors import InvalidConfig, SnapshotError
from difflens.diffs.evidence.records import Example, Latency
from difflens.versions.records.snapshots import (
    ArchitectureInfo,
    DifferentialDebuggingConfig,
    ModelMetrics,
    ModelSnapshot,
    TensorSummary,
    TrainingConfig,
    WeightsSummary,
)

NAN, INF = math.nan, math.inf
finite = st.floats(allow_nan=False, allow_infinity=False)
share = st.floats(0, 1)
positive = st.floats(0, 1e300)
counts = st.integers(0, 2**64 - 1)
words = st.text(st.characters(exclude_categories=["C", "Zl", "Zp", "Zs"]), min_size=1, max_size=40)
keys = words.filter(lambda each: "@" not in each and each.isprintable())
some = st.none
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | finite | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
metrics = st.builds(
    ModelMetrics,
    val_accuracy=some() | share,
    test_loss=some() | finite,
    inference_latency_ms=some() | positive,
    flops=some() | counts,
    custom_metrics=st.dictionaries(keys, st.floats() | counts, max_size=4),
)
training = st.builds(
    TrainingConfig,
    learning_rate=some() | positive,
    optimizer=some() | words,
    regularization=st.dictionaries(words, st.floats(), max_size=3),
    settings=st.dictionaries(words, anything, max_size=3),
)
snapshots = st.builds(
    ModelSnapshot,
    name=keys,
    version=keys,
    id=st.uuids(),
    timestamp=st.datetimes(timezones=st.just(UTC)),
    metrics=metrics,
    architecture=st.builds(ArchitectureInfo, parameter_count=some() | counts),
    training_config=training,
    weights_summary=st.builds(
        WeightsSummary,
        mean=some() | finite,
        tensors=st.tuples(
            st.builds(
                TensorSummary,
                name=words,
                dtype=st.just("F32"),
                shape=st.tuples(counts, counts),
                count=counts,
            )
        ),
    ),
    metadata=st.dictionaries(words, words, max_size=3),
    replicates=st.dictionaries(keys, st.lists(finite, max_size=4), max_size=2),
    evals=st.lists(st.builds(Example, id=words, score=finite), max_size=3),
    latency_samples=st.lists(st.builds(Latency, ms=positive), max_size=3),
)


@given(snapshots)
def test_a_snapshot_comes_back_from_json_and_from_plain_data_as_it_was(snapshot):
    assert ModelSnapshot.from_json(snapshot.to_json()) == snapshot
    assert ModelSnapshot.from_dict(snapshot.to_dict()) == snapshot


@given(snapshots)
def test_every_null_of_a_section_has_its_reason(snapshot):
    for section in ("metrics", "architecture", "training_config", "weights_summary"):
        record = getattr(snapshot, section)

        assert record.unexplained() == []
        assert {each.field for each in record.missing} == {
            field for field in record.__struct_fields__ if getattr(record, field) is None
        }


def test_plain_maps_numpy_numbers_and_lists_become_plain_data():
    snapshot = ModelSnapshot(
        name="m",
        version="1",
        metrics={"val_accuracy": np.float32(0.5), "flops": np.int64(7)},
        replicates={"f1": np.array([0.25, 0.5])},
        replicate_ids=["a", "b"],
    )

    assert type(snapshot.metrics.val_accuracy) is float
    assert type(snapshot.metrics.flops) is int
    assert snapshot.replicates == {"f1": (0.25, 0.5)}
    assert snapshot.replicate_ids == ("a", "b")


def test_a_time_is_put_into_utc():
    moment = datetime(2026, 4, 27, 12, 0, tzinfo=timezone(timedelta(hours=2)))

    assert ModelSnapshot(name="m", version="1", timestamp=moment).timestamp == (
        "2026-04-27T10:00:00.000000Z"
    )


def test_id_and_time_are_made_where_they_are_not_given_and_differ():
    first, second = (ModelSnapshot(name="m", version="1") for _ in range(2))

    assert uuid.UUID(first.id) != uuid.UUID(second.id)
    assert first.timestamp <= second.timestamp
    assert first.timestamp.endswith("Z")


def test_metrics_of_the_user_that_are_not_finite_are_kept_as_words():
    given_metrics = {"a": NAN, "b": INF, "c": -INF, "d": 2**64 - 1, "e": -0.0}

    kept = ModelMetrics(custom_metrics=given_metrics).custom_metrics

    assert kept == {"a": "NaN", "b": "Infinity", "c": "-Infinity", "d": 2**64 - 1, "e": 0.0}
    assert math.copysign(1, kept["e"]) == -1
    assert ModelMetrics.from_dict({"custom_metrics": kept}).custom_metrics == kept


def test_a_reason_given_is_kept_and_one_for_what_is_known_is_taken_away():
    known = ModelMetrics(val_loss=1.0, missing=ModelMetrics().missing)

    assert "val_loss" not in {each.field for each in known.missing}
    assert "test_loss" in {each.field for each in known.missing}


def snapshot(**fields: Any) -> ModelSnapshot:
    return ModelSnapshot(**{"name": "m", "version": "1", **fields})


def weights(**fields: Any) -> WeightsSummary:
    return WeightsSummary(**fields)


REFUSED = [
    (ModelMetrics, {"val_accuracy": NAN}, "val_accuracy is nan; it must be a finite number"),
    (ModelMetrics, {"val_loss": INF}, "val_loss is inf; it must be a finite number"),
    (ModelMetrics, {"val_accuracy": 1.5}, "val_accuracy is 1.5; it must be between 0 and 1"),
    (ModelMetrics, {"test_accuracy": -0.1}, "test_accuracy is -0.1; it must be between 0 and 1"),
    (ModelMetrics, {"train_loss": "low"}, "train_loss is 'low', not a number"),
    (ModelMetrics, {"train_loss": True}, "train_loss is True, not a number"),
    (ModelMetrics, {"inference_latency_ms": -1}, "inference_latency_ms is -1; it must be at least"),
    (ModelMetrics, {"memory_usage_mb": -1.0}, "memory_usage_mb is -1.0; it must be at least 0"),
    (ModelMetrics, {"flops": 1.5}, "flops is 1.5, not a whole number"),
    (ModelMetrics, {"flops": 2**64}, "flops is 18446744073709551616; it must lie between 0 and"),
    (ModelMetrics, {"custom_metrics": {"": 1}}, "a custom metric's name is empty"),
    (ModelMetrics, {"custom_metrics": {"f1": None}}, "custom_metrics.f1 is null; leave it out"),
    (
        ModelMetrics,
        {"custom_metrics": {"f1": "high"}},
        "custom_metrics.f1 is 'high'; it must be one of",
    ),
    (ModelMetrics, {"custom_metrics": {"f1": 10**400}}, "custom_metrics.f1 is too large"),
    (ModelMetrics, {"custom_metrics": {1: 1}}, "custom_metrics has the key 1; keys must be text"),
    (ArchitectureInfo, {"depth": -1}, "depth is -1; it must lie between 0"),
    (TrainingConfig, {"learning_rate": -1}, "learning_rate is -1; it must be at least 0"),
    (TrainingConfig, {"batch_size": 0.5}, "batch_size is 0.5, not a whole number"),
    (weights, {"min": 2.0, "max": 1.0}, "min is 2.0, above max, which is 1.0"),
    (weights, {"min": 0.0, "max": 1.0, "mean": 3.0}, "mean is 3.0; it must be between"),
    (weights, {"std_dev": -1.0}, "std_dev is -1.0; it must be at least 0"),
    (weights, {"percentiles": {"p5": 3.0, "p50": 2.0}}, "percentile p5 is 3.0, above percentile"),
    (weights, {"max": 1.0, "percentiles": {"p99": 2.0}}, "percentile p99 is 2.0, above max"),
    (weights, {"sparsity": 1.1}, "sparsity is 1.1; it must be between 0 and 1"),
    (weights, {"sparsity": 0.5, "zero_count": 0}, "sparsity is 0.5, but zero_count is 0"),
    (weights, {"sparsity": 0.5, "zero_count": 1, "count": 10}, "sparsity is 0.5, but 1 of 10"),
    (weights, {"zero_count": 11, "count": 10}, "zero_count is 11, of 10 elements"),
    (snapshot, {"name": ""}, "name is empty"),
    (snapshot, {"name": "  "}, "name is empty"),
    (snapshot, {"name": 3}, "name is 3, not text"),
    (snapshot, {"name": "a@b"}, "name is 'a@b'; '@' separates a name from its version"),
    (snapshot, {"name": "a\x00b"}, "name is 'a\\x00b'; it must be printable"),
    (snapshot, {"name": "a\ud800"}, "name is 'a\\ud800', which is not valid Unicode"),
    (snapshot, {"name": "a" * 256}, "name has 256 characters, 255 are allowed"),
    (snapshot, {"version": ""}, "version is empty"),
    (snapshot, {"id": "seven"}, "id is 'seven', not a UUID"),
    (snapshot, {"timestamp": "soon"}, "timestamp is 'soon', not a time in RFC 3339"),
    (snapshot, {"timestamp": "2026-01-01T00:00:00"}, "which has no time zone"),
    (snapshot, {"timestamp": "0001-01-01T00:00:00+09:00"}, "which is out of range for UTC"),
    (snapshot, {"metrics": 3}, "metrics is 3, not a ModelMetrics"),
    (snapshot, {"metrics": {"val_loss": "x"}}, "not a ModelMetrics: Expected `float | null`"),
    (snapshot, {"metadata": {"a": 3}}, "metadata.a is 3, not text"),
    (snapshot, {"replicates": {"f1": [0.1, NAN]}}, "replicates.f1 is nan; it must be a finite"),
    (snapshot, {"replicates": {"f1": ["x"]}}, "replicates.f1 is 'x', not a number"),
    (snapshot, {"replicates": {"f1": [1.0]}, "replicate_ids": ["a", "b"]}, "f1 has 1 values, rep"),
    (snapshot, {"evals": [Example("7", NAN)]}, "the score of example 7 is nan"),
    (snapshot, {"latency_samples": [Latency(-1.0)]}, "a latency sample is -1.0 ms; it must be"),
]


def _named(value):
    """Say what a case is about, without an address: every process must call it alike."""
    return getattr(value, "__name__", str(value)[:40])


@pytest.mark.parametrize(("make", "fields", "said"), REFUSED, ids=_named)
def test_what_cannot_be_a_fact_is_refused_by_name(make, fields, said):
    with pytest.raises(SnapshotError) as refusal:
        make(**fields)

    assert said in str(refusal.value)


@pytest.mark.parametrize("text", [b"{", b"[]", b'{"name": "m"}', b'{"name": 3, "version": "1"}'])
def test_json_that_is_no_snapshot_is_refused(text):
    with pytest.raises(SnapshotError, match="not a ModelSnapshot"):
        ModelSnapshot.from_json(text)


def test_fields_that_a_newer_difflens_wrote_are_passed_over():
    assert ModelSnapshot.from_dict({"name": "m", "version": "1", "mood": "good"}).key == "m@1"


def test_sparsity_typed_in_with_two_decimals_is_no_contradiction():
    assert WeightsSummary(sparsity=0.33, zero_count=1, count=3).sparsity == 0.33


def test_the_config_has_the_defaults_of_the_contract():
    config = DifferentialDebuggingConfig()

    assert (config.significance_threshold, config.max_comparison_models) == (0.05, 10)
    assert (config.regression_sensitivity, config.performance_delta_threshold) == (0.8, 5.0)
    assert config.enable_model_comparison
    assert config.enable_ab_analysis
    assert config.enable_version_diff
    assert config.enable_regression_detection
    assert config.enable_performance_delta


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("significance_threshold", 0.0),
        ("significance_threshold", 1.0),
        ("significance_threshold", NAN),
        ("max_comparison_models", 1),
        ("regression_sensitivity", 1.5),
        ("performance_delta_threshold", -1.0),
        ("correction", "none"),
        ("seed", -1),
    ],
)
def test_a_setting_without_a_meaning_is_refused(field, value):
    with pytest.raises(InvalidConfig, match=field):
        DifferentialDebuggingConfig(**{field: value})


def test_a_record_shows_itself_in_a_notebook_and_its_names_stay_text():
    hostile = "<script>alert(1)</script>"
    text = ModelSnapshot(name="tiny", version="1", metadata={"note": hostile})._repr_html_()

    assert "<th>name</th><td>tiny</td>" in text
    assert hostile not in text
    assert "&lt;script&gt;" in text
