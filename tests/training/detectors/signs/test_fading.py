import numpy as np
import pytest

from difflens.testing.histories import level, network, recorded
from difflens.training.detectors.signs.fading import factor_a_layer, has_sigmoids, tiny
from difflens.training.detectors.signs.sight import sight


def test_the_factor_a_layer_is_the_slope_of_the_logarithms():
    assert factor_a_layer(10.0 ** np.arange(-5, 1), 5) == pytest.approx(10)


def test_two_sigmoids_are_not_yet_a_stack_of_them():
    for depth, told in ((2, False), (3, True)):
        history = recorded(level(9), layers=network(depth, "Sigmoid"))

        assert has_sigmoids(sight(history)) is told


def test_weights_are_tiny_where_most_of_them_are():
    kaiming = np.array([(2 * each.shape[0]) ** 0.5 for each in network()])
    some = kaiming * np.repeat([0.1, 0.1, 0.1, 0.1, 1.0, 1.0], 2)
    few = kaiming * np.repeat([0.1, 0.1, 1.0, 1.0, 1.0, 1.0], 2)

    small, usual = (
        sight(recorded(level(9), weight_l2=each, update_l2=0.0)) for each in (some, few)
    )

    assert tiny(small, 0.2, np.arange(6)) == [0, 1, 2, 3]
    assert tiny(usual, 0.2, np.arange(6)) == []
