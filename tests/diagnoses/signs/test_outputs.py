import numpy as np
import pytest

from difflens.diagnoses.signs.outputs import explains_nothing, holds_for_nothing
from difflens.diagnoses.signs.sight import sight
from difflens.testing.histories import falling, level, recorded


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


@pytest.mark.parametrize(("spread", "held_back", "told"), [(0.4, (1.0, 1.0), True),
                                                           (0.4, (1.0, 0.5), False),
                                                           (1.5, (1.0, 1.0), False),
                                                           (0.4, (9.0, 9.0), False)])  # fmt: skip
def test_what_outputs_explain_by_heart_holds_for_nothing(spread, held_back, told):
    values = looks(np.linspace(*held_back, 160))
    history = recorded(level(160, at=1.0), act_std=spread, scalars={"val_loss": values})

    assert (holds_for_nothing(sight(history), 100) is not None) is told


def test_a_first_loss_of_random_outputs_does_not_hide_what_is_learned_by_heart():
    losses = np.concatenate([np.full(10, 1.4), np.full(150, 0.75)])
    history = recorded(losses, act_std=0.4, scalars={"val_loss": looks(np.full(160, 1.0))})

    assert holds_for_nothing(sight(history), 100) is not None


def test_several_outputs_that_are_no_classes_may_hold_for_nothing_too():
    several = {"output": {"shape": [64, 40], "min": -0.7, "max": 0.7}}
    held_back = {"val_loss": looks(np.full(160, 1.0))}
    history = recorded(level(160, at=1.0), act_std=0.4, scalars=held_back, facts=several)

    assert holds_for_nothing(sight(history), 100) is not None
