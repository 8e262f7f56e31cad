import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflens.diagnoses.signs.losses import Losses, harm, levels, standstill, stuck, worsened
from difflens.testing.histories import falling, level


def losses(values, chance=None):
    return Losses(np.arange(len(values)), np.asarray(values, float), None, chance)


@given(st.floats(1e-3, 1e3), st.integers(0, 50))
def test_harm_does_not_depend_on_the_unit_of_the_loss(factor, seed):
    for series in (falling(100, seed=seed), level(100, seed=seed)):
        plain, scaled = harm(losses(series)), harm(losses(factor * series))

        assert (plain and plain.kind) == (scaled and scaled.kind)


def test_a_loss_that_came_down_to_guessing_is_stuck_there():
    series = losses(np.concatenate([np.linspace(9, 2.3, 60), level(60)]), chance=np.log(10))

    assert stuck(series, 20)
    assert stuck(series._replace(chance=None), 20) is None


def test_a_level_is_a_median_of_neighbours():
    assert levels(np.array([1.0, 9.0, 2.0, 3.0]), 3).tolist() == [2.0, 3.0]
    assert levels(np.array([1.0]), 3).tolist() == []


def test_standstill_counts_the_points_before_the_fall():
    series = losses(np.concatenate([np.full(50, 2.3), np.full(50, 1.0)]))

    assert standstill(series) == pytest.approx(50, abs=4)


def test_a_loss_that_lost_what_it_had_won_has_worsened():
    series = np.concatenate([falling(100, end=0.3), np.full(60, 2.0)])

    assert worsened(losses(series))
    assert worsened(losses(falling(160))) is None
