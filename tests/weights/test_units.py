"""The largest weight of each unit, whatever pieces a tensor comes in."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from difflens.weights.units import Units


@given(
    st.tuples(st.integers(1, 6), st.integers(1, 5), st.integers(1, 4)),
    st.integers(1, 30),
    st.booleans(),
)
def test_pieces_give_what_the_whole_gives(shape, size, first):
    values = np.abs(np.random.default_rng(0).normal(size=shape))
    units = Units(shape, 0 if first else 2)

    for start in range(0, values.size, size):
        units.add(start, values.reshape(-1)[start : start + size])

    axes = (1, 2) if first else (0, 1)
    assert np.array_equal(units.largest, values.max(axis=axes))


def test_a_unit_is_zero_where_its_largest_weight_is_small():
    units = Units((3, 2), 0)

    units.add(0, np.array([0.0, 0.0, 1e-9, 0.0, 0.0, np.inf]))

    assert units.zero(1e-6).tolist() == [True, True, False]
