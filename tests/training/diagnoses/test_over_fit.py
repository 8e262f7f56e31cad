import numpy as np
from training.diagnoses.histories import asked, only

from difflens.testing.histories import falling, faulty, recorded


def sampled(values, every=20):
    return np.where(np.arange(len(values)) % every == 0, values, np.nan)


def test_a_held_back_loss_that_rises_is_told_with_its_best_step():
    """DC-07: over-fitting is impossible in the reference."""
    found = only("over-fit", faulty()["over-fit"])
    values = np.flatnonzero(faulty()["over-fit"].course.scalar("val_loss") > 0)

    assert found.since_step in values
    assert found.evidence["best_step"] == found.since_step


def test_a_gap_that_does_not_grow_is_no_fault():
    """SageMaker warns of any gap above a tenth (training.md 2)."""
    history = recorded(
        falling(300, end=0.001), scalars={"val_loss": sampled(falling(300, end=0.3))}
    )

    assert asked("over-fit", history) == []


def test_a_small_rise_of_a_small_loss_is_no_harm():
    held_back = 0.1 + 2 * np.exp(-0.05 * np.arange(400)) + 5e-5 * np.arange(400)
    history = recorded(falling(400, end=1e-4), scalars={"val_loss": sampled(held_back)})

    assert asked("over-fit", history) == []


def test_a_small_rise_behind_the_low_start_of_trained_weights_is_no_harm():
    held_back = sampled(np.linspace(0.16, 0.2, 300))

    def of(farthest):
        output = {"shape": [64, 5], "min": -farthest, "max": farthest}
        losses, facts = falling(300, start=0.35, end=1e-3), {"output": output}
        return asked("over-fit", recorded(losses, facts=facts, scalars={"val_loss": held_back}))

    assert of(40.0) == []
    assert of(1.0)


def test_both_losses_rising_is_another_fault():
    rising = np.linspace(1, 3, 300)
    history = recorded(rising, scalars={"val_loss": sampled(rising)})

    assert asked("over-fit", history) == []


def test_single_examples_of_which_most_cost_nothing_are_no_gap():
    random = np.random.default_rng(6)
    singles = np.where(random.random(600) < 0.7, 1e-3, 1.5) * np.exp(-0.001 * np.arange(600))
    held_back = 0.5 + np.abs(np.arange(600) - 200) / 1000

    assert asked("over-fit", recorded(singles, scalars={"val_loss": sampled(held_back)})) == []


def test_a_held_back_loss_that_rests_high_where_nothing_is_left_of_the_training_loss_is_told():
    held_back = 1.1 + 1.2 * np.exp(-0.1 * np.arange(300))
    history = recorded(falling(300, end=1e-3), scalars={"val_loss": sampled(held_back)})

    found = only("over-fit", history)

    assert found.evidence["gap"] > 20


def test_a_gap_is_no_fault_where_most_of_what_was_learned_holds_for_other_data():
    held_back = 0.7 + 1.6 * np.exp(-0.1 * np.arange(300))
    history = recorded(falling(300, end=1e-3), scalars={"val_loss": sampled(held_back)})

    assert asked("over-fit", history) == []


def test_a_held_back_loss_that_is_still_on_its_way_down_is_not_told():
    held_back = 2.3 - 0.005 * np.arange(300)
    history = recorded(falling(300, end=1e-3), scalars={"val_loss": sampled(held_back)})

    assert asked("over-fit", history) == []


def test_a_best_at_the_first_look_lies_before_it_where_the_training_loss_is_long_gone():
    held_back = 0.6 + 0.004 * np.arange(300)
    at = np.arange(300) % 20 == 19
    history = recorded(
        falling(300, start=2.3, end=1e-3, pace=0.2),
        scalars={"val_loss": np.where(at, held_back, np.nan)},
    )

    found = only("over-fit", history)

    assert found.since_step == 19
    assert found.fix.parameters["step"] == 13


def test_what_was_learned_by_heart_before_the_first_look_wants_more_data():
    held_back = 0.9 + 0.004 * np.arange(300)
    at = np.arange(300) % 20 == 19
    history = recorded(
        falling(300, start=0.7, end=1e-3, pace=0.2),
        scalars={"val_loss": np.where(at, held_back, np.nan)},
    )

    assert only("over-fit", history).fix.code == "more_data"


