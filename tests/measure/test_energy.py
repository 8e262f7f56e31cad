import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from measure.taken import BF16, noise, take

from difflens.measure.norms import Energy


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=40))
def test_it_is_the_squared_norm_of_what_both_sides_hold(values):
    both = np.array(values, np.float32)

    found = take(Energy, both, both)

    assert found.square_sum == pytest.approx(float((both.astype(float) ** 2).sum()), rel=1e-12)
    assert found.figures()["norm"] == pytest.approx(np.linalg.norm(both.astype(float)), rel=1e-12)


def test_many_pieces_are_one_sum():
    both = noise(700, 900).astype(BF16)

    expected = float((both.astype(float) ** 2).sum())
    assert take(Energy, both, both).square_sum == pytest.approx(expected, rel=1e-12)


def test_what_is_not_finite_is_left_out():
    both = np.array([3.0, np.nan, np.inf, 4.0], np.float32)

    assert take(Energy, both, both).square_sum == 25


def test_what_is_too_large_to_square_is_unknown():
    both = np.array([1e200, 1.0])

    assert take(Energy, both, both).square_sum is None


def test_what_moved_has_a_scan_and_needs_no_second_look():
    assert take(Energy, noise(4, 4), noise(4, 4, seed=1)) is None


def test_whole_numbers_have_no_norm():
    assert take(Energy, np.arange(4), np.arange(4)) is None
