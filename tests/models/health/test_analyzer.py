"""The analyzer as a whole: laws that hold whatever is looked at."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflens.core.errors import InvalidConfig, UnknownName
from difflens.models.health.analyzer import WeightAnalyzer
from difflens.models.health.layers import analyse_weights
from difflens.models.health.records import (
    GradientExplosionAnalysis,
    WeightConfig,
    WeightDistributionAnalysis,
    WeightDriftAnalysis,
)
from difflens.models.health.streaming import open_tensors

SPECIAL = st.sampled_from([0.0, -0.0, np.nan, np.inf, -np.inf, 1e-40, 3e38])
VALUES = st.lists(st.floats(-10, 10, width=32) | SPECIAL, max_size=24)
MODELS = st.dictionaries(st.sampled_from(["a.weight", "b.bias", "ln.weight", "wte.weight", "c"]),
                         VALUES, max_size=4)  # fmt: skip


def arrays(model):
    return {name: np.array(each, np.float32).reshape(-1, 2) if len(each) % 2 == 0
            else np.array(each, np.float32) for name, each in model.items()}  # fmt: skip


@given(MODELS, st.randoms(use_true_random=False))
def test_the_order_of_layers_changes_nothing_but_their_order(model, random):
    shuffled = list(arrays(model).items())
    random.shuffle(shuffled)

    one = WeightAnalyzer().analyze_weight_distribution(arrays(model))
    other = WeightAnalyzer().analyze_weight_distribution(dict(shuffled))

    stats = [
        {each.name: each.statistics for each in found.layer_analyses} for found in (one, other)
    ]
    assert stats[0] == stats[1]
    assert one.distribution_health.status == other.distribution_health.status
    assert one.overall_statistics.median == other.overall_statistics.median
    assert one.overall_statistics.entropy == pytest.approx(other.overall_statistics.entropy)
    assert one.outlier_count == other.outlier_count


@pytest.mark.parametrize("exact", [10_000_000, 500])
@pytest.mark.parametrize("step", [2, 7, 64, 1000])
def test_the_size_of_pieces_does_not_matter(exact, step):
    random = np.random.default_rng(0)
    weights = {
        "a.weight": random.standard_t(3, size=(40, 30)).astype(np.float32),
        "dense/kernel": random.normal(size=(10, 7)),
        "b.bias": np.array([np.nan, 1, 2, 4, 8]),
    }
    weights["a.weight"][3] = 0
    config = WeightConfig(exact_elements=exact)

    with open_tensors(weights) as tensors:
        one, other = (analyse_weights(tensors, config, {}, step=size) for size in (1 << 18, step))

    for left, right in zip(one.layer_analyses, other.layer_analyses, strict=True):
        assert left.statistics.mean == pytest.approx(right.statistics.mean, rel=1e-12, abs=1e-15)
        assert left.statistics.kurtosis == pytest.approx(right.statistics.kurtosis, rel=1e-9)
        assert left.statistics.quantiles == right.statistics.quantiles
        assert left.statistics.entropy == right.statistics.entropy
        assert (left.zero_rows, left.outlier_count) == (right.zero_rows, right.outlier_count)
        assert left.outliers == right.outliers


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_change_nothing(threads):
    weights = [np.random.default_rng(i).normal(size=(30, 20)) for i in range(12)]

    one = WeightAnalyzer().analyze_weight_distribution(weights)
    other = WeightAnalyzer().analyze_weight_distribution(weights, threads=threads)

    assert one.to_json() == other.to_json()


def test_outliers_of_a_tensor_too_large_to_hold_are_found_by_a_second_pass():
    weights = np.random.default_rng(0).normal(size=(100, 100)).astype(np.float32)
    weights[20, 30], weights[99, 0] = 50, -60

    held, streamed = (
        WeightAnalyzer({"exact_elements": most}).analyze_weight_distribution({"w": weights})
        for most in (10_000, 9_999)
    )

    assert held.outlier_count == streamed.outlier_count == 2
    assert [far.index for far in streamed.outlier_detection] == [(99, 0), (20, 30)]
    assert [far.z_score for far in streamed.outlier_detection] == pytest.approx(
        [far.z_score for far in held.outlier_detection], rel=1e-3
    )


@given(MODELS)
def test_every_answer_is_json_both_ways_and_explains_its_nulls(model):
    weights = arrays(model)
    analyzer = WeightAnalyzer()
    answers = (
        (WeightDistributionAnalysis, analyzer.analyze_weight_distribution(weights)),
        (GradientExplosionAnalysis, analyzer.detect_gradient_explosion(weights, 1.0)),
        (WeightDriftAnalysis, analyzer.analyze_weight_drift(weights, weights)),
    )

    for kind, answer in answers:
        assert kind.from_json(answer.to_json()) == answer
        assert "<table>" in answer._repr_html_()
        json.loads(answer.to_json(), parse_constant=pytest.fail)
    for layer in answers[0][1].layer_analyses:
        assert layer.unexplained() == []
        assert layer.statistics.unexplained() == []


def test_two_runs_give_the_same_bytes():
    """DX-01."""
    weights = [np.random.default_rng(i).normal(size=(30, 20)) for i in range(5)]

    first, second = (WeightAnalyzer().analyze_weight_distribution(weights) for _ in range(2))

    assert first.to_json() == second.to_json()


def test_settings_may_be_a_plain_map():
    assert WeightAnalyzer({"skewness": 3}).config == WeightConfig(skewness=3)
    assert WeightAnalyzer(WeightConfig(skewness=3)).config.skewness == 3


def test_a_misspelt_setting_is_refused():
    with pytest.raises(UnknownName, match="no setting is called 'skewnes'"):
        WeightAnalyzer({"skewnes": 3})
    with pytest.raises(InvalidConfig, match="skewness is -1"):
        WeightAnalyzer({"skewness": -1})


def test_progress_is_told_every_byte_once():
    told = []
    weights = {"a": np.zeros((10, 10)), "b": np.zeros(7, np.float32)}

    WeightAnalyzer().analyze_weight_distribution(weights, progress=told.append)

    assert told == [800, 28]


def test_numbers_at_the_ends_of_64_bits_are_answered():
    weights = {"a": [1.7e308, -1.7e308, 1.0], "b": [5e-324, -5e-324, 0.0], "c": [1e200, 1e-200]}

    found = WeightAnalyzer().analyze_weight_distribution(weights)

    assert found.layer_analyses[0].statistics.std_dev == pytest.approx(1.388e308, rel=1e-3)
    assert found.layer_analyses[0].statistics.l2 is None
    assert found.overall_statistics.unexplained() == []
