import numpy as np
import pytest
from training.diagnoses.histories import asked, only

from difflens.testing.histories import falling, recorded

CLASSES = {"output": {"rows_sum_to_one": False, "shape": [64, 10]}}
REGRESSION = {"output": {"shape": [64, 1], "min": -1.0, "max": 1.0}}


def run(losses, held_back, facts=CLASSES):
    looks = np.where(np.arange(len(losses)) % 20 == 19, held_back, np.nan)
    return recorded(losses, update_l2=0.02, facts=facts, scalars={"val_loss": looks})


def test_held_back_data_that_costs_far_more_than_wrong_answers_do_is_scaled_otherwise():
    course = np.linspace(4.0, 90.0, 240)

    found = only("data", run(falling(240, end=0.02, pace=0.02), course))

    assert found.fix.code == "scale_inputs"


def test_held_back_data_of_a_regression_that_never_comes_near_and_gets_worse_is_scaled_otherwise():
    course = 8.0 + 14 * np.exp(-np.arange(240) / 20) + np.arange(240) / 30

    found = only("data", run(falling(240, start=1.3, end=0.02, pace=0.1), course, REGRESSION))

    assert found.fix.code == "scale_inputs"


def test_held_back_data_in_other_units_that_falls_or_rests_is_no_fault():
    learned = falling(240, start=1.3, end=0.02, pace=0.1)

    for course in (100 * falling(240, start=1.3, end=0.03, pace=0.1, seed=3), np.full(240, 9.0)):
        assert asked("data", run(learned, course, REGRESSION)) == []


@pytest.mark.parametrize(("pace", "name"), [(0.3, "over-fit"), (0.02, "data")])
def test_what_is_wrong_before_anything_is_learned_was_not_learned_by_heart(pace, name):
    """Held-back data above guessing at the first look: after learning, or before it."""
    history = run(falling(240, end=1e-3, pace=pace), np.linspace(4.4, 12.0, 240))

    assert [bool(asked(each, history)) for each in ("over-fit", "data")] == [
        name == "over-fit", name == "data",
    ]  # fmt: skip


def test_held_back_data_about_guessing_at_first_and_worse_at_each_look_was_learned_by_heart():
    losses = falling(100, end=0.05, pace=0.03)

    assert asked("data", run(losses, np.linspace(2.2, 2.75, 100))) == []
    assert only("data", run(losses, np.linspace(3.4, 3.9, 100))).fix.code == "check_labels"
