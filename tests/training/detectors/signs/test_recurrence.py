import numpy as np
import pytest

from difflens.testing.histories import falling, recorded
from difflens.training.detectors.signs.recurrence import gains, wrong_memory
from difflens.training.records.runs import Layer


@pytest.mark.parametrize("gain", [0.3, 1.0, 1.6])
def test_the_gain_of_a_multiple_of_an_orthogonal_matrix_is_that_multiple(gain):
    matrix, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((16, 16)))
    layers = (Layer("memory.weight_hh_l0", (16, 16), "RNN", "weight", 0),)

    found = gains(recorded(falling(5), layers=layers, weight_l2=np.linalg.norm(gain * matrix)))

    assert found == {"memory.weight_hh_l0": pytest.approx(gain)}


def test_gated_layers_have_no_gain():
    layers = (Layer("memory.weight_hh_l0", (48, 16), "GRU", "weight", 0),)

    assert gains(recorded(falling(5), layers=layers)) == {}


def test_the_gain_at_the_start_is_not_known_where_the_first_step_left_little_of_the_weights():
    layers = (Layer("memory.weight_hh_l0", (16, 16), "RNN", "weight", 0),)

    assert gains(recorded(falling(5), layers=layers, weight_l2=20.0, update_l2=19.0)) == {}


@pytest.mark.parametrize(("largest", "scheme"), [(1e5, "identity"), (2.0, "orthogonal")])
def test_states_beyond_one_are_not_those_of_tanh_and_start_at_the_identity(largest, scheme):
    layers = (
        Layer("memory.weight_hh_l0", (16, 16), "RNN", "weight", 0),
        Layer("output.weight", (2, 16), "Linear", "weight", 1),
    )
    output = {"shape": [64, 2], "min": -1.0, "max": largest}
    history = recorded(
        falling(5), layers=layers, weight_l2=[1.6 * 4, 1.0], facts={"output": output}
    )

    found = wrong_memory(history, lambda gain: gain > 1.25)

    assert found.layers == ["memory.weight_hh_l0"]
    assert found.fix.parameters["scheme"] == scheme


def test_the_memory_farthest_from_one_is_named_first():
    layers = tuple(Layer(f"memory.weight_hh_l{i}", (16, 16), "RNN", "weight", i) for i in (0, 1))

    found = wrong_memory(
        recorded(falling(5), layers=layers, weight_l2=[4 * 0.4, 4 * 0.1]), lambda gain: gain < 0.5
    )

    assert found.layers[0] == "memory.weight_hh_l1"
    assert wrong_memory(recorded(falling(5)), lambda gain: gain < 0.5) is None
