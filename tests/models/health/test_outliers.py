"""Outliers: robust, signed, counted, with a cut-off that grows with their number."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from simulation import near, replicates

from difflens.models.health.analyzer import WeightAnalyzer
from difflens.models.health.records import OutlierSeverity, WeightConfig
from difflens.models.health.statistics import cutoff, scale_of

VECTOR_9 = [0.1, 0.12, 0.09, 0.11, 0.1, 0.13, 0.08, 5.0]


def looked(values, **config):
    return WeightAnalyzer(WeightConfig(**config)).analyze_weight_distribution({"w": values})


def test_one_wild_value_among_eight_is_found():
    """DB-14, vector 9: mean and deviation hold the value itself, and give it a z of 2.646."""
    found = looked(VECTOR_9)

    (far,) = found.outlier_detection
    assert far.z_score == pytest.approx(220.11, abs=0.005)
    assert (far.value, far.weight_index, far.severity) == (5.0, 7, OutlierSeverity.HIGH)
    scale = scale_of(0.105, 0.015, 0.0)
    assert scale is not None
    assert np.abs(scale.z(VECTOR_9[:-1])).max() < 1.13


def test_a_million_normal_weights_do_not_have_thousands_of_outliers():
    """DB-14: a fixed cut-off of 3 flags 2,700 of them by chance, and keeps them all."""
    values = np.random.default_rng(0).normal(size=1_000_000).astype(np.float32)

    assert looked(values).outlier_count == 0


@pytest.mark.parametrize("n", [10, 1000, 10**6, 10**9])
def test_the_cutoff_is_the_normal_quantile_of_alpha_over_n(n):
    wanted = max(3.5, stats.norm.isf(0.01 / (2 * n)))

    assert cutoff(n, 0.01, 3.5) == pytest.approx(wanted)


def test_the_side_the_place_and_the_name_are_told():
    """DB-16: an absolute z and a flat index lose the side and the place."""
    weights = np.random.default_rng(1).normal(size=(20, 30, 2))
    weights[7, 3, 1] = -40.0

    far = looked(weights).outlier_detection[0]

    assert far.z_score < -20
    assert far.index == (7, 3, 1)
    assert weights.reshape(-1)[far.weight_index] == -40
    assert far.name == "w"


@pytest.mark.parametrize("values", [[], [3.0], [2.0] * 50, [0.0] * 9])
def test_equal_or_no_values_are_answered_with_a_reason(values):
    """DB-15: zero over zero, and silently nothing."""
    (layer,) = looked(values).layer_analyses

    assert layer.outliers == ()
    assert layer.outlier_cutoff is None
    assert {each.field for each in layer.missing} >= {"outlier_cutoff"}
    assert layer.outlier_count == (0 if values else None)


def test_mostly_equal_values_are_judged_by_their_mean_deviation():
    values = np.zeros(1000)
    values[:100] = 1.0
    values[5] = 50.0

    (far,) = looked(values).outlier_detection[:1]

    mean_deviation = np.abs(values).mean()
    assert far.z_score == pytest.approx(0.7979 * 50 / mean_deviation)


def test_all_are_counted_and_the_farthest_kept():
    values = np.random.default_rng(2).normal(size=10_000)
    values[100:150] = np.arange(50) + 100.0

    found = looked(values, top_outliers=3, listed_outliers=2)

    assert found.outlier_count == 50
    assert [far.value for far in found.layer_analyses[0].outliers] == [149, 148, 147]
    assert [far.value for far in found.outlier_detection] == [149, 148]


def test_a_value_just_beyond_is_medium():
    values = np.linspace(-1, 1, 1001)
    values[0] = -4.5

    (far,) = looked(values).outlier_detection

    assert far.severity == OutlierSeverity.MEDIUM


@given(st.floats(0.01, 100), st.integers(0, 7))
def test_scale_changes_no_outlier(scale, place):
    values = np.random.default_rng(3).normal(size=500)
    values[place] = 30.0

    one, other = looked(values).outlier_detection, looked(values * scale).outlier_detection

    assert [far.weight_index for far in one] == [far.weight_index for far in other]
    assert [far.z_score for far in one] == pytest.approx([far.z_score for far in other])


def test_numbers_at_both_ends_of_what_is_possible_have_outliers():
    found = looked([1e-300, 2e-300, 3e-300, -1e-300, 1.5e-300, 1e300])

    assert found.outlier_detection[0].value == 1e300


@replicates
def test_normal_tensors_have_an_outlier_as_rarely_as_promised(repeats):
    random = np.random.default_rng(4)
    # The median absolute deviation of 2,000 values is itself off by 2 %: the slack.
    alarms = sum(
        bool(looked(random.normal(size=2000), outlier_alpha=0.05).outlier_count)
        for _ in range(repeats)
    )

    assert near(alarms / repeats, 0.05, repeats, slack=0.02)
