import numpy as np
import pytest
from scipy import stats
from simulation import near, replicates
from stats.samples_of import GPA, LSAT

from difflens.stats.bootstrap import bootstrap


def correlation(first, second):
    return np.corrcoef(first, second)[0, 1]


def gap(left, right, axis=-1):
    return np.mean(right, axis=axis) - np.mean(left, axis=axis)


def test_the_law_schools_give_the_published_intervals():
    wide = bootstrap([LSAT, GPA], correlation, paired=True)
    narrow = bootstrap([LSAT, GPA], correlation, paired=True, level=0.9)

    assert wide.value == pytest.approx(0.77637, abs=5e-6)
    assert (wide.low, wide.high) == pytest.approx((0.31, 0.94), abs=0.02)
    assert (narrow.low, narrow.high) == pytest.approx((0.42, 0.93), abs=0.02)
    assert wide.method == "bca"


@pytest.mark.parametrize("vectorised", [True, False])
def test_two_samples_agree_with_scipy(vectorised):
    draw = np.random.default_rng(24)
    left, right = draw.exponential(size=25), draw.exponential(2, size=18)
    found = bootstrap([left, right], gap, vectorised=vectorised)

    expected = stats.bootstrap((left, right), gap, method="BCa", vectorized=True)
    interval = expected.confidence_interval
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high), abs=0.05)
    assert found.standard_error == pytest.approx(expected.standard_error, rel=0.05)


def test_batches_and_calls_one_by_one_change_nothing(monkeypatch):
    left, right = np.random.default_rng(25).normal(size=(2, 10))
    whole = bootstrap([left, right], gap, resamples=200, vectorised=True, paired=True)
    one_by_one = bootstrap([left, right], gap, resamples=200, paired=True)
    monkeypatch.setattr("difflens.stats.bootstrap._AT_ONCE", 600)
    batches = bootstrap([left, right], gap, resamples=200, vectorised=True, paired=True)

    assert whole == one_by_one == batches


def test_constant_data_fall_back_on_percentiles_and_say_so():
    found = bootstrap([[2.0] * 6], np.mean, resamples=99)

    assert (found.low, found.high, found.method) == (2.0, 2.0, "percentile")
    assert "undefined" in found.note


def test_a_statistic_at_the_edge_of_its_resamples_falls_back_on_percentiles():
    found = bootstrap([[1.0, 2.0, 3.0]], lambda x: float(len(set(x.tolist()))), resamples=99)

    assert found.method == "percentile"


def test_resamples_that_give_no_number_are_left_out_and_counted():
    found = bootstrap([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]], correlation, paired=True, resamples=99)

    assert "resamples gave no number" in found.note
    assert found.value == pytest.approx(-1.0)


def test_where_no_resample_gives_a_number_there_is_no_interval():
    values = iter([1.0])
    found = bootstrap([[1.0, 2.0]], lambda _: next(values, float("nan")), resamples=9)

    assert (found.value, found.low, found.high) == (1.0, None, None)
    assert found.note == "9 resamples gave no number"


def test_one_value_cannot_be_resampled():
    found = bootstrap([[3.0]], np.mean)

    assert (found.value, found.low) == (3.0, None)


def test_paired_samples_of_unequal_length_are_refused():
    with pytest.raises(ValueError, match="as many values each"):
        bootstrap([[1.0, 2.0], [1.0]], correlation, paired=True)


@replicates
def test_the_interval_of_a_skewed_mean_covers_nearly_as_often_as_it_says(repeats):
    draw = np.random.default_rng(27)
    covered = 0
    for _ in range(repeats):
        values = draw.exponential(size=60)
        found = bootstrap([values], np.mean, resamples=499, vectorised=True)
        covered += found.low <= 1 <= found.high

    assert near(covered / repeats, 0.94, repeats, slack=0.01)
