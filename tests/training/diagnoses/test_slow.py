import numpy as np
from training.diagnoses.histories import asked, only

from difflens.testing.histories import falling, faulty, level, recorded
from difflens.training.records.runs import Layer


def test_small_steps_and_a_loss_that_hardly_moves_are_slow():
    assert only("slow", faulty()["slow"]).fix.code == "scale_lr"


def test_the_same_small_steps_in_a_run_that_learns_are_not():
    assert asked("slow", recorded(falling(), update_l2=1e-3)) == []


def test_steps_of_a_usual_size_are_not_to_blame():
    assert asked("slow", recorded(level(), update_l2=0.02)) == []


def test_small_steps_at_the_end_of_a_schedule_are_the_schedule_s():
    rates = np.where(np.arange(200) < 30, 1e-3, 1e-6)

    assert asked("slow", recorded(level(), update_l2=1e-4, scalars={"lr": rates})) == []


def test_recurrent_networks_may_rest_longer_before_they_learn():
    layers = (
        Layer("memory.weight_hh_l0", (32, 32), "RNN", "weight", 0, optimised=True),
        Layer("output.weight", (2, 32), "Linear", "weight", 1, optimised=True),
    )

    for points, told in ((100, 0), (150, 1)):
        history = recorded(level(points), layers=layers, weight_l2=5.0, update_l2=5e-4)

        assert len(asked("slow", history)) == told


def test_a_loss_that_falls_steadily_and_hardly_is_slow_whatever_the_steps():
    losses = np.linspace(2.3, 2.2, 200)
    held_back = np.where(np.arange(200) % 20 == 0, losses, np.nan)
    history = recorded(losses, update_l2=2e-3, weight_l2=1.0, scalars={"val_loss": held_back})

    assert only("slow", history).fix.code == "scale_lr"


def test_a_loss_that_falls_by_more_and_stays_high_is_slow_where_every_step_is_tiny():
    losses = np.linspace(2.3, 1.7, 300)
    held_back = np.where(np.arange(300) % 20 == 0, losses, np.nan)

    for update, told in ((1e-5, 1), (2e-2, 0)):
        history = recorded(losses, update_l2=update, weight_l2=1.0, scalars={"val_loss": held_back})
        assert len(asked("slow", history)) == told


def test_a_loss_that_came_down_to_guessing_from_far_above_is_on_its_way():
    losses = np.linspace(9.0, 2.2, 200)
    held_back = np.where(np.arange(200) % 20 == 0, losses, np.nan)
    facts = {"output": {"shape": [60, 10], "min": -16.0, "max": 21.0}}
    history = recorded(losses, update_l2=2e-3, weight_l2=1.0, facts=facts,
                       scalars={"val_loss": held_back})  # fmt: skip

    assert asked("slow", history) == []


def test_a_loss_that_came_down_by_more_than_half_is_slow_where_every_step_is_tiny():
    losses = np.linspace(3.4, 1.2, 300)
    held_back = np.where(np.arange(300) % 20 == 0, losses, np.nan)

    assert asked("slow", recorded(losses, update_l2=1e-5, weight_l2=1.0,
                                  scalars={"val_loss": held_back}))  # fmt: skip


def test_a_training_loss_that_is_the_held_back_one_by_the_batch_asks_for_a_rate_as_much_higher():
    losses = np.linspace(0.9, 0.3, 200)
    looks = np.where(np.arange(200) % 20 == 19, losses, np.nan)
    batch = {"output": {"shape": [32, 4], "min": -0.5, "max": 0.5}}

    def told(by):
        scalars = {"val_loss": looks}
        return asked("slow", recorded(losses / by, facts=batch, scalars=scalars, update_l2=1e-2))

    assert told(32)[0].fix.parameters == {"factor": 32.0}
    assert told(8) == told(1) == []


def crept(losses, update, **others):
    looks = np.where(np.arange(len(losses)) % 20 == 0, losses, np.nan)
    return recorded(losses, update_l2=update, weight_l2=1.0, scalars={"val_loss": looks}, **others)


def test_a_loss_that_fell_by_a_fifth_is_slow_where_all_steps_together_lead_nowhere():
    losses = np.linspace(2.3, 1.85, 300)

    assert only("slow", crept(losses, 5e-4)).fix.code == "scale_lr"
    assert asked("slow", crept(losses, 1.5e-3)) == []  # weights went 0.45 of their size
    assert asked("slow", crept(np.linspace(2.3, 1.4, 300), 5e-4)) == []


