import numpy as np
import pytest
from training.diagnoses.histories import only

from difflens.testing.histories import falling, noise, recorded
from difflens.training.detectors.driving.drives import stairs
from difflens.training.detectors.signs.sight import sight

POINTS = 180


def scaled(scale, *, losses=None, steps=None):
    """Make a run whose gradients are multiplied, and its steps unless others are given."""
    norms = 1e-2 * scale * noise(POINTS, 0.3, 4)
    return recorded(falling(POINTS, end=0.5, pace=0.01) if losses is None else losses,
                    grad_l2=norms, update_l2=0.1 * norms if steps is None else steps)  # fmt: skip


def doubling(interval, factor=2.0):
    return factor ** (np.arange(POINTS) // interval)


def test_gradients_that_double_at_an_interval_are_told_with_it():
    found = stairs(sight(scaled(doubling(40.0))))

    assert found.interval == pytest.approx(40, abs=2)
    assert found.factor == pytest.approx(2, rel=0.2)


def test_they_are_a_divergence_whose_cause_is_known():
    found = only("diverging", scaled(doubling(40)))

    assert found.fix.code == "unscale_gradients"
    assert found.since_step == pytest.approx(40, abs=2)


@pytest.mark.parametrize(
    "run",
    [
        scaled(2 ** (np.arange(POINTS) / 40)),  # as much, gradually
        scaled(doubling(80)),  # two rises are too few
        scaled(doubling(40), losses=falling(POINTS, end=0.5) * doubling(40, 4.0)),  # the loss rises
        scaled(doubling(40), steps=1e-3),  # divided again before the step, or by their size
        scaled(doubling(20) % 3),  # up and down
        recorded(np.full(POINTS, np.nan)),
        recorded(falling(POINTS), layers=()),
    ],
)
def test_other_gradients_are_not(run):
    assert stairs(sight(run)) is None
