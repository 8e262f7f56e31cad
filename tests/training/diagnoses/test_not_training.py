import msgspec
import numpy as np
from training.diagnoses.histories import asked, only, until

from difflens.testing.histories import DEPTH, WIDTH, falling, faulty, level, network, recorded
from difflens.training.history.frame import MISSING
from difflens.training.records.runs import Layer

STILL = [0.0] * 4 + [1e-3] * (2 * DEPTH - 4)


def test_layers_that_the_optimiser_never_got_are_named_within_five_steps():
    found = only("not-training", until(faulty()["not-training"], 5))

    assert set(found.fix.parameters["layers"]) == {each.name for each in network()[:4]}
    assert found.fix.code == "add_to_optimizer"


def test_step_that_is_never_called_is_told():
    history = recorded(level(20), update_l2=0.0, scalars={"optimizer_steps": 0.0})

    assert only("not-training", history).fix.code == "call_step"


def test_it_is_told_as_well_where_no_update_was_ever_recorded():
    history = recorded(level(20), update_l2=float(MISSING), scalars={"optimizer_steps": 0.0})
    missing = history._replace(course=history.course)
    missing.course._layers[:, :, 6] = MISSING

    assert only("not-training", missing).fix.code == "call_step"


def test_layers_that_no_gradient_reaches_are_cut_off():
    history = recorded(falling(40), update_l2=STILL)
    history.course._layers[:, :, 0, :4] = MISSING

    found = only("not-training", history)

    assert found.fix.code == "remove_detach"
    assert found.layers[0].startswith("hidden.1")


def test_layers_frozen_on_purpose_are_no_fault():
    layers = tuple(
        Layer(each.name, each.shape, each.kind, each.role, each.depth, trainable=each.depth > 1)
        for each in network()
    )

    assert asked("not-training", recorded(falling(40), layers=layers, update_l2=STILL)) == []


def test_a_learning_rate_of_zero_moves_nothing_and_is_waited_for():
    history = recorded(level(20), update_l2=0.0, scalars={"lr": 0.0, "optimizer_steps": 1.0})

    assert asked("not-training", history) == []


def test_gradients_too_small_to_move_a_weight_vanish_and_are_not_forgotten():
    tiny = np.array([1e-20] * 4 + [1e-2] * (2 * DEPTH - 4))

    assert asked("not-training", recorded(level(40), update_l2=STILL, grad_l2=tiny)) == []


def test_weights_that_moved_to_nan_have_moved():
    everything = {"update_l2": np.nan, "grad_l2": np.nan, "weight_l2": np.nan}

    assert asked("not-training", recorded(np.full(20, np.nan), **everything)) == []


def test_an_optimiser_that_is_not_called_any_more_is_told_with_the_step():
    at = np.arange(100)
    history = recorded(
        falling(100), update_l2=np.where(at < 60, 1e-3, 0.0),
        scalars={"optimizer_steps": np.where(at < 60, 1.0, 0.0)},
    )  # fmt: skip

    found = only("not-training", history)

    assert (found.fix.code, found.since_step) == ("call_step", 60)
    assert asked("not-training", until(history, 80)) == []


def test_an_optimiser_that_holds_none_of_the_parameters_is_told():
    """Of what no optimiser holds nothing is recorded but what the model answers."""
    layers = tuple(
        Layer(each.name, each.shape, each.kind, each.role, each.depth, optimised=False)
        for each in network()
    )
    nothing = dict.fromkeys(("grad_l2", "weight_l2", "update_l2"), MISSING)
    history = recorded(level(20), layers=layers, scalars={"optimizer_steps": 1.0}, **nothing)

    found = only("not-training", history)

    assert (found.severity, found.fix.code) == ("critical", "add_to_optimizer")


def test_gradients_of_exactly_zero_everywhere_are_told_where_the_last_layer_is_linear():
    silent = {"grad_l2": 0.0, "update_l2": 0.0, "scalars": {"optimizer_steps": 1.0}}

    found = only("not-training", recorded(level(20), facts={"final_module": "Linear"}, **silent))

    assert "exactly zero" in found.text
    assert (
        asked("not-training", recorded(level(20), facts={"final_module": "ReLU"}, **silent)) == []
    )


def test_layers_that_get_gradients_and_move_by_a_millionth_of_others_stand_still_in_effect():
    updates = np.where(np.arange(12) < 10, 1e-9, 1e-2)

    found = only("not-training", recorded(falling(60), update_l2=updates))

    assert found.layers[0] == "hidden.0.weight"
    assert "hidden.5.weight" not in found.layers
    assert (
        asked("not-training", recorded(falling(60), update_l2=10 * np.maximum(updates, 1e-4))) == []
    )


