import numpy as np
import pytest
from training.diagnoses.histories import asked, only

from difflens.testing.histories import falling, recorded

CLASSES = {"output": {"rows_sum_to_one": False, "shape": [64, 10]}}


def run(held_back, losses=None):
    at = np.arange(200)
    return recorded(
        falling(200, end=0.03, pace=0.15) if losses is None else losses,
        update_l2=0.02, facts=CLASSES,
        scalars={"val_loss": np.where(at % 20 == 19, held_back(at), np.nan)},
    )  # fmt: skip


def test_classes_that_training_neglects_are_wrong_for_sure_at_first_and_learned_at_last():
    found = only("data", run(lambda at: 7 * np.exp(-at / 200)))

    assert found.fix.code == "balance_classes"
    assert found.evidence["first_by_guessing"] > 2


@pytest.mark.parametrize("held_back", [
    lambda at: 60 * 0.02 ** (at // 20) + 0.3,  # statistics of a norm that settle
    lambda at: 3.2 + at / 100,  # learned by heart
    lambda at: 7 * np.exp(-at / 200) * np.where(at // 20 % 2, 1.5, 1.0),  # leaps about
])  # fmt: skip
def test_a_held_back_loss_that_leaps_or_rises_is_of_no_neglected_class(held_back):
    assert "balance_classes" not in [each.fix.code for each in asked("data", run(held_back))]


def test_a_held_back_loss_that_the_training_loss_does_not_leave_is_in_order():
    slow = falling(200, end=1.0, pace=0.02)

    assert asked("data", run(lambda at: 3.2 * np.exp(-at / 200), slow)) == []
