import numpy as np
from training.diagnoses.histories import asked, only

from difflens.testing.histories import falling, noise, recorded


def cosines(final="Unit", low=-0.9, high=0.9):
    return {"output": {"shape": [32, 9], "min": low, "max": high}, "final_module": final}


def test_cosines_without_a_temperature_keep_the_loss_above_what_they_allow():
    losses = falling(120, start=2.25, end=1.6, pace=0.1)

    found = only("loss-pairing", recorded(losses, facts=cosines()))

    assert found.fix.code == "remove_softmax"
    assert found.layers == (recorded(losses).info.layers[-2].name,)
    assert 1.3 < found.evidence["floor"] < 1.35


def test_what_passes_scores_on_or_lets_them_out_is_not_suspected():
    losses = falling(120, start=2.25, end=1.6, pace=0.1)

    for facts in (cosines("AvgPool1d"), cosines("Linear"), cosines(high=3.0), cosines(low=0.1)):
        assert asked("loss-pairing", recorded(losses, facts=facts)) == []


def test_a_loss_below_what_cosines_allow_has_a_temperature_somewhere():
    losses = falling(120, start=2.25, end=1.0, pace=0.1)

    assert asked("loss-pairing", recorded(losses, facts=cosines())) == []


def test_steps_that_are_next_to_nothing_are_to_blame_before_what_bounds_the_outputs():
    facts = {"output": {"shape": [32, 1], "min": 0.2, "max": 0.8}, "final_module": "Sigmoid"}
    losses = (0.7 + 0.4 * np.exp(-np.arange(150) / 10)) * noise(150, 0.1)

    assert asked("loss-pairing", recorded(losses, facts=facts, act_std=0.35))
    assert asked("loss-pairing", recorded(losses, facts=facts, act_std=0.35, update_l2=1e-6)) == []


SIGMOID = {"output": {"shape": [16, 144], "min": 0.1, "max": 0.8}, "final_module": "Sigmoid"}


def test_units_that_died_before_the_last_layer_leave_its_bias_the_gradient_it_had():
    losses = np.log(2) + 0.2 * np.exp(-0.4 * np.arange(40))
    faded = np.full((40, 12), 1e-2)
    faded[:, :11] *= np.exp(-0.3 * np.arange(40))[:, None]

    assert asked("loss-pairing", recorded(losses, facts=SIGMOID, grad_l2=faded)) == []


def test_outputs_beyond_the_bounds_show_that_what_is_called_last_is_not():
    losses = falling(120, start=2.25, end=1.6, pace=0.1)
    facts = {"output": {"shape": [32, 9], "min": -2.2, "max": 3.1}, "final_module": "Tanh"}

    assert asked("loss-pairing", recorded(losses, facts=facts)) == []
