import numpy as np
import pytest

from difflens.testing.histories import falling, recorded
from difflens.training.detectors.signs.held_back import (
    has_followed,
    held_back_loss,
    is_by_heart,
    is_flat,
    left_behind,
    worse_than_guessing,
)
from difflens.training.detectors.signs.losses import Losses

LIMIT = {"blind_values": 3, "flat": 0.02}


@pytest.mark.parametrize(("values", "flat"), [((1.1, 1.11, 1.1, 1.12), True),
                                              ((1.1, 1.0, 0.9, 0.8), False),
                                              ((1.1, 1.1, 1.1), False)])  # fmt: skip
def test_a_held_back_loss_is_flat_where_enough_values_never_fell(values, flat):
    held = np.full(80, np.nan)
    held[19 : 19 + 20 * len(values) : 20] = values[:4]

    found = held_back_loss(recorded(falling(80), scalars={"eval_loss": held}))

    assert is_flat(found, LIMIT) is flat
    assert held_back_loss(recorded(falling(80))) is None


@pytest.mark.parametrize(("values", "heart"), [((2.9, 3.1, 3.3), True), ((3.5, 3.2, 3.0), False)])
def test_what_gets_better_look_by_look_is_not_learned_by_heart(values, heart):
    """A contrast among more answers than a batch has costs more than guessing, and is learned."""
    held = np.full(80, np.nan)
    held[19::20][:3] = values
    facts = {"output": {"shape": [48, 16], "min": -0.5, "max": 0.5}}
    history = recorded(falling(80, start=2.8, end=1.0), facts=facts, scalars={"val_loss": held})
    limit = {"blind_values": 3, "blind": 0.95, "blind_gap": 0.94}

    assert is_by_heart(held_back_loss(history), Losses.of(history, "loss"), limit) is heart


@pytest.mark.parametrize(("start", "followed"), [(2.4, True), (0.4, False)])
def test_guessing_is_beaten_by_less_than_the_start_of_a_regression(start, followed):
    """Nothing is below guessing by chance; first outputs of a regression cost something, too."""
    held = np.full(80, np.nan)
    held[19::20][:3] = np.array((0.97, 0.93, 1.0)) * min(start, np.log(10))
    facts = {"output": {"shape": [32, 10], "min": -0.3, "max": 0.3}}
    history = recorded(np.full(80, start), facts=facts, scalars={"val_loss": held})

    assert has_followed(Losses.of(history, "loss"), held_back_loss(history)) is followed


@pytest.mark.parametrize(("end", "told"), [(0.01, True), (-0.6, False)])
def test_of_a_training_loss_below_zero_no_held_back_loss_is_a_share(end, told):
    held = np.where(np.arange(200) % 20 == 19, 1.1, np.nan)
    facts = {"output": {"shape": [48, 2], "min": -0.5, "max": 0.5}}
    losses = end + (0.7 - end) * np.exp(-0.05 * np.arange(200))
    history = recorded(losses, facts=facts, scalars={"val_loss": held})
    loss, held_back = Losses.of(history, "loss"), held_back_loss(history)

    assert (left_behind(loss, held_back, 3.0, 0.0) is not None) is told
    assert (worse_than_guessing(loss, held_back, 3.0) is not None) is told
