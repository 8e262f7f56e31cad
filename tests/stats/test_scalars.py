"""Two numbers tell a difference and admit that they tell no more."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflens.stats.scalars import change

NUMBERS = st.floats(-1e6, 1e6).map(lambda x: round(x, 3))


@given(NUMBERS, NUMBERS)
def test_swapping_the_sides_turns_the_difference(left, right):
    there, back = change(left, right), change(right, left)

    assert there.difference == -back.difference
    assert "cannot separate change from noise" in there.note


def test_a_relative_change_is_of_the_size_of_left():
    assert change(-4.0, -5.0)[:2] == (-1.0, -0.25)
    assert change(0.0, 5.0)[:2] == (5.0, None)


def test_a_value_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="not finite"):
        change(float("nan"), 1.0)