def test_gradients_that_are_cleared_before_the_step_are_told_where_the_optimiser_holds_all():
    still = {"update_l2": 0.0, "scalars": {"optimizer_steps": 1.0}}
    strange = tuple(msgspec.structs.replace(each, optimised=None) for each in network())

    held = only("not-training", recorded(level(20), **still))
    other = only("not-training", recorded(level(20), layers=strange, **still))

    assert (held.fix.code, other.fix.code) == ("call_zero_grad", "add_to_optimizer")


def test_gradients_that_half_precision_rounds_off_are_scaled():
    grid = {"grad_max_abs": 3 * 2.0**-24, "facts": {"final_module": "Linear"}}

    found = only("not-training", recorded(level(40), **grid))

    assert found.fix.code == "scale_loss"
    assert asked("not-training", recorded(level(40), **{**grid, "grad_max_abs": 3.3e-7})) == []


def test_next_to_all_gradients_of_exactly_zero_are_told_though_single_entries_pass():
    zeros = np.array([each.count for each in network()]) * 0.995
    given = {"grad_zeros": zeros, "facts": {"final_module": "Linear"}}

    found = only("not-training", recorded(level(40), **given))

    assert "exactly zero" in found.text
    assert asked("not-training", recorded(falling(200, end=0.1), **given)) == []


def test_norms_that_are_left_out_and_let_nothing_pass_are_started_anew():
    norm = Layer("norm.weight", (32,), "LayerNorm", "weight", 2, "F32", optimised=False)
    layers = (*network(), norm)
    none, all_of_them = [0.0] * 11 + [1e-3, MISSING], [1e-3] * 12 + [MISSING]

    blocked = recorded(level(20), layers=layers, update_l2=none, grad_l2=none)
    passing = recorded(level(20), layers=layers, update_l2=all_of_them)

    assert only("not-training", blocked).fix.code == "reinitialise"
    assert only("not-training", passing).fix.code == "add_to_optimizer"


def test_a_layer_that_stands_still_after_steps_threw_it_away_was_trained():
    rows = np.where(np.arange(12) < 10, 1e-9, 1e-2)
    updates = np.where(np.arange(80)[:, None] < 30, 1e-2, rows)

    assert asked("not-training", recorded(falling(80), update_l2=updates)) == []


def test_norms_and_matrices_that_are_both_left_out_are_given_to_the_optimiser():
    """Of what it does not hold no gradient is recorded: that is no gradient of zero."""
    norm = Layer("norm.weight", (32,), "LayerNorm", "weight", 2, "F32", optimised=False)
    layers = tuple(
        msgspec.structs.replace(each, optimised=each.role == "bias") for each in (*network(), norm)
    )
    biases_alone = [1e-3 if each.role == "bias" else MISSING for each in layers]

    history = recorded(level(20), layers=layers, update_l2=biases_alone, grad_l2=biases_alone)

    assert only("not-training", history).fix.code == "add_to_optimizer"


def test_a_rate_next_to_zero_is_told_where_some_of_its_steps_are_rounded_to_nothing():
    updates = np.where(np.arange(12) < 10, 1e-9, 1e-2)
    updates[4] = 0.0

    found = only("not-training", recorded(falling(60), update_l2=updates))

    assert (found.fix.code, found.layers[0]) == ("add_to_optimizer", "hidden.0.weight")


def test_weights_that_went_between_the_recorded_points_did_move():
    """Every tenth of accumulated steps was recorded, and never the one with the update."""
    sizes = np.sqrt([layer.count for layer in network()]) / WIDTH**0.5
    course = sizes * (1 + 1e-3 * np.arange(60))[:, None]

    assert asked("not-training", recorded(falling(60), update_l2=0.0, weight_l2=course)) == []
    assert asked("not-training", recorded(falling(60), update_l2=0.0)) != []


def frozen(layers):
    return tuple(msgspec.structs.replace(each, trainable=False) for each in layers)


def never_stepped(layers, **fields):
    return recorded(level(20), layers=layers, scalars={"optimizer_steps": 0.0}, **fields)


def test_a_model_of_frozen_layers_alone_is_told_that_all_are_frozen():
    found = only("not-training", never_stepped(frozen(network()), update_l2=0.0, grad_l2=MISSING))

    assert found.severity == "critical"
    assert f"nothing to train: all {2 * DEPTH} layers are frozen" in found.text
    assert "optimizer.step()" not in found.text + "".join(found.advice)
    assert found.fix is None


def test_a_model_without_parameters_is_told_that_it_has_none():
    found = only("not-training", never_stepped(()))

    assert found.text == "there is nothing to train: the model has no parameters"


def test_a_log_of_losses_is_not_told_that_it_has_no_parameters():
    assert asked("not-training", recorded(falling(40), layers=())) == []


def test_layers_that_were_frozen_at_first_and_moved_later_are_no_fault():
    moved = np.where(np.arange(20) < 10, 0.0, 1e-3)
    history = recorded(
        level(20), layers=frozen(network()), update_l2=moved,
        scalars={"optimizer_steps": (moved > 0).astype(float)},
    )  # fmt: skip

    assert asked("not-training", history) == []
