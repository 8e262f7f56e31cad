import numpy as np
from training.diagnoses.histories import asked, only

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


def test_inputs_that_swell_at_a_step_are_told_and_one_such_batch_is_not():
    losses = np.concatenate([falling(100), np.full(40, 9.0)])
    for_good, once = (np.where(chosen, 100.0, 1.0) for chosen in (
        np.arange(140) >= 100, np.arange(140) == 100))  # fmt: skip

    found = only("data", recorded(losses, act_std=for_good))

    assert (found.since_step, found.fix.code) == (100, "scale_inputs")
    assert all(each.fix.code != "scale_inputs" for each in asked("data", recorded(
        losses, act_std=once)))  # fmt: skip


def test_activations_that_grow_with_the_weights_or_by_large_steps_are_no_swelling():
    grown = np.where(np.arange(140) >= 100, 100.0, 1.0)
    weights = np.where(np.arange(140) >= 99, 100.0, 1.0)  # recorded after the step

    assert asked("data", recorded(falling(140), act_std=grown, weight_l2=weights)) == []
    assert asked("data", recorded(falling(140), act_std=grown, update_l2=5.0)) == []


def test_inputs_too_small_to_be_seen_are_told():
    for size, told in ((1e-3, 1), (0.3, 0)):
        facts = {"input": {"dtype": "float32", "mean": 0.0, "std": size}}

        found = asked("data", recorded(level(60), facts=facts, update_l2=1e-4))

        assert len(found) == told


def test_outputs_that_explain_nothing_are_told_of_a_regression_that_stands():
    facts = {"output": {"shape": [64, 1], "min": -2.0, "max": 2.0}}
    losses = falling(120, start=3.0, end=1.0, pace=0.2)

    found = only("data", recorded(losses, facts=facts, act_std=0.1))

    assert found.evidence["loss_fall"] > 0
    assert asked("data", recorded(losses, facts=facts, act_std=1.0)) == []


def test_a_held_back_loss_that_does_not_move_tells_sooner():
    facts = {"output": {"shape": [64, 1], "min": -1.0, "max": 1.0}}
    rough = level(80, at=1.0) * noise(80, 0.1, 3)
    held = np.where(np.arange(80) % 15 == 14, 1.1, np.nan)

    assert only("data", recorded(rough, facts=facts, scalars={"val_loss": held}))
    assert asked("data", recorded(rough, facts=facts)) == []


def test_a_loss_that_was_thrown_away_has_no_teeth():
    jumps = np.where(np.arange(120) % 15 == 0, 1e5, 1e3 * np.exp(-0.1 * (np.arange(120) % 15)))
    losses = np.concatenate([[2.3], jumps])

    assert asked("data", recorded(losses, update_l2=0.5)) == []


def test_teeth_that_come_at_a_period_may_be_less_skewed_and_fade_later():
    teeth = 2.5 * np.exp(-0.25 * (np.arange(160) % 13))
    losses = np.concatenate([teeth, falling(160, start=0.4, end=0.1)])

    assert only("data", recorded(losses)).fix.code == "shuffle"
