"""The robust deviation against its definition."""

import numpy as np
import pytest

from difflens.stats.samples import robust_deviation

VALUES = np.random.default_rng(0).normal(3, 2, 100_001)


def test_of_a_normal_distribution_it_is_the_standard_deviation():
    assert robust_deviation(VALUES) == pytest.approx(2, rel=0.01)


def test_extreme_values_do_not_move_it():
    spoilt = np.concatenate([VALUES, np.full(1000, 1e9)])

    assert robust_deviation(spoilt) == pytest.approx(2, rel=0.03)


def test_the_center_and_the_axis_may_be_given():
    table = VALUES[:100_000].reshape(4, -1)

    assert robust_deviation([1.0, -2.0, 5.0], 0.0) == pytest.approx(2 / 0.6745)
    assert robust_deviation(table, axis=1) == pytest.approx([robust_deviation(r) for r in table])
    assert robust_deviation([7.0, 7.0]) == 0
