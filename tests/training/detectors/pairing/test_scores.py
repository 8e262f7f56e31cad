import numpy as np
import pytest
from training.diagnoses.histories import asked, only

from difflens.testing.histories import network, recorded

FACTS = {"output": {"shape": [32, 10], "min": -1.0, "max": 1.0}, "final_module": "Linear"}


@pytest.mark.parametrize(("first", "power", "code"), [(0.2, 1.0, "normalise_scores"),
                                                      (2.4, 1.0, "negate_loss"),
                                                      (0.2, 2.0, "negate_loss")])  # fmt: skip
def test_scores_begin_at_nothing_and_grow_with_the_outputs(first, power, code):
    """A negated cross entropy begins at minus guessing, a negated error grows with the square."""
    outputs = 1.2 ** np.arange(80)
    losses = -first * outputs**power

    history = recorded(losses, facts=FACTS, act_std=outputs)

    assert only("loss-pairing", history).fix.code == code


def slowing(points=150):
    """A loss without a floor that falls ever more slowly."""
    return 0.05 - 1.5 * np.arange(points) ** 0.55


def test_a_loss_that_is_an_output_with_a_minus_has_no_floor_however_slowly_it_falls():
    losses = slowing()

    found = only("loss-pairing", recorded(losses, facts=FACTS, act_mean=-0.8 * losses, act_std=3.0))

    assert found.fix.code == "normalise_scores"


def test_a_likelihood_that_lies_among_wide_outputs_is_none_of_them():
    losses = slowing()

    assert asked("loss-pairing", recorded(losses, facts=FACTS, act_mean=-0.5, act_std=30.0)) == []


@pytest.mark.parametrize(("pull", "code"), [(0.33, "normalise_scores"), (0.05, "negate_loss")])
def test_scores_that_blow_up_at_once_are_told_by_how_steadily_they_pull(pull, code):
    """Each output is pulled by how often its class is right, however far it has gone."""
    layers = network()
    wide = layers[-1].shape[0]
    losses = -0.05 * 2.0 ** np.arange(20)
    gradients = np.full((20, len(layers)), 1.0)
    gradients[:, -1] = pull

    facts = {"output": {**FACTS["output"], "shape": [32, wide]}}
    history = recorded(losses, facts=facts, layers=layers, grad_l2=gradients)

    assert only("loss-pairing", history).fix.code == code
