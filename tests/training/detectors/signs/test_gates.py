import numpy as np
import pytest

from difflens.testing.histories import level, network, recorded
from difflens.training.detectors.signs.gates import bias_of, gates, in_series, open_bias
from difflens.training.detectors.signs.sight import sight
from difflens.training.records.runs import Layer


def seen_with(activations, biases=0.0):
    layers = tuple(
        Layer(f"block.{depth}.{role}", (4, 4) if role == "weight" else (4,), "Linear", role, depth,
              activation=kind)
        for depth, kind in enumerate(activations) for role in ("weight", "bias")
    )  # fmt: skip
    weights = [biases if layer.role == "bias" else 1.0 for layer in layers]
    return sight(recorded(level(9), layers=layers, weight_l2=weights))


def test_sigmoids_among_as_many_other_layers_are_gates():
    some = seen_with(["Sigmoid", "Tanh", "Sigmoid", "ReLU", ""])
    stack = sight(recorded(level(9), layers=network(6, "Sigmoid")))

    assert gates(some.layers, np.arange(5)) == [0, 2]
    assert gates(stack.layers, np.arange(6)) == []


def test_a_sigmoid_behind_the_last_layer_is_no_gate():
    assert gates(seen_with(["ReLU", "ReLU", "Sigmoid"]).layers, np.arange(3)) == []


@pytest.mark.parametrize("series", [1, 2, 6, 30])
def test_gates_that_are_opened_pass_on_half_of_a_signal_together(series):
    opened = 1 / (1 + np.exp(-open_bias(series)))

    assert opened**series == pytest.approx(0.5)


def test_gates_at_one_depth_are_met_side_by_side_and_their_biases_are_measured_by_unit():
    seen = seen_with(["Sigmoid", "", "Sigmoid", "", ""], biases=8.0)

    assert in_series(seen.layers, [0, 2]) == 2
    assert bias_of(seen, [0, 2]) == pytest.approx(4.0)
