import numpy as np
from training.diagnoses.histories import asked, only, until

from difflens.testing.histories import DEPTH, falling, faulty, level, recorded
from difflens.training.records.runs import Layer

SHARE = [1.0 if place == 2 else 0.1 for place in range(DEPTH) for _ in range(2)]


def test_the_layer_whose_units_died_is_named():
    found = only("dead", faulty()["dead"])

    assert found.layers[0] == "hidden.2.weight"


def test_ordinary_sparsity_of_relu_is_no_fault():
    """training.md 4.3: peers cry on it. DC-17: a share of units, not a squashed mean."""
    assert asked("dead", recorded(level(), act_dead=0.35)) == []


def test_dead_units_of_a_run_that_learns_are_no_fault():
    assert asked("dead", recorded(falling(), act_dead=SHARE)) == []


def test_units_that_died_later_blame_the_steps_and_units_dead_from_the_start_the_weights():
    late = np.where(np.arange(200)[:, None] < 60, 0.1, np.array(SHARE))

    born = only("dead", recorded(level(), act_dead=SHARE))
    killed = only("dead", recorded(level(), act_dead=late))

    assert (born.since_step, killed.since_step) == (0, 60)
    assert (born.fix.code, killed.fix.code) == ("reinitialise", "scale_lr")


def test_without_activations_gradients_of_exactly_zero_behind_a_relu_tell():
    history = recorded(level(), grad_l2=[0.0] * 4 + [1e-2] * (2 * DEPTH - 4))

    assert only("dead", history).evidence["seen_by"] == "gradients of exactly zero"


def test_dead_units_of_a_run_that_rose_at_first_and_learned_since_are_no_fault():
    losses = np.concatenate([[8.0, 12.0, 25.0, 18.0, 15.0, 12.0, 9.0], falling(150, end=0.1)])

    assert asked("dead", recorded(losses, act_dead=SHARE)) == []


def test_a_layer_whose_bias_alone_gets_a_gradient_has_dead_units_before_it():
    gradients = np.where(np.arange(12) == 11, 1e-2, 0.0)

    found = only("dead", recorded(falling(60), grad_l2=gradients))

    assert found.layers[:2] == ("hidden.4.weight", "hidden.3.weight")
    assert asked("not-training", recorded(falling(60), grad_l2=gradients)) == []


def test_a_branch_that_died_beside_a_way_that_learns_is_no_fault():
    """Before it the gradients come by another way."""
    sizes = np.array([1e-2] * 4 + [0.0, 0.0, 0.0] + [1e-2] * 5)

    assert asked("dead", recorded(falling(60), grad_l2=sizes)) == []


def test_states_of_gated_cells_that_are_zero_are_shut_gates_and_no_dead_units():
    layers = (
        Layer("memory.weight_hh_l0", (24, 8), "GRU", "weight", 0, optimised=True),
        Layer("output.weight", (2, 8), "Linear", "weight", 1, optimised=True),
        Layer("output.bias", (2,), "Linear", "bias", 1, optimised=True),
    )

    assert asked("dead", recorded(level(60), layers=layers, grad_l2=[0.0, 0.0, 0.1])) == []


def test_units_that_large_first_steps_killed_are_not_dead_from_the_start():
    late = np.where(np.arange(200)[:, None] < 6, 0.1, np.array(SHARE))
    first = np.where(np.arange(2 * DEPTH) == 2 * DEPTH - 2, 30.0, 1e-2)
    steps = np.where(np.arange(200)[:, None] < 6, first, 1e-2)

    found = only("dead", recorded(level(), act_dead=late, update_l2=steps, weight_l2=32.0))

    assert found.fix.code == "scale_lr"
    assert found.layers[:2] == (f"hidden.{DEPTH - 1}.weight", "hidden.2.weight")


def test_outputs_that_a_relu_bars_from_the_start_want_none_unless_their_biases_do():
    last = [0.1] * (2 * DEPTH - 2) + [1.0] * 2
    facts = {"output": {"shape": [64, 1], "min": 0.0, "max": 0.0}, "final_module": "ReLU"}
    far = [1.0] * (2 * DEPTH - 1) + [99.0]

    born = only("dead", recorded(level(), act_dead=last, facts=facts))
    barred = only("dead", recorded(level(), act_dead=last, facts=facts, weight_l2=far))
    behind = only("dead", recorded(level(), act_dead=SHARE, facts=facts))

    codes = [each.fix.code for each in (born, barred, behind)]
    assert codes == ["remove_softmax", "reinitialise", "reinitialise"]


def rarely(points, seldom, at):
    """Make gradients of a stack that is dead but at a few points, and learns by its last bias."""
    last = np.arange(2 * DEPTH) == 2 * DEPTH - 1
    awake = np.isin(np.arange(points), at)[:, None]
    return np.where(last, 1e-2, np.where(awake, seldom, 0.0))


def test_a_rare_batch_that_wakes_a_unit_does_not_blame_the_steps_for_its_death():
    awake_now = rarely(200, 1e-3, [4, 37, 59, 196])
    killed = rarely(200, 1e-2, range(60))

    born = only("dead", recorded(level(), grad_l2=awake_now))
    later = only("dead", recorded(level(), grad_l2=killed))

    assert (born.since_step, born.fix.code) == (0, "reinitialise")
    assert (later.since_step, later.fix.code) == (60, "scale_lr")


def test_a_rare_active_batch_is_seen_in_activations_as_well():
    shares = np.tile(np.array(SHARE), (200, 1))
    shares[[7, 90, 150], :] = 0.1

    assert only("dead", recorded(level(), act_dead=shares)).fix.code == "reinitialise"


def test_steps_that_momentum_adds_up_to_the_weights_and_more_want_more_than_a_tenth():
    late = np.where(np.arange(200)[:, None] < 60, 0.1, np.array(SHARE))

    def fix(momentum):
        optimizer = {"momentum": momentum}
        return only(
            "dead", recorded(level(), act_dead=late, update_l2=2.0, optimizer=optimizer)
        ).fix

    assert fix(0.95).parameters["factor"] < 0.05
    assert fix(0.99).code == "lower_momentum"
    assert fix(0.99).parameters["lr_factor"] < 0.05


def test_first_steps_as_large_as_the_weights_are_given_time_to_show_what_they_did():
    torn = recorded(level(60), act_dead=SHARE, update_l2=2.0 * np.sqrt([32.0, 1.0] * DEPTH))
    calm = recorded(level(60), act_dead=SHARE)

    assert [len(asked("dead", until(torn, points))) for points in (15, 25)] == [0, 1]
    assert len(asked("dead", until(calm, 15))) == 1
