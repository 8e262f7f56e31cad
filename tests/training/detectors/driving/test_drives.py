import numpy as np

from difflens.testing.histories import level, recorded
from difflens.training.detectors.driving.drives import driven
from difflens.training.detectors.signs.sight import sight


def test_weights_that_a_heavy_momentum_threw_are_not_grown_by_a_penalty():
    grown = 8 * 1.05 ** np.arange(81)
    run = {"weight_l2": grown[1:], "update_l2": grown[1:] - grown[:-1], "grad_l2": grown[:-1] / 2}

    def told(**optimizer):
        history = recorded(level(80), scalars={"lr": 0.1}, optimizer=optimizer, **run)
        return [each.fix.code for each in driven(sight(history))]

    assert told(name="SGD") == ["scale_penalty"]
    assert told(name="SGD", momentum=0.99) == []
