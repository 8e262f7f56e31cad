import numpy as np
import pytest
from training.diagnoses.histories import asked, only

from difflens.testing.histories import falling, noise, recorded

TAGS = {"output": {"shape": [32, 6], "min": -1.2, "max": 1.9}, "final_module": "Linear"}


def sampled(values, every=20):
    return np.where(np.arange(len(values)) % every == every - 1, values, np.nan)


def both(losses, held_back, facts=TAGS, **fields):
    return recorded(losses, facts=facts, scalars={"val_loss": sampled(held_back)}, **fields)


def test_a_loss_that_goes_to_nothing_beside_a_held_back_loss_that_stands_is_another():
    collapsed = falling(200, start=0.2, end=1e-3, pace=0.1)

    found = only("loss-pairing", both(collapsed, np.linspace(5.8, 5.9, 200)))

    assert (found.name, found.fix.code) == ("loss-pairing", "match_loss")


def test_a_held_back_loss_of_another_kind_that_falls_is_served():
    collapsed = falling(200, start=0.2, end=1e-3, pace=0.1)

    assert asked("loss-pairing", both(collapsed, np.linspace(5.8, 4.0, 200))) == []


def test_a_high_held_back_loss_of_a_cross_entropy_is_of_other_data():
    learned = falling(200, start=1.8, end=1e-3, pace=0.1)

    assert asked("loss-pairing", both(learned, np.linspace(5.8, 5.9, 200))) == []


def resting(points=160):
    return (2.5 + 1.2 * np.exp(-np.arange(points) / 15)) * noise(points, 0.05)


def test_two_losses_that_rest_out_of_proportion_are_of_two_kinds():
    found = only("loss-pairing", both(resting(), np.linspace(0.61, 0.58, 160)))

    assert found.fix.code == "match_loss"
    assert found.evidence["held_back_by_training"] < 0.4


@pytest.mark.parametrize("count", [32, 6, 192])
def test_a_sum_over_examples_or_outputs_is_of_the_same_kind(count):
    losses = resting()

    assert asked("loss-pairing", both(losses, 2.5 / count * np.linspace(1.0, 0.98, 160))) == []


def test_a_loss_in_other_units_or_thrown_up_by_its_steps_is_not_compared():
    small = np.linspace(0.61, 0.58, 160)

    assert asked("loss-pairing", both(1e6 * resting(), small)) == []
    assert asked("loss-pairing", both(resting(), small, update_l2=5.0)) == []


def test_a_loss_that_may_fall_below_zero_beside_one_that_rises_is_of_another_kind():
    counts = {"output": {"shape": [48, 1], "min": -1.0, "max": 1.0}}
    below = 10 * np.exp(-np.arange(200) / 15) - 0.5

    assert only("loss-pairing", both(below, np.linspace(66, 900, 200), counts)).fix.code == (
        "match_loss"
    )
    assert asked("loss-pairing", both(below, below + 0.1, counts)) == []


def test_a_held_back_loss_that_falls_at_every_look_is_on_its_way():
    losses = (8.5 + 1.0 * np.exp(-np.arange(64) / 15)) * noise(64, 0.05)

    assert asked("loss-pairing", both(losses, np.linspace(2.8, 2.43, 64))) == []
    assert asked("loss-pairing", both(losses, np.linspace(2.5, 2.45, 64)))


def test_a_held_back_loss_that_runs_away_while_training_falls_and_is_left_is_another():
    counts = {"output": {"shape": [64, 1], "min": -0.1, "max": 2.0}, "final_module": "Linear"}
    falls = falling(200, start=4.0, end=1.5, pace=0.05)

    def told(losses, held_back):
        return [each.fix.code for each in asked("loss-pairing", both(losses, held_back, counts))]

    assert told(falls, np.linspace(3.0, 40.0, 200)) == ["match_loss"]
    assert told(falls, np.linspace(3.0, 7.0, 200)) == []
    assert told(falls, np.linspace(20.0, 40.0, 200)) == []
    assert told(falling(200, start=4.0, end=0.01, pace=0.05), np.linspace(3.0, 40.0, 200)) == []
