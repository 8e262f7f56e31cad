import numpy as np
from diagnoses.histories import asked, only, until

from difflens.testing.histories import falling, faulty, noise, recorded


def test_gradients_that_pile_up_are_told_within_ten_steps():
    assert only("wiring", until(faulty()["wiring"], 10)).fix.code == "call_zero_grad"


def test_gradients_cleared_after_the_forward_pass_are_fine():
    history = recorded(
        falling(100), scalars={"grad_kept": 1.0}, grad_l2=1e-2 * falling(100) * noise(100, 0.2, 5)
    )

    assert asked("wiring", history) == []


def test_modules_left_in_eval_mode_are_told():
    found = only("wiring", recorded(falling(20), facts={"eval_modules": ["hidden.1"]}))

    assert found.fix.code == "train_mode"
    assert found.layers == ("hidden.1.weight", "hidden.1.bias")


def test_sums_that_grow_smoothly_count_and_rough_ones_do_not():
    grown = 1e-2 * np.minimum(1 + np.arange(60), 8.0)
    rough = grown * noise(60, 0.5, 1)

    assert asked("wiring", recorded(falling(60), scalars={"grad_kept": 1.0}, grad_l2=grown))
    assert not asked("wiring", recorded(falling(60), scalars={"grad_kept": 1.0}, grad_l2=rough))


def test_gradients_that_pile_up_from_some_step_on_are_told_with_that_step():
    at = np.arange(140)
    gradients = 1e-2 * np.where(at < 100, noise(140, 0.3, 4), 1.2 ** np.maximum(at - 99, 0))
    history = recorded(
        falling(140), scalars={"grad_kept": np.where(at < 100, 0.0, 1.0)}, grad_l2=gradients
    )

    assert abs(only("wiring", history).since_step - 100) <= 1
