import numpy as np
import pytest
from training.diagnoses.histories import asked, only, until

from difflens.testing.histories import DEPTH, falling, faulty, level, network, noise, recorded
from difflens.training.records.runs import Layer

FADED = np.repeat(10.0 ** np.arange(-2 * DEPTH + 2, 1, 2), 2)


def test_the_layer_farthest_from_the_loss_is_named_first():
    """DC-32: the reference knows no depth."""
    found = only("vanishing", faulty()["vanishing"])

    assert found.layers[0] == "hidden.0.weight"
    assert found.evidence["factor_a_layer"] == pytest.approx(100, rel=0.2)


def test_fading_gradients_of_a_run_that_learns_are_no_fault():
    assert asked("vanishing", recorded(falling(), grad_l2=1e-2 * FADED)) == []


def test_small_gradients_of_a_run_that_is_done_are_no_fault():
    """DC-04: a shrinking norm may be convergence or vanishing; only the loss can tell."""
    done = falling(400, end=1e-4, pace=0.05)

    assert asked("vanishing", recorded(done, grad_l2=1e-7)) == []


def test_it_is_told_within_fifteen_steps():
    assert asked("vanishing", until(faulty()["vanishing"], 15))


def test_sigmoids_are_replaced_and_small_weights_drawn_anew():
    sigmoid = only("vanishing", faulty()["vanishing"])
    relu = only("vanishing", recorded(level(), grad_l2=1e-2 * FADED))

    assert (sigmoid.fix.code, relu.fix.code) == ("change_activation", "reinitialise")


def test_a_memory_that_fades_in_time_is_told_of_plain_recurrence_only():
    for kind, told in (("RNN", 1), ("GRU", 0)):
        layers = (
            Layer("memory.weight_hh_l0", (32, 32), kind, "weight", 0, optimised=True),
            Layer("output.weight", (2, 32), "Linear", "weight", 1, optimised=True),
        )
        history = recorded(level(80), layers=layers, weight_l2=[0.3 * 32**0.5, 1.0])

        assert len(asked("vanishing", history)) == told


def test_a_run_that_stood_still_for_long_and_then_learned_is_told_as_a_warning():
    losses = np.concatenate([level(100), falling(100, end=1.0)])
    faint = np.concatenate([np.tile(1e-2 * FADED, (100, 1)), np.full((100, 2 * DEPTH), 1e-2)])

    found = only("vanishing", recorded(losses, grad_l2=faint, layers=network()))

    assert found.severity == "warning"


def test_half_a_memory_fades_and_that_of_the_frameworks_does_not():
    def of(gain):
        layers = (Layer("memory.weight_hh_l0", (16, 16), "RNN", "weight", 0),)
        return asked("vanishing", recorded(level(100), layers=layers, weight_l2=4 * gain))

    assert of(0.5)
    assert of(3**-0.5) == []


def test_a_loss_that_rests_is_told_where_gradients_had_faded_before_the_first_update():
    rested = falling(120, start=1.0, end=0.5, pace=0.2)
    healed = np.where(np.arange(120)[:, None] < 1, 1e-2 * FADED, 1e-2)
    done = falling(120, start=1.0, end=0.01, pace=0.2)

    found = only("vanishing", recorded(rested, grad_l2=healed))

    assert found.layers[0] == "hidden.0.weight"
    assert asked("vanishing", recorded(rested)) == []
    assert asked("vanishing", recorded(done, grad_l2=healed)) == []


def test_three_sigmoids_may_fade_less_and_get_more_time():
    mild = np.repeat([0.015, 0.1, 0.25, 1.0], 2)
    sigmoids, tanhs = (network(4, activation) for activation in ("Sigmoid", "Tanh"))
    history = recorded(level(60), layers=sigmoids, grad_l2=1e-2 * mild)

    assert only("vanishing", history).layers[0] == "hidden.0.weight"
    assert asked("vanishing", until(history, 30)) == []
    assert asked("vanishing", recorded(level(60), layers=tanhs, grad_l2=1e-2 * mild)) == []


