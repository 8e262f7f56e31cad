import numpy as np
import pytest

from difflens.testing.histories import falling, noise, recorded
from difflens.training.detectors.signs.held_back import held_back_loss
from difflens.training.detectors.signs.sight import sight
from difflens.training.detectors.signs.succession import goes_apart, succession


def loss_of(values):
    return sight(recorded(values)).loss


def sorted_epochs(points=240, period=30):
    wave = np.exp(np.abs(np.arange(points) % period - period / 2) / 6 - 1)
    return wave * noise(points, 0.1)


def test_sorted_batches_are_like_their_neighbours_and_like_those_of_the_epoch_before():
    found = succession(loss_of(sorted_epochs()))

    assert found.memory > 0.8
    assert (found.repeats > 0.8, found.period % 30) == (True, 0)
    assert found.swings >= 4


def test_shuffled_batches_tell_nothing_of_one_another():
    found = succession(loss_of(falling(240) * noise(240, 0.5, 3)))

    assert found.memory < 0.3
    assert found.repeats < 0.5


def test_a_trend_that_only_fades_repeats_nothing():
    late = 0.7 / (1 + np.exp((np.arange(80) - 25) / 3)) + 1e-4 * np.exp(-np.arange(80) / 60)

    assert succession(loss_of(late)).repeats < 0.5


def test_one_event_is_not_what_a_loss_remembers():
    losses = noise(240, 0.2, 5)
    losses[180:190] *= 1e3

    found = succession(loss_of(losses))

    assert found.memory < 0.5
    assert found.swings == 0


def test_what_costs_far_more_than_forgetting_was_thrown_and_comes_in_no_order():
    high = np.arange(240) % 30 > 24
    forgotten, thrown = (np.where(high, sorted_epochs() * by, sorted_epochs()) for by in (3, 1e3))

    assert succession(loss_of(forgotten)) is not None
    assert succession(loss_of(thrown)) is None


def test_a_cycle_of_a_few_steps_is_no_epoch():
    assert succession(loss_of(2.3 + 1.4 * np.sin(np.arange(200)))) is None


@pytest.mark.parametrize("values", [np.full(200, -1.0), np.ones(200), np.ones(30)])
def test_nothing_is_measured_where_nothing_can_be(values):
    assert succession(loss_of(values)) is None


def test_a_held_back_loss_goes_along_with_its_training_loss_or_apart():
    course = sorted_epochs()
    looks = np.arange(240) % 20 == 19
    level = np.convolve(course, np.full(5, 0.2))[:240]
    along = recorded(course, scalars={"val_loss": np.where(looks, level, np.nan)})
    apart = recorded(course, scalars={"val_loss": np.where(looks, 1.0, np.nan)})

    assert goes_apart(sight(along).loss, held_back_loss(along)) < 0.2
    assert goes_apart(sight(apart).loss, held_back_loss(apart)) > 0.5