def test_gradients_that_grow_excuse_it_only_while_they_go_on_or_the_loss_stands():
    def of(losses, late):
        early = np.linspace(1.0, 1.6, 150)
        sizes = 1e-2 * np.concatenate([early, np.full(100, 1.6), np.full(50, late)])
        return asked("slow", crept(losses, 5e-4, grad_l2=sizes))

    moving = np.linspace(2.3, 1.85, 300)

    assert of(moving, 1.6)
    assert of(moving, 3.2) == []
    assert of(np.linspace(2.3, 2.2, 300), 1.6) == []


def test_a_start_that_was_lucky_does_not_hide_tiny_steps():
    losses = np.linspace(0.9, 0.8, 300)
    lucky = losses.copy()
    lucky[:3], lucky[40:46] = 0.5, 1.2

    looks = np.where(np.arange(300) % 20 == 0, losses, np.nan)
    history = recorded(lucky, update_l2=5e-5, weight_l2=1.0, scalars={"val_loss": looks})

    assert asked("slow", history)


def test_where_a_higher_rate_would_tear_the_last_layer_the_others_need_more_gradient():
    uneven = np.where(np.arange(12) >= 10, 2e-3, 4e-5)
    even = np.full(12, 4e-5)

    for updates, code in ((uneven, "reinitialise"), (even, "scale_lr")):
        found = only("slow", recorded(level(), update_l2=updates, weight_l2=1.0))
        assert found.fix.code == code


def test_weights_that_are_where_they_began_are_slow_though_the_loss_came_down_from_a_bad_guess():
    losses = 6.0 * np.exp(-0.007 * np.arange(240))

    assert only("slow", crept(losses, 3e-4)).fix.code == "scale_lr"
    assert asked("slow", crept(losses, 1e-3)) == []  # a healthy pace
    assert asked("slow", crept(losses[:140], 3e-4)) == []  # too early to tell


def test_a_loss_that_is_low_by_steps_that_are_small_and_not_tiny_is_no_fault():
    losses = 6.0 * np.exp(-0.015 * np.arange(240))

    assert asked("slow", crept(losses, 4.5e-4)) == []  # weights went 0.11 of their size


def test_a_warm_up_without_end_is_told_though_the_loss_falls():
    losses, rates = 6.0 * np.exp(-0.01 * np.arange(300)), np.linspace(0, 1e-3, 300)
    looks = np.where(np.arange(300) % 20 == 0, losses, np.nan)
    history = recorded(losses, update_l2=3e-4 * rates / 1e-3, weight_l2=1.0,
                       scalars={"val_loss": looks, "lr": rates})  # fmt: skip

    assert only("slow", history).fix.code == "warmup"


def test_steps_that_lead_nowhere_are_told_though_some_looks_are_worse():
    losses = np.concatenate([np.linspace(2.7, 0.6, 30), np.linspace(0.6, 0.57, 210)])
    looks = np.where(np.arange(240) % 20 == 0, losses, np.nan)
    looks[::40] *= 1.01

    def told(update):
        return asked("slow", recorded(losses, update_l2=update, weight_l2=1.0,
                                      scalars={"val_loss": looks}))  # fmt: skip

    assert told(2e-5)
    assert told(1e-4) == []


def test_a_likelihood_that_passes_below_zero_is_slow_where_the_weights_hardly_move():
    losses = np.linspace(2.2, 0.05, 240)
    looks = np.where(np.arange(240) % 20 == 0, losses, np.nan)
    noisy = losses + np.where(np.arange(240) % 2, 0.8, -0.8)

    def told(update):
        return asked("slow", recorded(noisy, update_l2=update, weight_l2=1.0,
                                      scalars={"val_loss": looks}))  # fmt: skip

    assert told(1e-4)
    assert told(1e-3) == []


def test_small_weights_that_take_the_slope_from_biases_are_drawn_anew():
    kinds = np.arange(12) % 2 == 0
    for slopes, code in ((np.geomspace(1e-4, 1e-1, 12), "reinitialise"), (0.1, "scale_lr")):
        back = np.where(kinds, 1e-3, slopes)
        history = recorded(level(), grad_l2=back, weight_l2=3.0, update_l2=3e-4)

        assert only("slow", history).fix.code == code
