import numpy as np
import pytest
from training.diagnoses.histories import asked, only, until

from difflens.testing.histories import falling, faulty, level, network, noise, recorded
from difflens.training.records.runs import Layer


def test_gradients_that_pile_up_are_told_within_ten_steps():
    assert only("wiring", until(faulty()["wiring"], 10)).fix.code == "call_zero_grad"


def test_gradients_cleared_after_the_forward_pass_are_fine():
    history = recorded(
        falling(100), scalars={"grad_kept": 1.0}, grad_l2=1e-2 * falling(100) * noise(100, 0.2, 5)
    )

    assert asked("wiring", history) == []


def test_modules_left_in_eval_mode_are_told():
    found = only("wiring", recorded(falling(20), facts={"eval_modules": ["hidden.1"]}))

    assert found.fix.code == "train_mode"
    assert found.layers == ("hidden.1.weight", "hidden.1.bias")


def test_sums_that_grow_smoothly_count_and_rough_ones_do_not():
    grown = 1e-2 * np.minimum(1 + np.arange(60), 8.0)
    rough = grown * noise(60, 0.5, 1)

    assert asked("wiring", recorded(falling(60), scalars={"grad_kept": 1.0}, grad_l2=grown))
    assert not asked("wiring", recorded(falling(60), scalars={"grad_kept": 1.0}, grad_l2=rough))


def test_sums_that_turn_at_first_and_are_smooth_by_now_count_where_the_loss_suffers():
    early = np.arange(120) < 20
    norms = 1e-2 * np.where(early, noise(120, 0.5, 1), 1 + 0.01 * np.arange(120))
    batches = 1e-2 * noise(120, 0.2, 1)
    kept = {"grad_kept": 1.0}

    summed = only("wiring", recorded(level(120), scalars=kept, grad_l2=norms))

    assert summed.fix.code == "call_zero_grad"
    assert asked("wiring", recorded(falling(120), scalars=kept, grad_l2=norms)) == []
    assert asked("wiring", recorded(level(120), scalars=kept, grad_l2=batches)) == []


def test_gradients_that_pile_up_from_some_step_on_are_told_with_that_step():
    at = np.arange(140)
    gradients = 1e-2 * np.where(at < 100, noise(140, 0.3, 4), 1.2 ** np.maximum(at - 99, 0))
    history = recorded(
        falling(140), scalars={"grad_kept": np.where(at < 100, 0.0, 1.0)}, grad_l2=gradients
    )

    assert abs(only("wiring", history).since_step - 100) <= 1


def test_steps_that_leave_the_held_back_loss_exactly_as_it_was_are_put_back():
    values = np.where(np.arange(120) % 20 == 0, 2.273, np.nan)

    found = only("wiring", recorded(level(120), scalars={"val_loss": values}))

    assert "put back" in found.cause


def test_weights_that_decay_alone_moves_are_not_put_back():
    values = np.where(np.arange(120) % 20 == 0, 2.273, np.nan)

    assert asked("wiring", recorded(level(120), scalars={"val_loss": values}, grad_l2=0.0)) == []


def test_a_held_back_loss_that_moves_a_little_is_not_put_back():
    values = np.where(np.arange(120) % 20 == 0, 2.273 + 1e-6 * np.arange(120), np.nan)

    assert asked("wiring", recorded(level(120), scalars={"val_loss": values})) == []


def test_a_held_back_loss_that_stands_because_the_rate_has_ended_is_not_put_back():
    values = np.where(np.arange(120) % 20 == 0, 2.273, np.nan)
    updates = np.where(np.arange(120) < 20, 1e-2, 0.0)

    assert (
        asked("wiring", recorded(level(120), scalars={"val_loss": values}, update_l2=updates)) == []
    )


def test_weights_that_leap_back_again_and_again_are_written_by_something_else():
    weights = 1.0 + 4 * (np.arange(60) % 20) / 20

    found = only("wiring", recorded(falling(60), weight_l2=weights, update_l2=0.21))

    assert "far more than their update" in found.text
    assert asked("wiring", recorded(falling(60), weight_l2=weights, update_l2=2.0)) == []


