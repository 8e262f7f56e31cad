import numpy as np
import pytest
from training.diagnoses.histories import asked, only

from difflens.testing.histories import falling, network, noise, recorded

AT, POINTS, CODE = 80, 100, 4  # the last layer that a term hangs on: hidden.2.weight


def weighed(below=20.0, outputs=1.0, updates=1e-3):
    """Make a loss that leaps at a step, with gradients of both parts of the network."""
    losses = falling(POINTS, start=1.2, end=0.3, pace=0.1)
    losses[AT:] = 1.5 * noise(POINTS - AT, 0.05, 2)
    gradients = 0.01 * np.ones((POINTS, len(network()))) * noise(POINTS, 0.1, 3)[:, None]
    gradients[AT:, : CODE + 2] *= below
    gradients[AT:, CODE + 2 :] *= outputs
    return recorded(losses, grad_l2=gradients, update_l2=updates)


def test_a_loss_that_leaps_while_the_output_layer_gets_what_it_did_has_a_heavier_term():
    found = only("loss-pairing", weighed())

    assert (found.since_step, found.fix.code) == (AT, "scale_penalty")
    assert 0.02 < found.fix.parameters["factor"] < 0.1
    assert all(int(each.split(".")[1]) <= 2 for each in found.layers)


@pytest.mark.parametrize(
    "history",
    [weighed(outputs=20.0), weighed(below=1.0)],
    ids=["what comes in is other", "the loss alone leapt"],
)
def test_other_leaps_are_none(history):
    assert asked("loss-pairing", history) == []


def test_a_large_step_before_it_threw_it():
    updates = np.full(POINTS, 1e-3)
    updates[AT - 2] = 0.1

    assert asked("loss-pairing", weighed(updates=updates)) == []
