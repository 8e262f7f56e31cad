"""Entropy in bits: of bins that suit the values, of levels where there are few."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflens.weights.analyzer import WeightAnalyzer
from difflens.weights.entropy import entropy, miller_madow, shannon
from difflens.weights.spread import Held


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
