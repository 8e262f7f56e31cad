"""Quantiles, deviations, shares and bins: exact where values are held, near where counted."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflens.models.health.spread import (
    CODES,
    ERROR,
    Counted,
    Held,
    Tally,
    coded,
    decoded,
    order_statistics,
)

SHARES = (0.0, 0.001, 0.25, 0.5, 0.75, 0.999, 1.0)
LARGE = np.random.default_rng(1).standard_t(4, size=400_000).astype(np.float32)
NUMBERS = st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=50)


def counted(values):
    tally = Tally()
    tally.add(values)
    return Counted(*tally.occupied(), exact=False)


@given(NUMBERS)
def test_quantiles_are_of_type_7(numbers):
    values = np.array(numbers)

    found = Held(values).quantiles(SHARES)

    assert found == pytest.approx(np.quantile(values, SHARES).tolist(), rel=1e-12, abs=1e-12)


def test_many_values_are_not_sorted_and_as_exact():
    found = Held(LARGE).quantiles(SHARES)

    wide = LARGE.astype(np.float64)
    assert found == pytest.approx(np.quantile(wide, SHARES).tolist(), rel=1e-12)


@pytest.mark.parametrize("values", [LARGE, LARGE.astype(np.float64) * 1e200, np.round(LARGE)])
def test_order_statistics_of_many_values_are_those_of_sorting(values):
    ranks = [0, 1, 2, 199_999, 200_000, 399_998, 399_999]

    assert order_statistics(values, ranks) == [float(np.sort(values)[rank]) for rank in ranks]


@given(NUMBERS)
def test_deviations_are_about_any_middle(numbers):
    values = np.array(numbers)
    middle = float(np.median(values))

    spread = Held(values)

    far = np.abs(values - middle)
    assert spread.median_deviation(middle) == pytest.approx(float(np.median(far)), abs=1e-9)
    assert spread.mean_deviation(middle) == pytest.approx(float(far.mean()), rel=1e-9, abs=1e-9)


def test_what_is_counted_is_as_near_as_it_says():
    near, exact = counted(LARGE), Held(LARGE)

    assert near.error == ERROR
    assert near.quantiles(SHARES) == pytest.approx(exact.quantiles(SHARES), rel=2 * ERROR)
    assert near.median_deviation(0.0) == pytest.approx(exact.median_deviation(0.0), rel=2 * ERROR)
    assert near.mean_deviation(0.0) == pytest.approx(exact.mean_deviation(0.0), rel=2 * ERROR)
    assert near.within(0.5) == pytest.approx(exact.within(0.5), rel=1e-3)


@given(NUMBERS, st.floats(0.01, 100))
def test_bins_hold_every_value_once(numbers, width):
    values = np.array(numbers)

    bins = int((values.max() - values.min()) / width) + 1
    counts = Held(values).binned(float(values.min()), width, bins)

    places = np.floor((values - values.min()) / width)
    assert sorted(counts) == sorted(np.unique(places, return_counts=True)[1])


def test_far_values_leave_the_other_bins_alone():
    values = np.append(np.arange(100.0), 1e9)

    assert Held(values).binned(0.0, 10.0, 10**8 + 1).tolist() == [10] * 10 + [1]


def test_levels_are_told_where_they_are_few():
    spread = Held(np.repeat([0.0, 1.0, -2.5], 10))

    values, times = spread.levels(256) or ([], [])

    assert (list(values), list(times)) == ([-2.5, 0.0, 1.0], [10, 10, 10])
    assert Held(LARGE).levels(256) is None
    assert counted(LARGE).levels(256) is None


def test_both_zeros_are_one_number():
    spread = counted(np.array([0.0, -0.0, 1.0], np.float32))

    assert spread.times.tolist() == [2, 1]


FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(st.lists(FLOATS, min_size=1, max_size=40))
def test_larger_numbers_never_have_smaller_codes(numbers):
    ordered = np.sort(np.array(numbers, np.float32)) + np.float32(0)  # no negative zero

    codes = coded(ordered)

    assert (np.diff(codes) >= 0).all()
    assert codes.min() >= 0
    assert codes.max() < CODES


@given(st.lists(st.floats(1e-30, 1e30) | st.floats(-1e30, -1e-30), min_size=1, max_size=40))
def test_a_number_is_told_to_one_part_in_8192(numbers):
    values = np.array(numbers, np.float32)

    told = decoded(coded(values), exact=False)

    assert told == pytest.approx(values.astype(np.float64), rel=ERROR * 1.001)


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16, ml_dtypes.float8_e4m3fn])
def test_narrow_floats_are_told_exactly(dtype):
    width = np.dtype(dtype).itemsize
    every = np.arange(1 << (8 * width)).astype(f"u{width}").view(dtype).astype(np.float32)
    every = every[np.isfinite(every)]

    assert np.array_equal(decoded(coded(every), exact=True), every.astype(np.float64))


@given(st.lists(FLOATS, max_size=60), st.integers(1, 60))
def test_counts_do_not_depend_on_the_pieces(numbers, size):
    values = np.array(numbers, np.float32)
    whole, parts = Tally(), Tally()

    whole.add(values)
    for start in range(0, len(values), size):
        parts.add(values[start : start + size])

    assert np.array_equal(whole.counts, parts.counts)
    assert whole.occupied()[1].sum() == len(values)


def test_many_values_are_counted_as_few_are():
    values = np.random.default_rng(0).normal(size=100_000).astype(np.float32)
    many, few = Tally(), Tally()

    many.add(values)
    for start in range(0, len(values), 1000):
        few.add(values[start : start + 1000])

    assert np.array_equal(many.counts, few.counts)


def test_numbers_beyond_float32_are_counted_with_its_largest():
    told = decoded(coded(np.array([1e300, -1e300, 0.0, -0.0])), exact=False)

    assert told == pytest.approx([3.4e38, -3.4e38, 0, 0], rel=0.01)
