import numpy as np
import pytest

from difflens.diagnoses.signs.rates import is_rising, lower
from difflens.diagnoses.signs.sight import sight
from difflens.testing.histories import falling, recorded


@pytest.mark.parametrize(
    ("rates", "rising"),
    [
        (1.02 ** np.arange(60), True),
        (np.minimum(np.arange(60) / 30, 1.0), False),
        (np.linspace(1.0, 0.1, 60), False),
        (np.where(np.arange(60) == 59, 100.0, 1.0), True),
    ],
)
def test_a_rate_rises_where_it_is_higher_than_ever_and_goes_on(rates, rising):
    assert is_rising(rates) is rising


def test_a_rate_that_climbs_is_held_well_below_that_of_the_lowest_loss():
    rates = 0.01 * 1.02 ** np.arange(200)
    losses = np.concatenate([np.linspace(2.3, 0.3, 100), np.linspace(0.3, 9.0, 100)])

    fix = lower(sight(recorded(losses, scalars={"lr": rates})), 0.1)

    assert fix.code == "fix_schedule"
    assert fix.parameters["hold"] == pytest.approx(rates[100] / 4, rel=0.15)


def test_a_rate_that_stands_is_scaled():
    fix = lower(sight(recorded(falling(100), scalars={"lr": 0.5})), 0.123)

    assert (fix.code, fix.parameters) == ("scale_lr", {"factor": 0.12})
