import numpy as np
from training.diagnoses.histories import asked, only

from difflens.testing.histories import falling, noise, recorded


def sorted_since(step=100, points=200, seed=3):
    """Make a loss that is level up to a step, and then of one class after the other."""
    losses = np.concatenate([falling(step, end=0.5, pace=0.1), np.zeros(points - step)])
    tooth = np.array([4.0, 3.2, 2.4, 1.6, 1.0, 0.6, 0.4])
    losses[step : step + 6] = [0.15, 0.1, 0.06, 0.05, 0.06, 0.05]
    losses[step + 6 :] = np.resize(tooth, points - step - 6) * noise(points - step - 6, 0.1, seed)
    return losses


def codes(history):
    return [each.fix.code for each in asked("data", history)]


def test_a_class_learned_at_once_and_the_next_forgotten_tell_of_an_order_within_some_steps():
    found = only("data", recorded(sorted_since()[:112]))

    assert found.fix.code == "shuffle"
    assert abs(found.since_step - 100) <= 3


def test_batches_that_cost_like_their_neighbours_since_a_step_come_in_an_order():
    at = np.arange(200)
    waves = np.exp(0.9 * np.sin(0.3 * at + 0.001 * at**2))
    losses = 0.5 * noise(200, 0.15, 2) * np.where(at < 120, 1.0, 2 * waves)
    losses[:10] = 1.6

    found = only("data", recorded(losses))

    assert found.fix.code == "shuffle"
    assert abs(found.since_step - 120) <= 20


def test_a_large_step_before_the_leap_threw_it():
    updates = np.full(200, 1e-3)
    updates[104:106] = 5e-2

    assert "shuffle" in codes(recorded(sorted_since()[:112]))
    assert "shuffle" not in codes(recorded(sorted_since()[:112], update_l2=updates[:112]))


def test_a_rate_that_rises_there_moves_the_loss_by_itself():
    rates = np.where(np.arange(112) < 100, 0.01, 0.03)

    assert "shuffle" not in codes(recorded(sorted_since()[:112], scalars={"lr": rates}))


def test_a_loss_that_climbs_before_it_leaps_is_being_thrown():
    losses = sorted_since()[:112]
    losses[104:106] = [0.6, 1.5]

    assert "shuffle" not in codes(recorded(losses))


def test_a_loss_that_falls_and_leaps_once_was_on_its_way():
    losses = falling(140, start=2.3, end=0.01, pace=0.06)
    losses[90:95] = 3.0

    assert "shuffle" not in codes(recorded(losses))


def test_swings_that_never_cost_what_guessing_does_forget_nothing():
    at = np.arange(200)
    waves = np.exp(0.9 * np.sin(0.3 * at + 0.001 * at**2))
    losses = 0.05 * noise(200, 0.15, 2) * np.where(at < 120, 1.0, 2 * waves)
    losses[:10] = 1.6

    assert "shuffle" not in codes(recorded(losses))
