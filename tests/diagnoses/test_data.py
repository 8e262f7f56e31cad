import numpy as np
from diagnoses.histories import asked, only

from difflens.testing.histories import falling, faulty, level, noise, recorded

CLASSES = {"output": {"rows_sum_to_one": False, "shape": [64, 10]}}


def sampled(values, every=20):
    return np.where(np.arange(len(values)) % every == 0, values, np.nan)


def test_a_sorted_stream_is_a_sawtooth():
    found = only("data", faulty()["data"])

    assert found.fix.code == "shuffle"
    assert abs(found.evidence["period"] - 10) <= 1


def test_labels_that_teach_nothing_are_told_where_steps_and_gradients_are_sound():
    history = recorded(level(200), update_l2=0.02)

    assert only("data", history).fix.code == "check_labels"


def test_labels_learned_by_heart_are_told_by_what_is_held_back():
    by_heart = 2.3 - 0.003 * np.arange(200)
    history = recorded(
        by_heart * noise(200, 0.01), update_l2=0.02, facts=CLASSES,
        scalars={"val_loss": sampled(np.full(200, 2.4))},
    )  # fmt: skip

    assert only("data", history).evidence["never_below_chance"] is True


def test_a_slow_start_that_is_learning_is_no_fault():
    losses = (2.3 - 0.004 * np.arange(150)) * noise(150, 0.2, 3)

    assert asked("data", recorded(losses, update_l2=0.02)) == []


def test_inputs_that_are_not_scaled_are_told_where_the_loss_suffers():
    facts = {"input": {"features_std_max": 300.0, "mean": 0.0, "std": 200.0, "dtype": "float32"}}
    losses = np.concatenate([[2.3] * 3, np.full(40, 500.0)])

    assert only("data", recorded(losses, facts=facts)).fix.code == "scale_inputs"
    assert asked("data", recorded(falling(), facts=facts)) == []


def test_token_ids_need_no_scaling():
    facts = {"input": {"features_std_max": 9000.0, "mean": 25000.0, "dtype": "int64"}}

    assert asked("data", recorded(level(60), facts=facts)) == []


def test_labels_that_change_midway_are_told_with_the_step():
    losses = np.concatenate([falling(120), level(40, at=4.0)])

    assert only("data", recorded(losses)).since_step == 120


def test_a_leap_after_a_large_step_is_not_blamed_on_the_data():
    losses = np.concatenate([falling(120), level(40, at=4.0)])
    steps = np.where(np.arange(160) == 119, 0.5, 1e-3)

    assert asked("data", recorded(losses, update_l2=steps)) == []


def test_units_that_died_are_not_blamed_on_the_data():
    losses = np.concatenate([falling(120), level(40, at=4.0)])
    gradients = np.where(np.arange(160) < 120, 1e-2, 0.0)

    assert asked("data", recorded(losses, grad_l2=gradients)) == []


def test_small_batches_are_waited_for():
    def of(batch):
        facts = {"output": {"rows_sum_to_one": False, "shape": [batch, 10]}}
        return asked("data", recorded(level(200), update_l2=0.02, facts=facts))

    assert of(64)
    assert of(1) == []


def test_targets_far_beyond_the_first_outputs_are_named_with_the_inputs():
    inputs = {"features_std_max": 30.0, "mean": 0.0, "std": 30.0, "dtype": "float32"}
    losses = np.concatenate([[2e6] * 3, np.full(40, 5e8)])

    def fix(largest):
        output = {"shape": [64, 1], "rows_sum_to_one": False, "min": 0.0, "max": largest}
        return only("data", recorded(losses, facts={"input": inputs, "output": output})).fix

    assert fix(100.0).parameters == {"targets": True}
    assert fix(2000.0).parameters == {}


def test_a_long_way_off_a_saddle_is_waited_for():
    gradients = 1e-2 * 1.005 ** np.arange(140)

    assert asked("data", recorded(level(140), update_l2=0.02)) != []
    assert asked("data", recorded(level(140), update_l2=0.02, grad_l2=gradients)) == []
