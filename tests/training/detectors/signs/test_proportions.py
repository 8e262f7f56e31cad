import numpy as np
import pytest

from difflens.testing.histories import falling, recorded
from difflens.training.detectors.signs.held_back import held_back_loss
from difflens.training.detectors.signs.proportions import is_a_sum, is_mirrored, proportions
from difflens.training.detectors.signs.sight import sight


def sampled(values, every=20):
    return np.where(np.arange(len(values)) % every == every - 1, values, np.nan)


def losses(training, held_back):
    history = recorded(training, scalars={"val_loss": sampled(held_back)})
    return sight(history).loss, held_back_loss(history)


def test_each_look_is_held_against_the_training_loss_of_its_time():
    found = proportions(*losses(np.full(100, 2.0), np.linspace(2.0, 1.0, 100)))

    assert found.looks == 5
    assert found.most == pytest.approx(0.904, abs=0.01)
    assert found.least == pytest.approx(0.5)
    assert found.fall == pytest.approx(1 - 1.0 / 1.808, abs=0.01)


def test_losses_below_zero_have_no_proportion():
    assert proportions(*losses(-falling(100), falling(100))) is None


def test_a_factor_that_the_shape_of_the_output_explains_is_a_sum():
    history = recorded(falling(20), facts={"output": {"shape": [32, 6]}})

    assert is_a_sum(1 / 32, history)
    assert is_a_sum(1 / 6, history)
    assert is_a_sum(1 / 192, history)
    assert not is_a_sum(1 / 4.4, history)


@pytest.mark.parametrize("ratio", [0.0, -0.5, np.inf, np.nan])
def test_what_is_no_factor_is_no_sum(ratio):
    assert not is_a_sum(ratio, recorded(falling(20), facts={"output": {"shape": [32, 6]}}))


def test_a_loss_whose_sign_was_turned_mirrors_the_held_back_loss():
    course = np.linspace(2.0, 60.0, 200)

    assert is_mirrored(*losses(-course, 1.05 * course))
    assert not is_mirrored(*losses(course, course))
    assert not is_mirrored(*losses(-course, 1 + 0.01 * course))
    assert not is_mirrored(losses(-course, course)[0], None)