@pytest.mark.parametrize(("scale", "named"), [(1.0, "relu"), (0.6, "tanh")])
def test_sigmoids_give_way_to_what_fits_the_first_weights(scale, named):
    kaiming = np.array([scale * (2 * each.shape[0]) ** 0.5 for each in network()])
    history = recorded(
        level(),
        layers=network(activation="Sigmoid"),
        weight_l2=kaiming,
        grad_l2=1e-2 * FADED * kaiming,
    )

    assert only("vanishing", history).fix.parameters == {"to": named}


def test_weights_that_start_far_too_small_are_told_unless_a_norm_mends_it():
    small = [0.05 * (2 * each.shape[0]) ** 0.5 for each in network()]
    plain = recorded(level(60), weight_l2=small, update_l2=1e-4)
    normed = recorded(level(60), weight_l2=small, update_l2=1e-4, facts={"norm_layers": 3})

    assert only("vanishing", plain).fix.code == "reinitialise"
    assert asked("vanishing", normed) == []


def test_decay_that_takes_the_weights_away_is_lowered():
    shrunk = np.exp(-0.05 * np.arange(100))
    found = only("vanishing", recorded(level(100), weight_l2=shrunk,
                                       optimizer={"weight_decay": 0.5}))  # fmt: skip

    assert found.fix.code == "regularise"
    assert "decay" not in "".join(
        each.text for each in asked("vanishing", recorded(level(100), weight_l2=shrunk))
    )


def test_gates_with_biases_far_out_are_told_beside_a_stuck_loss():
    layers = (
        Layer("memory.weight_hh_l0", (80, 20), "LSTM", "weight", 0, optimised=True),
        Layer("memory.bias_hh_l0", (80,), "LSTM", "bias", 0, optimised=True),
        Layer("output.weight", (2, 20), "Linear", "weight", 1, optimised=True),
    )
    shut, usual = ([5.0, bias, 2.0] for bias in (27.0, 1.0))

    found = only("vanishing", recorded(level(80), layers=layers, weight_l2=shut))

    assert found.layers == ("memory.bias_hh_l0",)
    assert asked("vanishing", recorded(level(80), layers=layers, weight_l2=usual)) == []
    assert asked("vanishing", recorded(falling(80), layers=layers, weight_l2=shut)) == []


def test_decay_that_takes_the_weights_is_told_of_a_regression_that_rests_at_a_constant_answer():
    shrinking = np.exp(-0.05 * np.arange(200))[:, None] * np.ones(12)
    losses = (1.0 + 1.5 * np.exp(-np.arange(200) / 10)) * noise(200, 0.1)
    history = recorded(losses, weight_l2=shrinking, grad_l2=0.01 * shrinking,
                       optimizer={"name": "SGD", "weight_decay": 1.0})  # fmt: skip

    assert only("vanishing", history).fix.code == "regularise"


def test_weights_that_a_penalty_takes_away_are_told_without_a_decay():
    weights = np.maximum(0.9 ** np.arange(120), 0.01)

    found = only("vanishing", recorded(level(120), weight_l2=weights))

    assert "lost more than half" in found.text
    assert asked("lr-high", recorded(level(120), weight_l2=weights, update_l2=0.1 * weights)) == []


def test_small_gradients_behind_the_end_of_a_schedule_are_not_vanishing():
    rate = np.where(np.arange(80) < 30, 1e-2, 1e-6)

    assert asked("vanishing", recorded(level(80), scalars={"lr": rate}, grad_l2=1e-8)) == []


def test_weights_that_are_no_numbers_any_more_are_another_fault_and_no_warning_of_ours():
    lost = np.where(np.arange(60) < 30, 1.0, np.nan)
    history = recorded(level(60), weight_l2=lost, update_l2=lost, act_std=1e30)

    assert all("penalty" not in each.cause for each in asked("vanishing", history))


def faint_before(modules):
    """Return gradients of next to nothing, but for that of the last bias: the slope of the loss."""
    return np.array([1e-9] * (2 * modules - 1) + [0.1])


