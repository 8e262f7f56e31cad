import numpy as np

from difflens.testing.histories import falling, recorded
from difflens.training.detectors.signs.harms import lost
from difflens.training.detectors.signs.sight import sight


def test_a_loss_that_first_steps_threw_up_is_lost_where_it_went_later():
    """What it learned in between shows that the first rise is past."""
    losses = np.concatenate(
        [[2.0, 2.0, 2.0], np.full(6, 5.0), falling(150, end=0.1), np.full(40, 9.0)]
    )

    assert lost(sight(recorded(losses)).loss, 1.5).since == 159


def test_a_loss_that_never_came_down_is_lost_where_it_rose_first():
    losses = np.concatenate([[2.0, 2.0, 2.0], np.full(60, 5.0)])

    assert lost(sight(recorded(losses)).loss, 1.5).since == 3