def test_biases_that_never_leave_zero_are_steps_that_are_taken_back():
    weights = np.where(np.arange(12) % 2, 1e-3, 1.0)

    found = only("wiring", recorded(level(80), weight_l2=weights, update_l2=1e-3))

    assert "taken back" in found.text
    assert asked("wiring", recorded(falling(80), weight_l2=weights, update_l2=1e-3)) == []


def test_biases_are_short_beside_steps_that_grew_many_times_over():
    growing = np.outer(1e-3 * 1.06 ** np.arange(120), np.ones(12))
    weights = np.where(np.arange(12) % 2, growing, 1.0)

    assert asked("wiring", recorded(level(120), weight_l2=weights, update_l2=growing)) == []


def test_biases_whose_gradients_wake_are_not_taken_back_though_the_latest_steps_are_large():
    steps = 1e-3 * np.exp(0.1 * np.arange(80))[:, None] * np.ones(12)
    weights = np.where(np.arange(12) % 2, 1.8 * steps, 100.0)
    weights[0, 1::2] = steps[0, 1::2]

    assert asked("wiring", recorded(level(80), weight_l2=weights, update_l2=steps)) == []


def test_a_first_step_several_times_the_rate_times_its_gradient_is_taken_several_times():
    given = {"optimizer": {"name": "SGD"}, "scalars": {"lr": 0.1}, "grad_l2": 0.02}

    found = only("wiring", recorded(falling(20), update_l2=0.008, **given))

    assert found.evidence["times"] == 4
    assert asked("wiring", recorded(falling(20), update_l2=0.0038, **given)) == []


def test_a_first_step_of_exactly_two_is_told_where_nothing_else_makes_it_so():
    rate = {"scalars": {"lr": 0.1}, "grad_l2": 0.02}
    plain = {"name": "SGD", "nesterov": False}

    found = only("wiring", recorded(falling(20), update_l2=0.004, optimizer=plain, **rate))

    assert found.fix.code == "step_once"
    for given, step in ((plain, 0.0038), ({"name": "SGD", "nesterov": True}, 0.004)):
        assert asked("wiring", recorded(falling(20), update_l2=step, optimizer=given, **rate)) == []
    rate["scalars"] = {"lr": 0.1 * np.arange(1, 21)}
    assert asked("wiring", recorded(falling(20), update_l2=0.004, optimizer=plain, **rate)) == []


def test_groups_with_rates_of_their_own_are_not_steps_taken_several_times():
    """The rate that is recorded is that of the first group."""
    given = {"scalars": {"lr": 0.1}, "grad_l2": 0.02, "update_l2": 0.008}

    for more in ({"several_rates": True}, {"others": ["Adam"]}):
        history = recorded(falling(20), optimizer={"name": "SGD", **more}, **given)
        assert asked("wiring", history) == []


def test_batch_norms_that_never_learn_what_they_see_leave_held_back_data_at_guessing():
    norm = Layer("norm.weight", (32,), "BatchNorm1d", "weight", 1, "F32", optimised=True)
    values = np.where(np.arange(120) % 20 == 19, 2.4 + 1e-3 * np.arange(120), np.nan)
    history = {"scalars": {"val_loss": values}, "facts": {"output": {"shape": [32, 10]}}}

    found = only("wiring", recorded(falling(120), layers=(*network(), norm), **history))

    assert found.layers == ("norm.weight",)
    assert asked("wiring", recorded(falling(120), **history)) == []