def test_a_held_back_loss_that_leaps_about_is_not_over_fitted():
    held_back = np.where(np.arange(300) % 40 < 20, 0.9, 4.0)
    held_back[:60] = 0.5
    history = recorded(falling(300, end=1e-3), scalars={"val_loss": sampled(held_back)})

    assert asked("over-fit", history) == []


def test_a_training_loss_below_zero_is_not_what_was_learned_by_heart():
    history = recorded(
        -np.linspace(1, 60, 300), scalars={"val_loss": sampled(np.linspace(1, 60, 300))}
    )

    assert asked("over-fit", history) == []


def learned_by_heart(noisy, best, batch=32, start=2.3, pace=0.05):
    losses = start * np.exp(-pace * np.arange(200))
    if noisy:
        losses = losses * np.exp(0.3 * np.sin(7.0 * np.arange(200)))
    held_back = np.roll(sampled(best * (1 + 0.01 * np.arange(200))), 19)
    facts = {"output": {"shape": [batch, 10], "min": -0.3, "max": 0.3}}
    return recorded(losses, facts=facts, scalars={"val_loss": held_back})


def test_a_loss_without_the_noise_of_batches_comes_of_one_batch_where_stopping_gives_nothing():
    assert only("over-fit", learned_by_heart(False, 2.2)).fix.code == "shuffle"
    assert only("over-fit", learned_by_heart(False, 0.9)).fix.code == "stop_early"
    assert only("over-fit", learned_by_heart(True, 2.2)).fix.code == "more_data"


def test_all_there_is_in_every_batch_is_told_by_a_size_that_nobody_chooses():
    codes = [only("over-fit", learned_by_heart(False, 2.2, batch=each)).fix.code
             for each in (20, 64, 50, 30, 142)]  # fmt: skip

    assert codes == ["shuffle", "shuffle", "shuffle", "more_data", "more_data"]


def test_one_batch_is_told_where_it_taught_something_of_others_too():
    losses = 2.3 * np.exp(-0.03 * np.arange(300))
    held_back = 1.15 + 1.15 * np.exp(-0.05 * np.arange(300))
    facts = {"output": {"shape": [64, 10], "min": -0.3, "max": 0.3}}
    history = recorded(losses, facts=facts, scalars={"val_loss": sampled(held_back)})

    assert only("over-fit", history).fix.code == "shuffle"


def test_first_outputs_that_are_large_make_held_back_data_cost_as_much_and_are_no_other_labels():
    large = learned_by_heart(True, 6.0, start=6.0, pace=0.2)

    assert only("over-fit", large).fix.code == "more_data"


def test_held_back_data_that_was_never_better_than_twice_guessing_has_other_labels():
    assert only("over-fit", learned_by_heart(True, 4.4)).fix.code == "check_labels"


def rising_from(best, onset, rise=0.006):
    """Make a run that is learned by heart, of which held-back data suffers from a step on."""
    at = np.arange(300)
    falls, rises = 0.5 * np.exp(-at / 10), rise * np.maximum(at - onset, 0)
    losses = 2.3 * np.exp(-0.02 * at) * np.exp(0.1 * np.sin(7.0 * at))
    facts = {"output": {"shape": [32, 10], "min": -0.3, "max": 0.3}}
    return recorded(losses, facts=facts, scalars={"val_loss": sampled(best + falls + rises)})


def test_examples_that_are_learned_by_heart_before_held_back_data_suffers_are_too_few():
    found = only("over-fit", rising_from(best=1.8, onset=80))

    assert found.fix.code == "more_data"
    assert "times as much" in found.advice[0]


def test_stopping_early_is_enough_where_noise_is_fitted_or_most_was_learned():
    noise = only("over-fit", rising_from(best=1.3, onset=20, rise=0.02))
    learned = only("over-fit", rising_from(best=0.6, onset=80))

    assert [noise.fix.code, learned.fix.code] == ["stop_early", "stop_early"]
    assert noise.fix.parameters == {"step": noise.since_step}


def test_more_data_is_asked_for_by_what_held_back_data_costs_beyond_training_data():
    """A gap of g falls to the harmless 0.05 of guessing with g/0.05 times the examples."""
    little, much = (rising_from(best=1.8, onset=80, rise=each) for each in (0.006, 0.012))
    gaps = [np.nanmedian(each.course.scalar("val_loss")[-60:]) / np.log(10) for each in
            (little, much)]  # fmt: skip

    factors = [only("over-fit", each).fix.parameters["factor"] for each in (little, much)]

    assert np.allclose(factors, np.array(gaps) / 0.05, atol=1)
    endless = only("over-fit", rising_from(best=1.8, onset=80, rise=0.2))
    assert endless.fix.parameters == {"factor": 100.0}


