import numpy as np
import pytest

from difflens.testing.histories import recorded
from difflens.training.detectors.signs.sight import sight
from difflens.training.detectors.signs.trends import trends


def test_an_exponential_growth_reaches_the_mark_when_its_pace_says():
    losses = np.exp(0.05 * np.arange(60))

    loss = next(trends(sight(recorded(losses)), 20, 10.0))

    assert (loss.what, loss.per_step) == ("loss", pytest.approx(0.05))
    assert loss.reach == pytest.approx(np.log(10) / 0.05)


def test_a_loss_that_is_no_number_or_not_above_zero_has_no_trend():
    losses = np.append(np.ones(59), -1.0)

    assert {each.what for each in trends(sight(recorded(losses)), 20, 10.0)} == {
        "gradient norm", "update norm"
    }  # fmt: skip
