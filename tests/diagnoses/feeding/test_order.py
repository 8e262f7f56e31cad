import numpy as np
from diagnoses.histories import asked, only

from difflens.testing.histories import falling, noise, recorded


def test_examples_that_are_others_since_a_step_lift_the_loss_for_good():
    losses = np.concatenate([falling(80, end=0.3), 2.2 * noise(40, 0.05, 2)])

    found = only("data", recorded(losses))

    assert found.since_step == 80


def test_one_odd_batch_changes_nothing_for_good():
    losses = falling(120, end=0.3)
    losses[80] = 3.0

    assert asked("data", recorded(losses)) == []
