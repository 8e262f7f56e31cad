import numpy as np
import pytest
from simulation import replicates
from training.diagnoses.histories import asked, only

from difflens.testing.histories import falling, faulty, level, noise, recorded
from difflens.training.diagnoses import diagnose


def test_the_step_that_was_too_large_is_named():
    found = only("spike", faulty()["spike"])

    assert found.since_step == 119
    assert found.fix.parameters == {"step": 119}


def test_one_outlying_batch_is_no_spike():
    losses = falling(200, end=0.5)
    losses[120] *= 20

    assert asked("spike", recorded(losses)) == []


def test_a_leap_that_comes_back_by_itself_is_told_as_info_alone():
    losses = falling(200, end=0.5)
    losses[120:126] += 3.0

    assert only("spike", recorded(losses)).severity == "info"


@replicates
def test_noise_of_small_batches_raises_no_warning(repeats):
    random = np.random.default_rng(5)
    told = 0
    for _ in range(repeats):
        losses = falling(150) * np.exp(0.5 * random.standard_normal(150))
        told += any(each.severity != "info" for each in asked("spike", recorded(losses, layers=())))

    assert told / repeats <= 0.02


def test_a_warm_restart_is_no_spike():
    at = np.arange(200)
    losses = falling(200, end=0.3)
    losses[100:106] += 1.0
    steps = np.where((at < 40) | (at >= 99), 0.1, 1e-3)

    assert only("spike", recorded(losses, update_l2=steps)).severity == "info"


def test_one_batch_far_unlike_the_others_is_told_and_left_out():
    losses = falling(160, end=0.05)
    losses[140:] = 0.6
    losses[140] = 1e4

    found = only("spike", recorded(losses))

    assert (found.severity, found.fix.code) == ("warning", "rewind_and_skip")
    assert found.fix.parameters == {"step": 140}


def test_a_rate_that_leaps_for_one_step_is_a_spike_though_momentum_goes_on():
    losses = falling(160, end=0.5)
    losses[121:] += 9.0
    rates = np.where(np.arange(160) == 120, 2.0, 0.01)
    updates = np.where(np.arange(160) < 120, 1e-3, 0.5 * 0.9 ** (np.arange(160) - 120.0))

    found = only("spike", recorded(losses, update_l2=updates, scalars={"lr": rates}))

    assert found.fix.code == "rewind_and_skip"


def test_one_step_of_a_rate_far_above_the_others_is_told_although_the_loss_rises_little():
    losses = np.concatenate([1.2 * noise(60, 0.1, 1), 2.0 * noise(8, 0.1, 2)])
    rates = np.where(np.arange(68) == 59, 0.08, 1e-3)

    found = only("spike", recorded(losses, scalars={"lr": rates}))

    assert (found.since_step, found.fix.code) == (59, "rewind_and_skip")


def test_one_step_of_a_rate_far_above_the_others_that_did_nothing_is_no_fault():
    rates = np.where(np.arange(100) == 59, 0.08, 1e-3)

    assert asked("spike", recorded(1.2 * noise(100, 0.1, 1), scalars={"lr": rates})) == []


def test_weights_that_leap_without_a_step_are_overwritten_and_named():
    weights = np.where((np.arange(100)[:, None] >= 60) & (np.arange(12) == 4), 900.0, 1.0)
    losses = np.where(np.arange(100) < 60, 0.1, 90.0)

    found = only("spike", recorded(losses, weight_l2=weights, update_l2=1e-3))

    assert found.layers == ("hidden.2.weight",)
    assert found.fix.code == "rewind_and_skip"


def read_every_fourth(change, update, loss=3.0, at=61):
    """Record a run whose weights leap behind step `at`, of which one step in four was read."""
    steps = np.arange(90)
    weights = np.where((steps[:, None] > at) & (np.arange(12) == 4), change, 1.0)
    updates = np.where(steps > at, update, 1e-3)
    losses = np.where(steps > at, loss, 0.1) * noise(90, 0.02)
    read = (steps % 4 == 0) | (steps > at + 1)
    return recorded(losses, weight_l2=weights, update_l2=updates, read=read)


@pytest.mark.parametrize("update", [1e-3, 10.0], ids=["steps as before", "large steps since"])
def test_weights_that_leapt_while_no_step_was_read_are_told_with_the_step_of_the_loss(update):
    found = only("spike", read_every_fourth(900.0, update))

    assert found.since_step == 61
    assert found.fix.parameters["step"] == 61
    assert "changed between steps 60 and 63 by" in found.text
    assert found.layers == ("hidden.2.weight",)
    assert "one step that was not read" in found.cause


