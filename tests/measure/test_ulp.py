import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from measure.taken import BF16, noise, take

from difflens.measure.ulp import Ulp

TYPES = [np.float64, np.float32, np.float16, BF16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]


@pytest.mark.parametrize("dtype", TYPES[:4])
@pytest.mark.parametrize("upwards", [True, False])
def test_the_next_number_is_one_unit_away(dtype, upwards):
    left = noise(500).astype(dtype)
    right = np.nextafter(left, dtype(np.inf if upwards else -np.inf))

    found = take(Ulp, left, right)

    assert (found.max, found.p50, found.p99) == (1, 1, 1)


@pytest.mark.parametrize(
    ("dtype", "steps"),
    [(np.float64, 2**52), (np.float32, 2**23), (np.float16, 2**10), (BF16, 2**7),
     (ml_dtypes.float8_e4m3fn, 2**3), (ml_dtypes.float8_e5m2, 2**2)],
)  # fmt: skip
def test_from_one_to_two_are_as_many_steps_as_the_mantissa_has(dtype, steps):
    assert take(Ulp, np.ones(3, dtype), np.full(3, 2, dtype)).max == steps


@pytest.mark.parametrize("dtype", TYPES)
def test_both_zeros_are_one_and_a_step_across_them_counts(dtype):
    zero, minus = np.zeros(2, dtype), -np.zeros(2, dtype)
    minus[1], zero[1] = -1, 1

    found = take(Ulp, zero, minus)

    half = take(Ulp, np.zeros(1, dtype), np.ones(1, dtype)).max
    assert found.p50 == 0
    assert found.max == 2 * half


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 0x7BFF), st.integers(0, 0x7BFF), st.booleans())
def test_distance_is_the_difference_of_codes(one, other, opposite):
    left = np.array([one], np.uint16).view(np.float16)
    right = np.array([other], np.uint16).view(np.float16) * np.float16(-1 if opposite else 1)
    if left.tobytes() == right.tobytes():
        return

    assert take(Ulp, left, right).max == (one + other if opposite else abs(one - other))


def test_dtypes_that_differ_are_compared_in_the_coarser_one():
    left = noise(1000)

    found = take(Ulp, left, left.astype(BF16))

    assert (found.dtype, found.max) == ("BF16", 0)
    assert take(Ulp, left, (left.astype(BF16) * BF16(2))).p50 == 128


def test_a_narrow_dtype_is_ordered_by_its_own_values():
    every = np.arange(0x7F, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn)

    found = take(Ulp, every[:-1].copy(), every[1:].copy())

    assert (found.max, found.p50) == (1, 1)


def test_quantiles_are_those_of_the_distances():
    left = np.ones(1000, np.float32)
    right = np.nextafter(left, np.float32(2))
    right[:20] = 1.5

    found = take(Ulp, left, right)

    assert (found.p50, found.max) == (1, 2**22)
    assert found.p99 == pytest.approx(2**22, rel=0.004)


def test_pairs_with_a_nan_are_left_out():
    left, right = np.array([1, np.nan, 3], np.float32), np.array([1, 2, np.nan], np.float32)

    found = take(Ulp, left, right)

    assert (found.pairs, found.max) == (1, 0)


def test_opposite_ends_of_float64_are_told_roughly():
    largest = np.finfo(np.float64).max

    assert take(Ulp, np.array([-largest]), np.array([largest])).max == pytest.approx(
        2**64, rel=0.01
    )
