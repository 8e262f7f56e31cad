import numpy as np
import pytest
from diagnoses.histories import asked, only

from difflens.testing.histories import falling, faulty, recorded

NAN = float("nan")


def test_large_steps_and_a_rising_loss_are_told():
    found = only("lr-high", faulty()["lr-high"])

    assert found.severity == "critical"
    assert found.since_step <= 3


def test_large_steps_of_a_run_that_learns_are_no_fault():
    assert asked("lr-high", recorded(falling(), update_l2=0.5)) == []


def test_one_nan_sample_after_usual_steps_is_not_blamed_on_the_learning_rate():
    losses = falling(100)
    losses[60:] = NAN

    assert asked("lr-high", recorded(losses, update_l2=0.3)) == []


def test_gradients_that_were_huge_before_the_first_step_are_not_blamed_on_it():
    losses = np.concatenate([[2.3], np.full(40, 1e6)])

    assert asked("lr-high", recorded(losses, update_l2=10.0, grad_l2=1e4)) == []


@pytest.mark.parametrize(("momentum", "times"), [(0.0, 1.0), (0.9, 0.1)])
def test_momentum_asks_for_a_smaller_learning_rate(momentum, times):
    losses = np.concatenate([np.full(10, 2.3), np.full(50, 9.0)])
    plain = only("lr-high", recorded(losses, update_l2=2.0))
    held = only("lr-high", recorded(losses, update_l2=2.0, optimizer={"momentum": momentum}))

    ratio = held.fix.parameters["factor"] / plain.fix.parameters["factor"]
    assert ratio == pytest.approx(times, rel=0.05)
