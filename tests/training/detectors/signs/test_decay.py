import numpy as np
import pytest

from difflens.testing.histories import level, recorded
from difflens.training.detectors.signs.decay import decay_that_wins, penalty_by, weaker_penalty
from difflens.training.detectors.signs.sight import sight


@pytest.mark.parametrize(
    ("pace", "decay", "told"),
    [(0.05, 0.1, 0.1), (0.001, 0.1, None), (0.05, 1e-5, None), (0.05, None, None)],
)
def test_a_decay_wins_where_it_is_strong_and_the_weights_shrink(pace, decay, told):
    history = recorded(level(60), weight_l2=np.exp(-pace * np.arange(60)),
                       optimizer={"weight_decay": decay})  # fmt: skip

    assert decay_that_wins(sight(history)) == told


def test_a_penalty_is_weakened_by_as_much_as_the_weights_were_halved_too_soon():
    halved_in_ten = 0.5 ** (np.arange(101) / 10)

    fix = weaker_penalty(sight(recorded(level(101), weight_l2=halved_in_ten)))

    assert (fix.code, fix.parameters["factor"]) == ("scale_penalty", pytest.approx(0.022, rel=0.1))
    assert weaker_penalty(sight(recorded(level(101)))) is None


def test_a_penalty_that_makes_weights_grow_has_its_sign_turned():
    assert penalty_by(sight(recorded(level(101))), -0.07).parameters["factor"] < 0


@pytest.mark.parametrize("name", ["AdamW", "SGD"])
@pytest.mark.parametrize(("rate", "told"), [(0.01, 60.0), (0.001, None)])
def test_first_steps_as_large_as_the_weights_are_those_of_decay_where_rate_times_decay_is(
    name, rate, told
):
    sizes = 8 * np.exp(-0.5 * np.arange(60))
    history = recorded(level(60), weight_l2=sizes, update_l2=0.6 * sizes, scalars={"lr": rate},
                       optimizer={"name": name, "weight_decay": 60.0})  # fmt: skip

    assert decay_that_wins(sight(history)) == told


def test_weights_that_each_first_step_makes_smaller_were_not_torn_by_it():
    time = np.arange(60)
    drawn, torn = 8 * np.maximum(0.7**time, 0.26), np.where(time < 1, 8.0, 8.0 * 0.26)
    steps = 8 * 0.46

    drawn_in, thrown = (sight(recorded(level(60), weight_l2=each, update_l2=steps))
                        for each in (drawn, torn))  # fmt: skip

    assert weaker_penalty(drawn_in).code == "scale_penalty"
    assert weaker_penalty(thrown) is None
