"""Statistics of tensors and of all together: those of numpy and scipy on the concatenation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from difflens.models.health.analyzer import WeightAnalyzer
from difflens.models.health.records import WeightConfig
from difflens.models.health.spread import Held
from difflens.models.health.statistics import NORMAL_TAILS, entropy, miller_madow, shannon

LAYERS = st.lists(
    st.lists(st.floats(-1e3, 1e3, width=32), min_size=1, max_size=30), min_size=1, max_size=5
)


def overall(layers, **config):
    found = WeightAnalyzer(WeightConfig(**config)).analyze_weight_distribution(layers)
    return found.overall_statistics


def test_a_small_layer_does_not_count_like_a_large_one():
    """DB-08, vector 8: unweighted averages give 6.75 and 1.059, and a least value of 0."""
    told = overall([[1, 2, 3, 4], [10, 12]])

    assert told.mean == pytest.approx(5.3333333, rel=1e-7)
    assert told.std_dev == pytest.approx(4.1499665, rel=1e-7)
    assert told.skewness == pytest.approx(0.6166652, rel=1e-6)
    assert told.kurtosis == pytest.approx(-1.3376067, rel=1e-6)
    assert (told.min, told.max) == (1, 12)


@given(LAYERS)
def test_all_layers_are_described_as_their_concatenation(layers):
    whole = np.concatenate([np.array(each) for each in layers])

    told = overall(layers)

    assert told.count == whole.size
    assert told.mean == pytest.approx(whole.mean(), abs=1e-9)
    assert told.std_dev == pytest.approx(whole.std(), rel=1e-9, abs=1e-9)
    assert (told.min, told.max) == (whole.min(), whole.max())
    assert told.median == pytest.approx(float(np.median(whole)), abs=1e-9)
    assert told.l2 == pytest.approx(float(np.linalg.norm(whole)), rel=1e-9, abs=1e-9)
    assert told.zero_fraction == (whole == 0).mean()
    if told.skewness is not None and whole.std() > 1e-3:
        assert told.skewness == pytest.approx(stats.skew(whole), abs=1e-6)
    if told.kurtosis is not None and whole.std() > 1e-3:
        assert told.kurtosis == pytest.approx(stats.kurtosis(whole), abs=1e-6)


def test_a_few_hundred_weights_have_their_moments_corrected():
    """DB-17: moments of the population are too small on few values."""
    values = np.random.default_rng(0).exponential(size=200)

    told = overall([values])

    assert told.skewness_corrected == pytest.approx(stats.skew(values, bias=False))
    assert told.kurtosis_corrected == pytest.approx(stats.kurtosis(values, bias=False))
    assert abs(told.skewness_corrected) > abs(told.skewness)


def test_values_that_differ_by_rounding_are_constant():
    """DB-17: a deviation of exactly zero is no test of being constant."""
    values = np.full(1000, 0.1, np.float32)
    values[::2] = np.nextafter(np.float32(0.1), np.float32(1))

    told = overall([values])

    assert told.std_dev > 0
    assert told.skewness is None
    assert "all values are equal" in {each.why for each in told.missing}


def test_a_normal_law_has_normal_tails():
    values = np.random.default_rng(1).normal(size=300_000)

    assert overall([values]).tail_ratio == pytest.approx(NORMAL_TAILS, rel=0.02)
    wanted = stats.norm.ppf(0.999) / stats.norm.ppf(0.75)
    assert pytest.approx(wanted, rel=1e-4) == NORMAL_TAILS


def test_too_many_values_to_hold_are_near_and_say_so():
    layers = [np.random.default_rng(i).normal(size=5000).astype(np.float32) for i in range(3)]

    exact, near = overall(layers), overall(layers, exact_elements=100)

    assert (exact.quantile_error, near.quantile_error) == (0, 2**-13)
    for name, value in exact.quantiles.items():
        assert near.quantiles[name] == pytest.approx(value, rel=3e-4)
    assert near.mad == pytest.approx(exact.mad, rel=1e-3)
    assert near.entropy == pytest.approx(exact.entropy, abs=0.01)
    assert near.mean == pytest.approx(exact.mean, abs=1e-12)


def test_what_is_not_finite_is_counted_and_left_out():
    """DX-02, DB-12."""
    told = overall([[1.0, np.nan, 3.0, np.inf, -np.inf, -np.inf]])

    assert (told.nan, told.positive_infinite, told.negative_infinite) == (1, 1, 2)
    assert told.nonfinite == 4
    assert (told.mean, told.min, told.max) == (2.0, 1.0, 3.0)


@pytest.mark.parametrize("values", [[], [np.nan, np.inf]])
def test_without_a_finite_value_every_number_is_null_with_its_reason(values):
    told = overall([values])

    assert (told.mean, told.std_dev, told.entropy, told.min) == (None, None, None, None)
    assert told.unexplained() == []
    assert "mean" in {each.field for each in told.missing}


def test_near_zeros_are_counted_relative_to_the_rms():
    """DB-10: exact zeros alone miss weights that are as good as zero."""
    values = np.append(np.full(50, 1e-9), np.random.default_rng(2).choice([-1.0, 1.0], 50))

    told = overall([values])

    assert (told.zero_fraction, told.near_zero_fraction) == (0, 0.5)


def measured(values):
    array = np.asarray(values, np.float64)
    quartiles = np.quantile(array, [0.25, 0.75])
    return entropy(Held(array), array.min(), array.max(), (quartiles[0], quartiles[1]))


def test_eight_equally_filled_bins_have_three_bits():
    """Vector 10."""
    assert shannon([7] * 8) == 3.0


@pytest.mark.parametrize("repeats", [1, 5, 1000])
def test_eight_equally_frequent_values_have_three_bits(repeats):
    """DB-09, vector 10: the logarithm of their deviation is 1.196."""
    found = WeightAnalyzer().analyze_weight_distribution([np.repeat(np.arange(8.0), repeats)])

    assert found.overall_statistics.entropy == 3.0
    assert found.overall_statistics.entropy_bins == 8


def test_small_gaussian_weights_have_entropy():
    """DB-09: the logarithm of a deviation below 1, cut off at 0, is 0 for every network."""
    weights = np.random.default_rng(0).normal(0, 0.02, 10_000)

    told = WeightAnalyzer().analyze_weight_distribution([weights]).overall_statistics

    assert told.entropy_method == "freedman-diaconis"
    assert told.entropy == pytest.approx(5.3, abs=0.3)
    assert told.normalised_entropy == pytest.approx(told.entropy / np.log2(told.entropy_bins))


def test_256_levels_have_eight_bits():
    assert measured(np.repeat(np.arange(256) / 10, 20)).bits == pytest.approx(8)


def test_bins_are_as_wide_as_freedman_and_diaconis_say():
    values = np.random.default_rng(1).normal(size=5000)

    found = measured(values)

    low, high = np.quantile(values, [0.25, 0.75])
    assert found.width == pytest.approx(2 * (high - low) / 5000 ** (1 / 3))
    edges = values.min() + found.width * np.arange(found.bins + 1)
    assert found.bits == pytest.approx(shannon(np.histogram(values, edges)[0]), abs=1e-9)


@given(st.floats(0.001, 1000), st.floats(-100, 100))
def test_scale_and_place_change_nothing(scale, shift):
    values = np.random.default_rng(2).normal(size=3000)

    assert measured(values * scale + shift).bits == pytest.approx(measured(values).bits, abs=0.02)


def test_one_far_value_does_not_force_the_others_into_one_bin():
    values = np.random.default_rng(3).normal(size=10_000)

    assert measured(np.append(values, 1e7)).bits == pytest.approx(measured(values).bits, abs=0.01)


def test_half_equal_values_fall_back_on_sturges():
    values = np.append(np.zeros(3000), np.random.default_rng(4).normal(size=1000))

    found = measured(values)

    assert found.method == "sturges"
    assert found.bins == 13


def test_the_correction_is_miller_and_madows():
    assert miller_madow([10, 0, 10, 20]) == pytest.approx(2 / (2 * 40 * np.log(2)))


def test_equal_values_have_no_entropy():
    found = measured(np.full(50, 3.0))

    assert (found.bits, found.bins, found.normalised) == (0.0, 1, None)