def gated(blocks):
    """Return blocks of a layer and its gate, and a layer that scores."""
    names = [f"hidden.{place}.{part}" for place in range(blocks) for part in ("gate", "linear")]
    return tuple(
        Layer(f"{name}.{role}", (8, 8) if role == "weight" else (8,), "Linear", role, depth, "F32",
              optimised=True, activation="Sigmoid" if name.endswith("gate") else "")
        for depth, name in enumerate([*names, "output"]) for role in ("weight", "bias")
    )  # fmt: skip


def test_gates_that_are_shut_are_opened_and_not_replaced():
    found = only("vanishing", recorded(level(60), layers=gated(4), grad_l2=faint_before(9)))

    assert found.layers[0] == "hidden.0.gate.weight"
    assert found.fix.code == "reinitialise"
    assert found.fix.parameters["gate_bias"] == pytest.approx(1.66, abs=0.01)


def test_the_sigmoid_behind_the_second_factor_of_a_layer_is_no_gate():
    factors = [("down", (2, 8), ""), ("up", (8, 2), "Sigmoid")]
    names = [(f"hidden.{i}.{part}", *each) for i in range(4) for part, *each in factors]
    layers = tuple(
        Layer(f"{name}.{role}", shape if role == "weight" else shape[:1], "Linear", role, depth,
              "F32", optimised=True, activation=kind)
        for depth, (name, shape, kind) in enumerate([*names, ("output", (3, 8), "")])
        for role in ("weight", "bias")
    )  # fmt: skip
    found = only("vanishing", recorded(level(60), layers=layers, grad_l2=faint_before(9)))

    assert found.fix.code == "change_activation"
    assert "saturates" in found.cause


def test_many_gates_in_a_row_want_a_way_past_them_unless_their_biases_are_far_out():
    biases = np.array([30.0 if "gate.bias" in each.name else 1.0 for each in gated(12)])

    faint = faint_before(25)
    usual = only("vanishing", recorded(level(60), layers=gated(12), grad_l2=faint))
    shut = only("vanishing", recorded(level(60), layers=gated(12), grad_l2=faint, weight_l2=biases))

    assert (usual.fix.code, shut.fix.parameters["gate_bias"]) == ("add_residual", 0.0)


def test_a_gate_that_hardly_learns_beside_layers_that_do_is_no_fading():
    sizes = np.array([1e-9 if "gate" in each.name else 1e-2 for each in gated(2)])

    assert asked("vanishing", recorded(level(60), layers=gated(2), grad_l2=sizes)) == []


