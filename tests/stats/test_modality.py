"""One hump or more: the dip is the definition's, its p is what it says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from simulation import near, replicates

from difflens.stats.distributions import FEWEST, dip, dip_test


def limits(x, above, below, mode):
    """Yield the inequalities of a G whose mode is that value, as rows of (place, factor), limit.

    Variables: G at every value; after its jump at the mode, the only one that may have one; and
    the distance. G is convex up to the mode and concave from it on.
    """
    m = len(x)
    after = [m if i == mode else i for i in range(m)]
    for i in range(m):
        yield [(i, 1), (m + 1, -1)], below[i]
        yield [(i, -1), (m + 1, -1)], -below[i]
        yield [(after[i], 1), (m + 1, -1)], above[i]
        yield [(after[i], -1), (m + 1, -1)], -above[i]
    yield [(mode, 1), (m, -1)], 0.0
    for i in range(m - 1):
        yield [(after[i], 1), (i + 1, -1)], 0.0
    for i in range(1, m - 1):
        left, right = x[i] - x[i - 1], x[i + 1] - x[i]
        sign = (mode > i) - (mode < i)
        bend = [(i, 1 / left + 1 / right), (after[i - 1], -1 / left), (i + 1, -1 / right)]
        yield [(place, sign * factor) for place, factor in bend], 0.0


def dip_by_definition(values):
    """Solve min sup |F - G| over all G with one hump, by linear programming."""
    x, counts = np.unique(values, return_counts=True)
    above = np.cumsum(counts) / len(values)
    found = []
    for mode in range(len(x)):
        rows, bounds = [], []
        for terms, limit in limits(x, above, above - counts / len(values), mode):
            row = np.zeros(len(x) + 2)
            for place, factor in terms:
                row[place] += factor
            rows.append(row)
            bounds.append(limit)
        cost = np.append(np.zeros(len(x) + 1), 1)
        found.append(linprog(cost, np.array(rows), np.array(bounds), bounds=(0, 1)).fun)
    return min(found)


@given(st.lists(st.integers(0, 1000).map(float), min_size=4, max_size=10, unique=True))
def test_the_dip_is_the_distance_to_the_nearest_single_hump(values):
    assert dip(values) == pytest.approx(max(dip_by_definition(values), 0.5 / len(values)), abs=1e-7)


@given(st.lists(st.integers(0, 50).map(float), min_size=2, max_size=30), st.floats(0.1, 10))
def test_unit_direction_and_level_do_not_matter(values, unit):
    found = dip(values)

    assert dip([unit * each + 3 for each in values]) == pytest.approx(found, abs=1e-9)
    assert dip([-each for each in values]) == pytest.approx(found, abs=1e-9)
    assert 0.5 / len(values) - 1e-12 <= found <= 0.25 + 1e-12


@replicates
@pytest.mark.parametrize("n", [20, 60])
def test_a_uniform_sample_is_called_many_humped_as_often_as_promised(n, repeats):
    random = np.random.default_rng(2)
    found = [dip_test(random.random(n)).p <= 0.05 for _ in range(repeats)]

    assert near(float(np.mean(found)), 0.05, repeats, slack=0.01)


@replicates
def test_normal_layers_are_not_called_many_humped(repeats):
    # DC-24: limits on kurtosis call 39 % of Gaussian sets of eight layers multimodal.
    random = np.random.default_rng(3)
    found = [dip_test(random.standard_normal(24)).p <= 0.05 for _ in range(repeats)]

    assert np.mean(found) <= 0.05


@replicates
def test_two_humps_four_deviations_apart_are_found(repeats):
    random = np.random.default_rng(4)
    shift = np.repeat([0.0, 6.0], 15)
    found = [dip_test(random.standard_normal(30) + shift).p <= 0.05 for _ in range(repeats)]

    assert np.mean(found) >= 0.9


def test_a_handful_of_values_says_nothing():
    assert dip_test(range(FEWEST - 1)) is None
    assert dip_test([1.0] * FEWEST).p > 0.5
