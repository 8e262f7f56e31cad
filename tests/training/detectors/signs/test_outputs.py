import numpy as np
import pytest

from difflens.testing.histories import falling, level, recorded
from difflens.training.detectors.signs.outputs import explains_nothing
from difflens.training.detectors.signs.sight import sight


@pytest.mark.parametrize("unit", [1.0, 1e3])
def test_what_outputs_explain_does_not_depend_on_the_unit(unit):
    history = recorded(unit**2 * level(100, at=1.0), act_std=unit * 0.2)

    assert explains_nothing(sight(history), 50, 0.12).figure == pytest.approx(0.04 / 1.04, rel=0.02)


def test_nothing_is_said_of_classes_nor_of_a_loss_that_falls():
    classes = {"output": {"shape": [64, 10]}}

    for history in (
        recorded(level(100, at=1.0), act_std=0.1, facts=classes),
        recorded(falling(100, start=1.0, end=0.1, pace=0.01), act_std=0.01),
        recorded(level(100, at=1.0), act_std=np.full(100, 1.0)),
    ):
        assert explains_nothing(sight(history), 50, 0.12) is None


def test_several_outputs_whose_first_loss_is_far_below_guessing_are_no_classes():
    several = {"output": {"shape": [64, 30], "min": -1.0, "max": 1.0}}

    squared = recorded(level(100, at=1.0), act_std=0.1, facts=several)
    assert explains_nothing(sight(squared), 50, 0.1) is not None
    guessing = recorded(level(100, at=3.4), act_std=0.1, facts=several)
    assert explains_nothing(sight(guessing), 50, 0.1) is None


def looks(values, every=20):
    return np.where(np.arange(len(values)) % every == every - 1, values, np.nan)
