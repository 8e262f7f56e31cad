import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflens.testing.histories import falling, level
from difflens.training.detectors.signs.harms import harm, lost, rests, rose, stuck, worsened
from difflens.training.detectors.signs.losses import Losses, levels, standstill


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


def test_a_loss_that_the_first_step_threw_up_starts_before_that_step():
    thrown = np.concatenate([[3.0, 1300.0, 1000.0, 300.0, 60.0, 12.0], level(60)])

    assert losses(thrown).start == 3.0


def test_while_it_is_in_the_air_nothing_is_known_of_its_start():
    assert losses([3.0, 1300.0, 1000.0, 300.0]).start == pytest.approx(768, rel=0.01)


def test_beyond_guessing_and_all_noise_the_first_value_is_the_start_at_once():
    assert losses([0.8, 9.5, 10.5, 148.0, 5.0], chance=np.log(3)).start == 0.8
    assert losses([3.2, 3e5, 1e16, 2e34, 3e31]).start == 3.2


def test_a_rise_is_past_once_the_loss_is_far_below_its_start():
    back, leaping = falling(100, end=0.1), level(100)
    thrown = np.array([2.3, 9.0, 20.0, 20.0, 20.0, 20.0, 9.0])

    assert lost(losses(np.concatenate([thrown, back])), 1.5) is None
    assert lost(losses(np.concatenate([thrown, leaping])), 1.5)


def test_a_loss_rests_where_it_stands_at_a_part_of_its_start():
    assert rests(losses(falling(120, start=1.0, end=0.5, pace=0.2)), 60)
    assert rests(losses(falling(120, start=1.0, end=0.01, pace=0.2)), 60) is None
    assert rests(losses(falling(120, start=1.0, end=0.4, pace=0.01)), 60) is None


def test_one_lucky_first_example_is_no_start():
    noisy = 2.3 * np.random.default_rng(3).chisquare(1, 60)
    noisy[0] = 0.01

    assert losses(noisy).start == pytest.approx(noisy[:3].mean())


@pytest.mark.parametrize(
    ("start", "spread", "learned"),
    [(0.05, 30.0, True), (0.05, 4.0, False), (2.3, 30.0, False), (0.05, None, False)],
)
def test_a_low_first_loss_with_outputs_far_apart_comes_of_trained_weights(start, spread, learned):
    series = losses(level(100, at=start), chance=np.log(10))._replace(spread=spread)

    assert series.is_learned is learned
    assert (stuck(series, 20) is None) is learned


@pytest.mark.parametrize(
    ("classes", "start", "spread", "learned"),
    [(3, 0.05, 11.4, True), (3, 0.05, 7.0, False), (64, 1.0, 9.0, False)],
)
def test_outputs_nearer_tell_of_training_where_an_untrained_squared_error_would_be_higher(
    classes, start, spread, learned
):
    series = losses(level(100, at=start), chance=np.log(classes))._replace(spread=spread)

    assert series.is_learned is learned


def test_a_loss_that_had_come_down_is_not_stuck_when_it_is_back():
    series = np.concatenate([falling(100, end=0.3), level(100)])

    assert stuck(losses(series), 20) is None


def test_a_rise_is_dated_to_the_first_point_that_is_above():
    series = np.concatenate([np.full(50, 2.3), np.full(50, 9.0)])

    assert rose(losses(series), 1.5).since == 50
