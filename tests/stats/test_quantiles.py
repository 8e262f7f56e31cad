"""Quantiles come with limits that hold, or say how many samples would give them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanes import examples
from scipy.stats import binom
from scipy.stats.mstats import hdquantiles
from simulation import replicates

from difflens.stats.quantiles import compare, least_samples, quantile

LEAST = {0.9: (36, 29), 0.95: (72, 59), 0.99: (368, 299), 0.999: (3688, 2995)}


@pytest.mark.parametrize(("q", "least"), LEAST.items())
def test_the_least_samples_for_both_limits_are_the_known_ones(q, least):
    assert (least_samples(q), least_samples(q, sides=1)) == least
    assert least_samples(1 - q) == least[0]


@pytest.mark.parametrize("q", [0.9, 0.95, 0.99])
def test_one_sample_less_has_no_upper_limit_and_says_so(q):
    n = LEAST[q][0]
    enough, short = quantile(range(n), q), quantile(range(n - 1), q)

    assert (enough.high, enough.note) == (n - 1, "")
    assert short.high is None
    assert short.note == f"not enough samples: {n - 1} of the {n} that both limits need"
    assert short.low is not None


def test_a_low_quantile_lacks_its_lower_limit():
    found = quantile(range(20), 0.1)

    assert found.low is None
    assert found.high is not None


@given(st.integers(1, 60), st.sampled_from([0.05, 0.25, 0.5, 0.9]), st.sampled_from([0.8, 0.95]))
def test_the_limits_cover_by_the_binomial_law_and_no_nearer_ones_would(n, q, level):
    found = quantile([float(rank) for rank in range(1, n + 1)], q, level)
    rest = (1 - level) / 2

    if found.low is not None:
        assert binom.cdf(found.low - 1, n, q) <= rest < binom.cdf(found.low, n, q)
    if found.high is not None:
        assert binom.sf(found.high - 1, n, q) <= rest + 1e-12
        assert binom.sf(found.high - 2, n, q) > rest - 1e-12


@given(st.lists(st.integers(-9, 9).map(float), min_size=1, max_size=40), st.floats(0.01, 0.99))
def test_the_value_is_numpys(values, q):
    assert quantile(values, q).value == np.quantile(values, q)


@replicates
def test_the_limits_of_p90_cover_it_for_a_skewed_law(repeats):
    random = np.random.default_rng(0)
    found = [quantile(random.exponential(size=100), 0.9) for _ in range(repeats)]

    assert np.mean([each.low <= np.log(10) <= each.high for each in found]) >= 0.93


def latencies(seed: int, runs: int = 8, each: int = 50, shift: float = 0.0) -> np.ndarray:
    """Log-normal times whose level differs from run to run."""
    random = np.random.default_rng(seed)
    level = np.repeat(random.normal(shift, 0.2, runs), each)
    return np.exp(level + random.normal(0, 0.3, runs * each))


RUNS = np.repeat(range(8), 50)


def test_the_estimate_is_harrell_and_daviss():
    left, right = latencies(0), latencies(1)
    found = compare(left, right, 0.9, RUNS, RUNS, resamples=20)
    expected = [float(hdquantiles(side, [0.9])[0]) for side in (left, right)]

    assert found.difference == pytest.approx(expected[1] - expected[0])
    assert found.ratio == pytest.approx(expected[1] / expected[0])


def test_whole_runs_vary_more_than_their_values_seem_to():
    left, right = latencies(0), latencies(1)
    by_run = compare(left, right, 0.5, RUNS, RUNS, resamples=199)
    by_value = compare(left, right, 0.5, resamples=199)

    assert by_run.high - by_run.low > 2 * (by_value.high - by_value.low)
    assert (by_run.runs_left, by_value.runs_left) == (8, 400)
    assert by_value.note == "no runs named: values are taken for independent"
    assert by_run.note == ""


def test_a_slower_side_is_found_slower():
    found = compare(latencies(0), latencies(1, shift=1.0), 0.95, RUNS, RUNS, resamples=999)

    assert found.low > 0
    assert 1 < found.ratio_low < found.ratio < found.ratio_high
    assert found.p < 0.01


@replicates
def test_runs_of_the_same_kind_are_called_different_one_time_in_twenty(repeats):
    ps = [
        compare(latencies(seed), latencies(seed + 10**6), 0.9, RUNS, RUNS, resamples=99).p
        for seed in range(repeats // 3)
    ]

    assert np.mean(np.array(ps) <= 0.05) <= 0.12


@examples(10)
@given(st.integers(0, 99))
def test_swapping_the_sides_turns_the_difference(seed):
    left, right = latencies(seed), latencies(seed + 100)
    there = compare(left, right, 0.5, RUNS, RUNS, resamples=49)
    back = compare(right, left, 0.5, RUNS, RUNS, resamples=49)

    assert there.difference == -back.difference
    assert there.ratio == pytest.approx(1 / back.ratio)


def test_few_samples_single_runs_and_negative_values_leave_out_what_they_cannot_tell():
    few = compare([1.0] * 30, [2.0] * 40, 0.9)
    alone = compare(latencies(0), latencies(1), 0.5, [0] * 400, RUNS)
    negative = compare(latencies(0) - 9, latencies(1), 0.5, RUNS, RUNS, resamples=49)

    assert (few.low, few.high) == (None, None)
    assert few.note == "not enough samples: 30 of the 36 that both limits need"
    assert (alone.low, alone.p) == (None, None)
    assert alone.note.startswith("one run on a side")
    assert negative.low is not None
    assert (negative.ratio, negative.ratio_low, negative.ratio_high) == (None, None, None)


def test_runs_of_unequal_length_are_resampled_whole():
    runs = [0] * 10 + [1] * 390
    found = compare(latencies(0), latencies(1), 0.5, runs, runs, resamples=99)

    assert found.low <= found.difference <= found.high
    assert found.p is None


def test_strange_input_is_refused():
    with pytest.raises(ValueError, match="between 0 and 1"):
        quantile([1.0], 1.5)
    with pytest.raises(ValueError, match="holds no values"):
        quantile([], 0.5)
    with pytest.raises(ValueError, match="left: 1 runs named for 2 values"):
        compare([1.0, 2.0], [1.0], 0.5, [0], [0])
