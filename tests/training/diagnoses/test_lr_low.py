import numpy as np
from training.diagnoses.histories import asked, only, until

from difflens.testing.histories import falling, faulty, level, recorded


def test_tiny_steps_are_told_within_fifteen_steps():
    assert asked("lr-low", until(faulty()["lr-low"], 15))


def test_the_factor_leads_to_updates_of_a_usual_size():
    found = only("lr-low", faulty()["lr-low"])
    updates = found.evidence["update_by_weight"] * found.fix.parameters["factor"]

    assert 1e-3 < updates < 5e-2


def test_a_warm_up_is_waited_for():
    ramp = np.linspace(1e-9, 1e-6, 60)

    assert asked("lr-low", recorded(level(60), update_l2=ramp, scalars={"lr": ramp})) == []


def test_tiny_steps_at_the_end_of_a_run_that_learned_are_no_fault():
    assert asked("lr-low", recorded(falling(300), update_l2=1e-7)) == []


def test_a_schedule_that_came_down_is_told_as_a_plateau():
    rate = np.where(np.arange(100) < 20, 1e-2, 1e-6)

    assert asked("lr-low", recorded(level(100), update_l2=1e-7, scalars={"lr": rate})) == []


def test_a_warm_up_that_does_not_end_excuses_tiny_steps_no_longer():
    rates = 1e-7 * (1 + np.arange(200))
    history = recorded(level(200), update_l2=1e-6, scalars={"lr": rates})

    assert only("lr-low", history).fix.code == "warmup"
    assert asked("lr-low", until(history, 100)) == []


def test_held_back_data_tells_of_a_loss_whose_first_batches_were_unlucky():
    losses = np.concatenate([np.full(3, 1.2), np.linspace(1.01, 1.0, 297)])
    looks = np.where(np.arange(300) % 20 == 19, losses, np.nan)

    assert asked("lr-low", recorded(losses, update_l2=1e-6, scalars={"val_loss": looks}))
    learned = np.where(np.isfinite(looks), np.linspace(1.0, 0.7, 300), np.nan)
    assert asked("lr-low", recorded(losses * np.linspace(1, 0.7, 300), update_l2=1e-6,
                                    scalars={"val_loss": learned})) == []  # fmt: skip


def test_steps_that_are_small_and_not_tiny_are_told_after_twenty_points():
    history = recorded(level(30), update_l2=5e-5, weight_l2=1.0)

    assert asked("lr-low", history)
    assert asked("lr-low", until(history, 18)) == []
    assert asked("lr-low", recorded(level(30), update_l2=5e-4, weight_l2=1.0)) == []