def test_held_back_data_that_sours_as_nothing_is_left_of_the_training_loss_is_no_fault_of_norms():
    norm = Layer("norm.weight", (32,), "BatchNorm1d", "weight", 1, "F32", optimised=True)
    values = np.where(np.arange(160) % 20 == 19, 2.2 + 0.03 * np.arange(160), np.nan)
    history = {"scalars": {"val_loss": values}, "facts": {"output": {"shape": [32, 10]}}}
    few = recorded(falling(160, end=1e-3, pace=0.1), layers=(*network(), norm), **history)
    many = recorded(falling(160, end=0.5, pace=0.1), layers=(*network(), norm), **history)

    assert asked("wiring", few) == []
    assert only("over-fit", few)
    assert only("wiring", many).fix.code == "norm_momentum"


def test_gradients_beyond_what_the_loss_allows_are_scaled_and_not_divided_again():
    output = {"facts": {"output": {"shape": [16, 32]}}}
    broken = np.where(np.arange(30) < 5, 0.7, np.nan)

    found = only("wiring", recorded(broken, grad_l2=400.0, **output))

    assert found.fix.code == "unscale_gradients"
    assert asked("wiring", recorded(broken, grad_l2=1.5, **output)) == []
    assert asked("wiring", recorded(falling(60), grad_l2=400.0, **output)) == []


def test_a_first_step_is_held_against_the_gradient_that_clipping_left():
    given = {"optimizer": {"name": "SGD"}, "grad_l2": 0.2, "update_l2": 0.008}

    found = only("wiring", recorded(falling(20), scalars={"lr": 0.1, "clip_factor": 0.1}, **given))

    assert found.evidence["times"] == pytest.approx(4)
    assert asked("wiring", recorded(falling(20), scalars={"lr": 0.1}, **given)) == []


def test_steps_taken_back_are_told_of_a_loss_that_passes_zero():
    """By its own size, which is next to nothing, such a loss falls far."""
    weights = np.where(np.arange(12) % 2, 1e-3, 1.0)
    losses = np.random.default_rng(1).normal(0.05, 0.8, 120)
    values = np.where(np.arange(120) % 20 == 19, 0.017 - 1e-4 * np.arange(120), np.nan)

    found = asked("wiring", recorded(losses, weight_l2=weights, update_l2=1e-3,
                                     scalars={"val_loss": values}))  # fmt: skip

    assert [each.fix.code for each in found] == ["leave_weights"]


def test_sums_that_turn_to_and_fro_go_on_from_where_they_are():
    kept = {"grad_kept": 1.0}
    walk = np.random.default_rng(5).standard_normal(120).cumsum()
    sums, batches = (1e-2 * np.exp(0.25 * each) for each in (walk, np.diff(walk, prepend=0.0)))

    found = only("wiring", recorded(level(120), scalars=kept, grad_l2=sums))

    assert found.fix.code == "call_zero_grad"
    assert asked("wiring", recorded(level(120), scalars=kept, grad_l2=batches)) == []
    assert asked("wiring", recorded(falling(120), scalars=kept, grad_l2=sums)) == []


def test_large_first_outputs_that_shrink_have_not_learned_in_spite_of_a_copy():
    losses = np.linspace(5.0, 2.0, 120) * noise(120, 0.02)
    classes = {"output": {"shape": [64, 10]}}
    lengths = np.where([each.role == "bias" for each in network()], 1e-3, 1.0)

    def told(values):
        return asked("wiring", recorded(values, facts=classes, weight_l2=lengths, update_l2=1e-3))

    assert [each.fix.code for each in told(losses)] == ["leave_weights"]
    assert told(losses - 1.5) == []


def test_biases_that_a_write_took_and_no_step_takes_away_again_are_held_there():
    losses = np.concatenate([falling(80, end=0.3), 2.2 * noise(60, 0.05, 2)])
    biases = np.array([each.role == "bias" for each in network()])

    def told(after):
        weights = np.ones((140, len(biases)))
        weights[:, biases] = 0.3
        weights[80:, biases] = after[:, None]
        history = recorded(losses, weight_l2=weights, update_l2=0.01)
        return [each.fix.code for each in asked("wiring", history)]

    assert told(np.full(60, 0.012)) == ["leave_weights"]
    assert told(0.01 * np.arange(1, 61) ** 0.5) == []
