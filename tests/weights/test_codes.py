"""The fine histogram: codes in the order of numbers, near to them, exact where they are narrow."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflens.weights.codes import CODES, ERROR, Tally, coded, decoded

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
