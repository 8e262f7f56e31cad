import numpy as np
import pytest

from difflens.testing.histories import level, noise, recorded
from difflens.training.detectors.signs.sight import sight


@pytest.mark.parametrize(("pace", "waking"), [(1.005, True), (1.0, False), (0.995, False)])
def test_gradients_that_grow_while_the_loss_stands_are_waking(pace, waking):
    gradients = 1e-2 * pace ** np.arange(120) * noise(120, 0.15, 7)

    assert sight(recorded(level(120), grad_l2=gradients)).is_waking is waking


def test_what_comes_after_the_start_does_not_wake_it():
    gradients = 1e-2 * np.where(np.arange(400) < 200, 1.0, 9.0)

    assert sight(recorded(level(400), grad_l2=gradients)).is_waking is False
