import numpy as np

from difflens.diagnoses.signs.nonfinite import broke_in_the_loss, came_from, is_sudden
from difflens.testing.histories import falling, recorded

CLASSES = {"output": {"shape": [64, 10], "min": -3.0, "max": 3.0}}


def test_a_loss_that_breaks_at_once_out_of_finite_outputs_broke_in_the_loss():
    assert broke_in_the_loss(recorded(np.full(5, np.nan), facts=CLASSES))


def test_activations_that_are_no_numbers_come_of_a_sample():
    losses = np.append(falling(20), np.nan)
    active = np.append(np.ones(20), np.nan)

    assert came_from(recorded(losses, facts=CLASSES, act_mean=active), 20) == "sample"


def test_a_loss_that_had_grown_did_not_break_out_of_the_blue():
    losses = np.append(2.0 ** np.arange(20), np.inf)

    assert not is_sudden(recorded(losses), 20)


def test_a_run_whose_numbers_are_all_finite_broke_nowhere():
    assert not broke_in_the_loss(recorded(falling()))
