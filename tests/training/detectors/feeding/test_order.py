import numpy as np
from training.diagnoses.histories import asked, only

from difflens.testing.histories import falling, noise, recorded
from difflens.training.detectors.signs.held_back import held_back_loss
from difflens.training.detectors.signs.sight import sight
from difflens.training.detectors.signs.succession import goes_apart


def test_examples_that_are_others_since_a_step_lift_the_loss_for_good():
    losses = np.concatenate([falling(80, end=0.3), 2.2 * noise(40, 0.05, 2)])

    found = only("data", recorded(losses))

    assert found.since_step == 80


def test_one_odd_batch_changes_nothing_for_good():
    losses = falling(120, end=0.3)
    losses[80] = 3.0

    assert asked("data", recorded(losses)) == []


def in_epochs(points=240, period=30, size=6):
    return np.exp(np.abs(np.arange(points) % period - period / 2) / size - 1) * noise(points, 0.1)


def test_a_loss_that_repeats_itself_epoch_by_epoch_comes_of_sorted_examples():
    found = only("data", recorded(in_epochs()))

    assert found.fix.code == "shuffle"
    assert found.evidence["period"] % 30 == 0


def test_a_loss_that_wanders_while_held_back_data_stands_comes_of_sorted_examples():
    time = np.arange(240)
    losses = np.exp(1.2 * np.sin(0.09 * time + 0.0008 * time**2)) * noise(240, 0.1)
    looks = np.where(np.arange(240) % 20 == 19, 0.6, np.nan)

    assert only("data", recorded(losses, scalars={"val_loss": looks})).fix.code == "shuffle"
    level = np.convolve(losses, np.full(5, 0.2))[:240]
    along = np.where(np.arange(240) % 20 == 19, level, np.nan)
    told = asked("data", recorded(losses, scalars={"val_loss": along}))
    assert "shuffle" not in [each.fix.code for each in told]


def test_swings_of_what_is_next_to_nothing_come_of_no_order():
    time = np.arange(240)
    swings = np.exp(1.2 * np.sin(0.09 * time + 0.0008 * time**2)) * noise(240, 0.1)
    losses = 1e-4 * swings + 2.0 * np.exp(-0.3 * time)
    looks = np.where(np.arange(240) % 20 == 19, 1.4, np.nan)

    assert asked("data", recorded(losses, scalars={"val_loss": looks})) == []


def test_a_held_back_loss_that_is_thrown_with_the_training_loss_goes_along():
    time = np.arange(240)
    losses = np.exp(1.2 * np.sin(0.09 * time + 0.0008 * time**2)) * noise(240, 0.1)
    # A look is of the weights after the step: it costs what training costs just after it.
    ahead = np.where(time % 20 == 19, np.roll(losses, -2), np.nan)
    history = recorded(losses, scalars={"val_loss": ahead})

    assert goes_apart(sight(history).loss, held_back_loss(history)) > 0.5
    assert "shuffle" not in [each.fix.code for each in asked("data", history)]


def test_batches_drawn_once_and_for_all_differ_too_little_to_matter():
    drawn = np.tile(noise(24, 0.08, 7), 10)

    assert asked("data", recorded(falling(240, end=0.5) * drawn)) == []


def test_rates_that_rise_again_move_the_loss_by_themselves():
    rates = 0.1 + 0.1 * np.abs(np.arange(240) % 30 - 15)

    assert asked("data", recorded(in_epochs(), scalars={"lr": rates})) == []


def test_a_loss_that_leaps_beyond_what_is_forgotten_was_thrown_by_a_step():
    teeth = np.tile(np.concatenate([[4.0], np.linspace(2.0, 0.2, 14)]), 10) * noise(150, 0.02)
    teeth[:15] = 2.3

    assert "sawtooth" in only("data", recorded(teeth)).text
    teeth[105] = 120.0
    assert not any("sawtooth" in each.text for each in asked("data", recorded(teeth)))


def test_a_weight_that_was_written_to_is_no_change_of_the_data():
    losses = np.concatenate([falling(80, end=0.3), 2.2 * noise(40, 0.05, 2)])
    weights = np.ones((120, 12))
    weights[80:, 2] = 300.0

    told = asked("data", recorded(losses, weight_l2=weights, update_l2=1e-3))

    assert told == []


def test_a_regression_that_explained_its_targets_and_no_longer_does_gets_others():
    # Targets far from zero cost so much at first that what they cost now is a little of it.
    losses = np.concatenate([falling(100, start=9.0, end=0.2, pace=0.2), 0.7 * noise(60, 0.1, 2)])
    told = recorded(losses, act_std=np.where(np.arange(160) < 105, 0.7, 0.05))

    found = only("data", told)

    assert (found.since_step, found.fix.code) == (100, "check_labels")
    assert asked("data", recorded(losses, act_std=0.7)) == []


def test_a_rate_that_comes_back_again_and_again_makes_the_teeth_itself():
    at = np.arange(150)
    teeth = np.tile(np.concatenate([[4.0], np.linspace(2.0, 0.2, 14)]), 10) * noise(150, 0.02)
    teeth[:15] = 2.3
    rates = 0.1 * np.cos(np.pi / 2 * (at % 15) / 15)

    told = asked("data", recorded(teeth, scalars={"lr": rates}))

    assert not any("sawtooth" in each.text for each in told)


def relabelled(dead_since=None, start=2.3):
    """Make a run whose labels are others since step 80, of which a layer may be dead."""
    learned = falling(80, start=start, end=0.3, pace=0.1)
    learned[2:6] *= start / 2  # thrown up first, where it starts high
    losses = np.concatenate([learned, 2.4 * noise(40, 0.03, 2)])
    gradients = np.full((120, 12), 0.01)
    if dead_since is not None:
        gradients[dead_since:, 4:6] = 0.0
    facts = {"output": {"rows_sum_to_one": False, "shape": [64, 10]}}
    return recorded(losses, grad_l2=gradients, facts=facts)


def test_a_loss_that_began_far_above_guessing_need_not_go_back_there():
    found = only("data", relabelled(start=12.0))

    assert (found.since_step, found.fix.code) == (80, "check_labels")
    assert found.evidence["sound_before"] is True


def test_layers_that_died_long_before_a_leap_or_behind_it_did_not_make_it():
    told = [[each.fix.code for each in asked("data", relabelled(dead_since=at))]
            for at in (20, 90, 80)]  # fmt: skip

    assert told == [["check_labels"], ["check_labels"], []]
