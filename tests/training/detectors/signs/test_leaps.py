import numpy as np
import pytest

from difflens.core.policy import Policy
from difflens.testing.histories import falling, network, recorded
from difflens.training.detectors.signs.leaps import (
    LEAP,
    is_alone,
    kicks,
    leap,
    stays_out,
    update_before,
)
from difflens.training.detectors.signs.limits import Limits
from difflens.training.detectors.signs.sight import sight

SIZES = np.sqrt([each.count for each in network()]) / 32**0.5


def leapt(at=120, updates=None, lasts=80):
    losses = falling(200, end=0.5)
    losses[at : at + lasts] += 3.0
    steps = np.full(200, 1e-3) if updates is None else updates
    return sight(recorded(losses, update_l2=steps[:, None] * SIZES))


def found(seen):
    return leap(seen.loss, Limits("spike", Policy(), LEAP))


@pytest.mark.parametrize("at", [40, 120, 180])
def test_the_point_of_a_leap_is_found(at):
    assert found(leapt(at)).step == at


def test_a_loss_that_falls_has_no_leap():
    assert found(sight(recorded(falling(200)))) is None


def test_a_loss_that_comes_back_is_not_out():
    assert stays_out(leapt().loss, 120, 12, 0.5)
    assert not stays_out(leapt(lasts=6).loss, 120, 12, 0.5)


def test_a_step_counts_before_the_leap_and_not_at_it():
    before, at = (np.where(np.arange(200) == place, 0.1, 1e-3) for place in (119, 120))

    assert update_before(leapt(updates=before), 120)[0] == pytest.approx(100, rel=0.1)
    assert update_before(leapt(updates=at), 120)[0] == pytest.approx(1, rel=0.1)


def test_a_step_that_is_followed_by_others_like_it_is_not_alone():
    once = np.where(np.arange(200) == 119, 0.1, 1e-3)
    for_good = np.where(np.arange(200) >= 119, 0.1, 1e-3)

    assert is_alone(leapt(updates=once), 119)
    assert not is_alone(leapt(updates=for_good), 119)


def test_a_step_as_large_as_the_first_ones_is_not_alone():
    restart = np.where((np.arange(200) < 20) | (np.arange(200) == 119), 0.1, 1e-3)

    assert not is_alone(leapt(updates=restart), 119)


def test_a_first_rate_far_above_the_next_is_a_kick_and_a_decay_is_none():
    assert kicks(np.array([3.0, 0.01, 0.01, 0.01])) == [0]
    assert kicks(np.array([3.0, 0.3, 0.03, 0.003])) == []
    assert kicks(np.array([0.01, 0.01, 3.0, 0.01])) == [2]


def test_a_rate_that_goes_below_zero_leaps_nowhere():
    assert kicks(np.linspace(1.0, -1.0, 82)) == []