def test_weights_that_grew_with_their_steps_while_none_was_read_were_not_overwritten():
    grown = [found for found in asked("spike", read_every_fourth(3.0, 1.0)) if found.layers]

    assert grown == []


@pytest.mark.parametrize("read", [4, 6, 10])
def test_updates_of_which_only_the_idle_steps_were_read_say_nothing_of_the_others(read):
    steps = np.arange(400)
    updates = np.where(steps % 4 == 3, 0.05, 0.0)  # gradients are summed over four steps
    weights = 0.01 + 0.05 * (steps // 4)[:, None] * np.ones(12)

    run = recorded(
        falling(400), weight_l2=weights, update_l2=updates, read=(steps % read == 0).tolist()
    )

    assert [found for found in asked("spike", run) if found.layers] == []
    assert asked("wiring", run) == []


def test_a_first_step_of_a_rate_far_above_the_next_is_left_out_where_nothing_is_learned():
    rates = np.where(np.arange(60) == 0, 3.0, 0.01)

    found = only("spike", recorded(level(60), scalars={"lr": rates}))

    assert (found.fix.code, found.fix.parameters) == ("rewind_and_skip", {"step": 0})
    assert asked("spike", recorded(falling(60), scalars={"lr": rates})) == []


def kicked(losses):
    """Make a run whose rate is thirty times too high at step 59."""
    rates = np.where(np.arange(len(losses)) == 59, 0.03, 1e-3)
    return recorded(losses, scalars={"lr": rates})


def test_a_leap_behind_one_step_of_a_slipped_rate_is_told_before_it_is_known_whether_it_heals():
    """Six points on, a run that will bear it and one that will not look alike."""
    before = np.concatenate([falling(30, end=0.3), 0.3 * noise(30, 0.05, 1)])
    back = 0.3 + 0.6 * 0.8 ** np.arange(6)

    found = only("spike", kicked(np.concatenate([before, back])))

    assert (found.severity, found.fix.code) == ("warning", "rewind_and_skip")


def test_a_step_that_the_loss_leapt_behind_is_told_though_the_steps_that_answer_are_larger():
    losses = np.concatenate([falling(120, end=0.01), 5.0 * noise(8, 0.1, 2)])
    updates = np.where(np.arange(128) < 119, 1e-3, 0.5)
    updates[119] = 0.1

    found = only("spike", recorded(losses, update_l2=updates, scalars={"lr": 0.01}))

    assert found.fix.parameters == {"step": 119}


def test_a_slipped_rate_behind_which_the_loss_is_no_number_is_told_and_not_the_rate():
    losses = falling(150, end=0.15)
    losses[141:143], losses[143:] = [2e6, 7e10], np.nan
    rates, steps = np.full(150, 0.03), np.full(150, 1e-3)
    rates[140], steps[140:] = 9.0, 5e3
    history = recorded(losses, scalars={"lr": rates}, update_l2=steps)

    found = only("spike", history)

    assert found.fix.parameters == {"step": 140}
    assert asked("lr-high", history) == []
    assert diagnose(history).findings[0].name == "spike"


def test_a_batch_far_out_behind_small_steps_is_left_out_though_nothing_recovers_from_it():
    losses = falling(160, end=0.05)
    losses[140:] = np.geomspace(4e3, 1e30, 20)
    steps = np.where(np.arange(160) < 141, 1e-3, 1.0)

    found = only("spike", recorded(losses, update_l2=steps))

    assert (found.severity, found.fix.parameters) == ("warning", {"step": 140})


def test_a_loss_that_climbs_ever_faster_behind_large_steps_is_no_bad_batch():
    losses = falling(160, end=0.05)
    losses[140:] = np.geomspace(4e3, 1e30, 20)

    found = only("spike", recorded(losses, update_l2=1.0))

    assert found.fix is None or found.fix.code != "rewind_and_skip"


def struck(peak, rises, norm=40.0):
    """Make a run of which one batch is far out; what it did shows in the batches behind it."""
    before = 0.4 * noise(140, 0.1, 3)
    losses = np.concatenate([np.linspace(2.0, 0.4, 60), before, [peak], rises])
    norms = np.where(np.arange(len(losses)) == 200, norm, 1e-2)
    return recorded(losses, grad_l2=norms)


@pytest.mark.parametrize("peak", [9e4, -9e4])
def test_a_batch_whose_gradient_outlives_it_is_told_as_soon_as_the_loss_rises(peak):
    found = only("spike", struck(peak, [0.42, 0.9, 1.1, 1.6]))

    assert (found.severity, found.since_step) == ("warning", 200)
    assert found.fix.parameters == {"step": 200}


def test_a_batch_far_out_behind_which_all_is_as_it_was_is_no_fault():
    assert asked("spike", struck(9e4, 0.4 * noise(20, 0.1, 4))) == []


def test_a_loss_about_zero_is_measured_by_its_noise():
    history = struck(9e4, [0.42, 0.9, 1.1, 1.6])
    values = history.course.scalar("loss") - 0.4

    assert only("spike", recorded(values, grad_l2=history.course.field("grad_l2")))


def test_a_batch_far_out_stays_the_cause_of_all_that_follows_from_it():
    """The loss stays high for good: labels, rate and gradients would be doubted one by one."""
    history = struck(-2e3, 9.0 * noise(60, 0.3, 5))

    (found,) = diagnose(history).findings

    assert (found.name, found.fix.parameters) == ("spike", {"step": 200})


def test_a_leap_far_above_the_start_wants_a_smaller_step_behind_it():
    losses = np.concatenate([falling(160, end=0.02), 5.0 * noise(6, 0.1, 2)])
    updates = np.where(np.arange(166) < 159, 1e-3, 0.02)
    lower = np.where(np.arange(166) < 160, losses, 0.1 * losses)

    found = only("spike", recorded(losses, update_l2=updates))

    assert (found.severity, found.fix.parameters) == ("warning", {"step": 159})
    assert only("spike", recorded(lower, update_l2=updates)).severity == "info"


def test_a_batch_behind_which_the_loss_is_no_number_is_told_and_not_the_rate():
    losses = falling(150, end=0.15)
    losses[140:143], losses[143:] = [1e6, 1e14, 1e16], np.nan
    norms, steps = np.full(150, 1e-2), np.full(150, 1e-3)
    norms[140:], steps[0], steps[140:] = 1e3, 0.5, 5e3
    history = recorded(losses, grad_l2=norms, update_l2=steps)

    assert only("spike", history).fix.parameters == {"step": 140}
    assert asked("lr-high", history) == []


def multiplied(after, size=0.05, rate=0.01):
    """Make a run of which one step is far too large at its usual rate, with a usual batch."""
    losses = np.concatenate([falling(100, end=0.3), 0.3 * noise(100, 0.2, 3), after])
    at = np.arange(len(losses))
    first = 0.02 * np.exp(-at / 10)  # steps of a start are larger, too
    updates = np.where(at < 200, 2e-3 + first, size * 0.9 ** np.maximum(at - 200, 0))
    return recorded(losses, update_l2=updates, scalars={"lr": np.full(len(losses), rate)})


def test_one_step_far_larger_than_its_rate_makes_it_is_told_before_the_loss_is_lost():
    """Its own batch is as usual: something multiplied the gradient on its way to the step."""
    found = only("spike", multiplied([0.3, 0.32, 1.1, 0.9, 0.8]))

    assert (found.severity, found.since_step) == ("warning", 200)
    assert found.fix.parameters == {"step": 200}
    assert found.evidence["sound_before"] is True


def test_one_large_step_that_did_nothing_is_no_fault():
    assert asked("spike", multiplied(0.3 * noise(30, 0.2, 4))) == []


def test_a_step_that_stays_as_large_is_no_single_one():
    history = multiplied([0.3, 0.32, 1.1, 0.9, 0.8])
    updates = np.where(np.arange(205) < 200, 2e-3, 0.05)

    found = asked("spike", recorded(history.course.scalar("loss"), update_l2=updates,
                                    scalars={"lr": np.full(205, 0.01)}))  # fmt: skip

    assert all(each.fix.code != "rewind_and_skip" for each in found if each.fix)


def test_a_struck_step_stays_the_cause_though_the_loss_swings_for_the_rest_of_the_run():
    """Swings are read off half the run, and dated to its beginning."""
    after = np.append(0.3, 2.0 * noise(220, 0.9, 5))
    history = multiplied(after, size=0.4)

    (found,) = [each for each in diagnose(history).findings if each.severity != "info"]

    assert (found.name, found.fix.parameters) == ("spike", {"step": 200})


def test_the_first_step_at_a_rate_that_rose_to_stay_is_no_single_one():
    losses = np.concatenate([falling(151, end=0.3), 3.0 * noise(39, 0.2, 6)])
    updates = np.where(np.arange(190) == 150, 0.5, 2e-3)

    def told(rates):
        found = asked("spike", recorded(losses, update_l2=updates, scalars={"lr": rates}))
        return [each.fix.code for each in found if each.severity != "info"]

    assert told(np.where(np.arange(190) == 150, 1.5, 0.01)) == ["rewind_and_skip"]
    assert told(np.where(np.arange(190) >= 150, 1.5, 0.01)) == []
