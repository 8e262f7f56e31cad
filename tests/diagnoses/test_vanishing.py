import numpy as np
import pytest
from diagnoses.histories import asked, only, until

from difflens.runs import Layer
from difflens.testing.histories import DEPTH, falling, faulty, level, network, recorded

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
