import numpy as np
import pytest
from training.diagnoses.histories import asked, only

from difflens.testing.histories import falling, recorded

AT = np.arange(100)
WAVE = np.cos(np.pi / 2 * (AT % 40) / 40)  # falls from one to next to nothing, and restarts


def rated(rates):
    return recorded(falling(100), scalars={"lr": rates})


def test_restarts_that_go_higher_each_time_are_told_while_the_loss_still_falls():
    found = only("diverging", rated(0.01 * 3.0 ** (AT // 40) * WAVE))

    assert (found.since_step, found.fix.parameters) == (40, {"hold": pytest.approx(0.01)})


@pytest.mark.parametrize(
    "rates",
    [
        0.01 * WAVE,
        0.01 * np.where(AT < 40, 1.0, 3.0) * WAVE,
        0.01 * 3.0 ** (AT // 40),
        0.01 * np.where(AT % 40 == 39, 0.01, 1.0) * np.where(AT % 40 == 0, 30.0, 1.0),
    ],
    ids=["as high as before", "one that begins another part", "stages of a warm-up", "slips"],
)
def test_other_schedules_are_none(rates):
    assert asked("diverging", rated(rates)) == []


def test_a_loss_that_each_of_them_throws_up_and_that_comes_back_swings():
    losses = 2 * np.exp(-(AT % 40) / 6) + 0.1

    found = only(
        "diverging", recorded(losses[:90], scalars={"lr": (0.01 * 3.0 ** (AT // 40) * WAVE)[:90]})
    )

    assert (found.name, found.fix.code) == ("oscillating", "fix_schedule")