def test_a_faint_layer_behind_one_that_is_not_is_a_branch_and_no_fading():
    sizes = np.where(np.arange(12) // 2 == 2, 1e-8, 1e-2)

    assert asked("vanishing", recorded(level(60), grad_l2=sizes)) == []
    assert asked("vanishing", recorded(level(60), grad_l2=sizes[::-1] * 0 + np.sort(sizes)))


def test_norms_that_start_at_next_to_nothing_are_named_and_their_dead_units_are_not():
    norms = tuple(Layer(f"norm.{place}.weight", (32,), "BatchNorm1d", "weight", place, "F32",
                        optimised=True) for place in range(3))  # fmt: skip
    layers = (*network(), *norms)
    gains = np.where(np.arange(15) < 12, 1.0, 1e-4)
    history = recorded(level(60), layers=layers, weight_l2=gains, grad_l2=1e-9, act_dead=1.0)

    found = only("vanishing", history)

    assert found.layers == ("norm.0.weight", "norm.1.weight", "norm.2.weight")
    assert found.fix.code == "reinitialise"
    assert asked("dead", history) == []


def test_matrices_that_get_no_gradient_at_all_are_told_whatever_the_loss_does():
    tanh = network(activation="Tanh")
    last = np.where(np.arange(12) < 10, 0.0, 1e-2)

    found = only("vanishing", recorded(falling(60), layers=tanh, grad_l2=last))

    assert "do not depend on the inputs" in found.text
    assert asked("vanishing", recorded(falling(60), layers=tanh, grad_l2=last + 1e-3)) == []


def test_a_squared_error_in_large_units_has_gradients_of_its_root():
    assert asked("vanishing", recorded(level(60, at=1e7), grad_l2=10.0)) == []
    assert asked("vanishing", recorded(level(60, at=1e7), grad_l2=1e9 * faint_before(DEPTH) / 100))


def test_where_the_outputs_themselves_get_next_to_nothing_steps_are_small_and_nothing_fades():
    assert asked("vanishing", recorded(level(60), grad_l2=1e-9)) == []
    assert asked("vanishing", recorded(level(60), grad_l2=faint_before(DEPTH)))


def test_one_sigmoid_on_the_way_is_enough_where_there_is_no_other_non_linearity():
    mild = np.repeat([0.015, 0.1, 0.25, 0.5, 0.8, 1.0], 2)
    layers = tuple(
        Layer(each.name, each.shape, each.kind, each.role, each.depth, optimised=True,
              activation="Sigmoid" if each.depth == 0 else "") for each in network()
    )  # fmt: skip
    alone, others = ({"activations": kinds} for kinds in (["Sigmoid"], ["Sigmoid", "ReLU"]))

    found = only("vanishing", recorded(level(60), layers=layers, grad_l2=1e-2 * mild, facts=alone))

    assert found.fix.code == "change_activation"
    assert asked("vanishing", recorded(level(60), layers=layers, grad_l2=1e-2 * mild,
                                       facts=others)) == []  # fmt: skip


def test_attention_that_picks_one_place_leaves_queries_and_keys_gradients_that_leap():
    names = ("query", "key", "value", "gather", "output")
    layers = tuple(Layer(f"hidden.0.{name}.weight", (8, 8), "Linear", "weight", place, "F32",
                         optimised=True) for place, name in enumerate(names))  # fmt: skip
    leaps = np.where(np.arange(80) % 2, 1e-12, 1e-2)[:, None] * [1, 1, 0, 0, 0]
    sizes = leaps + 1e-2 * np.array([0, 0, 1, 1, 1])

    found = only("vanishing", recorded(level(80), layers=layers, grad_l2=sizes))

    assert found.layers == ("hidden.0.query.weight", "hidden.0.key.weight")
    assert found.fix.code == "scale_attention"
    assert asked("vanishing", recorded(falling(80, pace=0.1), layers=layers, grad_l2=sizes)) == []


def test_a_deep_stack_of_filters_without_norms_is_given_some():
    filters = tuple(
        Layer(f"hidden.{place}.weight", (32, 32, 3, 3), "Conv2d", "weight", place, "F32",
              optimised=True, activation="ReLU") for place in range(12)
    )  # fmt: skip
    faint = 1e-2 * 10.0 ** np.arange(-11, 1)

    bare = only("vanishing", recorded(level(60), layers=filters, grad_l2=faint))
    held = only("vanishing", recorded(level(60), layers=filters, grad_l2=faint,
                                      facts={"norm_layers": 3}))  # fmt: skip

    assert (bare.fix.code, held.fix.code) == ("add_normalisation", "reinitialise")


def test_a_decay_under_which_weights_shrank_and_the_loss_fell_by_more_than_half_is_no_fault():
    weights = 8 * (0.4 + 0.6 * np.exp(-0.05 * np.arange(200)))
    losses = (1.0 + 2.0 * np.exp(-np.arange(200) / 10)) * noise(200, 0.05)

    assert asked("vanishing", recorded(losses, weight_l2=weights, grad_l2=0.1,
                                       optimizer={"weight_decay": 0.1})) == []  # fmt: skip


def test_the_forget_gate_of_an_lstm_starts_open():
    layers = (
        Layer("memory.bias_hh_l0", (80,), "LSTM", "bias", 0, optimised=True),
        Layer("output.weight", (2, 20), "Linear", "weight", 1, optimised=True),
    )

    found = only("vanishing", recorded(level(80), layers=layers, weight_l2=[27.0, 2.0]))

    assert found.fix.parameters["forget_bias"] == 1.0


def test_queries_and_keys_that_hardly_learn_are_no_fading_while_values_do():
    names = ("query", "key", "value", "gather", "output")
    layers = tuple(Layer(f"hidden.0.{name}.weight", (8, 8), "Linear", "weight", place, "F32",
                         optimised=True) for place, name in enumerate(names))  # fmt: skip
    faint = np.array([1e-8, 1e-8, 1e-2, 1e-2, 1e-2])

    assert asked("vanishing", recorded(level(60), layers=layers, grad_l2=faint)) == []
    faint[2] = 1e-8
    assert asked("vanishing", recorded(level(60), layers=layers, grad_l2=faint))


def test_held_back_data_tells_that_a_noisy_run_stood_still_before_it_learned():
    held_back = np.concatenate([level(200), falling(200, start=2.3, end=1.2)])
    losses = held_back * np.random.default_rng(0).lognormal(0, 0.15, 400)
    losses[:3] = 2.8  # batches that happened to be hard
    looks = np.where(np.arange(400) % 20 == 19, held_back, np.nan)
    layers, scalars = network(activation="Sigmoid"), {"val_loss": looks}

    faint = recorded(losses, layers=layers, grad_l2=1e-2 * FADED, scalars=scalars)

    assert only("vanishing", faint).fix.code == "change_activation"
    assert asked("vanishing", recorded(losses, layers=layers, scalars=scalars)) == []


def test_sigmoids_that_belong_to_no_layer_are_known_by_the_model():
    def fix(*named):
        facts, layers = {"activations": list(named)}, network(activation="")
        history = recorded(level(), layers=layers, grad_l2=1e-2 * FADED, facts=facts)
        return only("vanishing", history).fix.code

    assert fix("Sigmoid") == "change_activation"
    assert fix("ReLU", "Sigmoid") == fix("Tanh") == "reinitialise"  # one may stand at the end


def test_gradients_that_faded_behind_large_first_steps_are_the_work_of_these():
    faded = np.full((60, 12), 1e-2)
    faded[5:] *= FADED
    large = np.full(12, 1e-3)
    large[10] = 3.0

    assert asked("vanishing", recorded(level(60), grad_l2=faded, update_l2=large)) == []
    assert len(asked("vanishing", recorded(level(60), grad_l2=faded))) == 1
    both = recorded(level(60), grad_l2=1e-2 * FADED, update_l2=large)
    assert len(asked("vanishing", both)) == 1


def test_sigmoids_behind_sums_may_fade_less_as_those_of_layers_do():
    mild = np.repeat([0.015, 0.1, 0.25, 1.0], 2)

    def told(kind):
        facts = {"activations": [kind]}
        history = recorded(level(60), layers=network(4, ""), facts=facts, grad_l2=1e-2 * mild)
        return asked("vanishing", history)

    assert [each.fix.code for each in told("Sigmoid")] == ["change_activation"]
    assert told("ELU") == []


@pytest.mark.parametrize(("explained", "told"), [(1e-4, True), (0.8, False)])
def test_a_loss_that_fell_to_guessing_by_the_last_bias_alone_is_stuck_as_well(explained, told):
    """It began far above guessing, and outputs that are one number explain none of the targets."""
    losses = (1.0 + 7.0 * np.exp(-np.arange(200) / 20)) * noise(200, 0.05)
    history = recorded(losses, grad_l2=1e-2 * FADED, act_std=explained, weight_l2=1.0,
                       facts={"output": {"shape": [64, 1], "min": -2.6, "max": -2.6}})  # fmt: skip

    assert bool(asked("vanishing", history)) == told


def test_the_one_layer_that_lets_nothing_back_is_named_before_those_in_front_of_it():
    back = np.repeat([1e-7, 1e-7, 2e-7, 2e-7, 1e-2, 1e-2], 2)

    found = only("vanishing", recorded(level(60), grad_l2=back, layers=network(activation="Tanh")))

    assert found.layers[0] == "hidden.3.weight"


@pytest.mark.parametrize(("part", "told"), [(0.05, 0), (1e-3, 1)])
def test_what_first_steps_did_that_are_large_in_all_is_theirs(part, told):
    back = np.tile(1e-2 * FADED, (60, 1))
    back[0] = 1e-2
    steps = 6 * np.where(np.arange(60) < 3, part, 1e-4)
    found = asked("vanishing", recorded(level(60), grad_l2=back, update_l2=steps, weight_l2=6.0))

    assert len(found) == told
