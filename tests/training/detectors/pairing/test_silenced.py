import numpy as np
from training.diagnoses.histories import asked, only, until

from difflens.testing.histories import falling, network, recorded

POINTS, CODE = 120, 4  # the layer that fell silent: hidden.2.weight


def looks(values, every=20):
    return np.where(np.arange(len(values)) % every == every - 1, values, np.nan)


def coder(left=0.05, pull=20.0, held_back=None, kept=1.0):
    layers = network()
    fades = np.ones((POINTS, len(layers)))
    fades[:, CODE] = np.maximum(np.exp(-np.arange(POINTS) / 8), left)
    weights = np.ones((POINTS, len(layers)))
    weights[:, CODE] = np.linspace(1.0, kept, POINTS)
    gradients = np.full((POINTS, len(layers)), 0.01)
    gradients[:, : CODE + 1] *= pull
    stands = np.full(POINTS, 0.95) if held_back is None else held_back
    return recorded(
        falling(POINTS, start=1.2, end=0.9, pace=0.2), layers=layers, act_std=fades,
        weight_l2=weights, grad_l2=gradients, scalars={"val_loss": looks(stands)},
    )  # fmt: skip


def test_a_layer_that_falls_silent_under_a_term_that_pulls_harder_than_the_outputs_is_told():
    found = only("loss-pairing", coder())

    assert found.layers[0] == "hidden.2.weight"
    assert found.fix.code == "scale_penalty"
    assert 0 < found.fix.parameters["factor"] < 1 / 20


def test_a_layer_that_speaks_or_was_made_small_itself_is_not():
    for history in (coder(left=0.4), coder(kept=0.1), coder(pull=2.0)):
        assert asked("loss-pairing", history) == []


def test_a_held_back_loss_that_falls_on_needs_no_help():
    assert asked("loss-pairing", coder(held_back=np.linspace(1.1, 0.3, POINTS))) == []


def test_a_term_that_rules_is_told_before_the_layer_is_all_but_silent():
    assert only("loss-pairing", until(coder(left=0.15, pull=60.0), 62)).fix.code == "scale_penalty"
    assert asked("loss-pairing", until(coder(left=0.15, pull=10.0), 62)) == []