def test_a_held_back_loss_that_rests_where_about_half_is_unlearned_asks_for_more_data():
    held_back = 1.3 + 1.0 * np.exp(-0.1 * np.arange(300))
    history = recorded(falling(300, end=1e-3), scalars={"val_loss": sampled(held_back)})

    found = only("over-fit", history)

    assert found.fix.code == "more_data"
    assert "every batch" in found.advice[0]


def test_a_held_back_loss_that_rises_look_by_look_is_told_at_a_smaller_gap():
    at = np.arange(300)
    losses = 2.3 * np.exp(-0.005 * at)
    rising = 1.3 + 0.003 * np.abs(at - 100)

    assert only("over-fit", recorded(losses, scalars={"val_loss": sampled(rising)}))
    unsteady = rising + 0.1 * (at // 20 % 2)
    assert asked("over-fit", recorded(losses, scalars={"val_loss": sampled(unsteady)})) == []


def test_a_regression_of_few_examples_may_leave_held_back_data_above_where_training_began():
    held_back = 1.4 + 0.3 * np.exp(-0.1 * np.arange(300))
    history = recorded(falling(300, start=0.9, end=1e-4), scalars={"val_loss": sampled(held_back)})

    assert only("over-fit", history).fix.code == "more_data"
    assert asked("data", history) == []


def likelihood(held_back, train_end=-0.5):
    """Make a run whose loss goes below zero, as that of counts does, with looks at held-back data.

    Half of what training wins it wins late.
    """
    losses = 1.0 - (1.0 - train_end) * np.sqrt(np.arange(300) / 299)
    return recorded(losses, scalars={"val_loss": sampled(held_back)})


def test_a_held_back_loss_that_loses_what_it_had_won_is_told_below_zero_too():
    found = only("over-fit", likelihood(0.5 + 0.004 * np.abs(np.arange(300) - 60)))

    assert found.fix.parameters == {"step": 60}
    assert found.evidence["lost"] > 0.3


def test_below_zero_what_is_left_to_learn_is_counted_from_where_training_is():
    at = np.arange(300)
    few = only("over-fit", likelihood(0.6 + 0.004 * np.maximum(at - 200, 0), train_end=-0.6))

    assert few.fix.code == "more_data"


def test_below_zero_a_rise_a_gap_or_a_fall_alone_is_no_fault():
    at = np.arange(300)
    little = 0.5 + 2e-4 * np.abs(at - 60)
    beside = -0.5 + 0.0014 * np.abs(at - 60)
    never = 2.0 + 0.004 * at
    leaping = np.where(at < 80, 0.3, np.where(at % 40 < 20, 0.7, 3.0))

    for held_back in (little, beside, never, leaping):
        assert asked("over-fit", likelihood(held_back)) == []
    rising = 0.5 + 0.004 * np.abs(at - 60)
    stands = np.where(at < 30, 1.0 - at / 20, -0.5)
    assert asked("over-fit", recorded(stands, scalars={"val_loss": sampled(rising)})) == []


def test_below_zero_what_is_sure_and_wrong_may_leap_about_where_it_never_comes_back():
    at = np.arange(300)
    leaping = np.where(at < 40, 0.8, np.where(at % 60 < 20, 8.0, 40.0))

    found = only("over-fit", likelihood(leaping, train_end=-1.4))

    assert found.fix.code == "more_data"


def test_below_zero_held_back_data_need_not_have_won_anything_before_the_first_look():
    at = np.arange(300)

    assert only("over-fit", likelihood(1.1 + 0.01 * at))
    assert asked("data", likelihood(1.1 + 0.01 * at)) == []


def test_below_zero_first_outputs_that_are_far_too_large_are_no_measure():
    at = np.arange(300)
    losses = 100 * np.exp(-0.5 * at) + 1.0 - 1.5 * np.sqrt(at / 299)
    held_back = 0.6 + 0.004 * np.maximum(np.abs(at - 160) - 20, 0)

    assert only("over-fit", recorded(losses, scalars={"val_loss": sampled(held_back)}))


def test_below_zero_half_suffices_where_every_look_is_worse_than_the_one_before():
    at = np.arange(300)
    rising = 0.5 + 0.0006 * np.maximum(at - 60, 0)

    assert only("over-fit", likelihood(rising))
    assert asked("over-fit", likelihood(rising + 0.03 * (at // 20 % 2))) == []
