import numpy as np
import pytest
from training.diagnoses.histories import asked, only

from difflens.testing.histories import WIDTH, falling, faulty, level, network, noise, recorded

NAN = float("nan")
SIZE = WIDTH**0.5  # norm of a matrix of a made network


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


def test_a_first_step_that_throws_the_loss_up_is_told_once_it_is_stuck():
    losses = np.concatenate([[3.0, 1300.0, 1000.0, 300.0, 60.0, 12.0], level(60)])
    steps = np.concatenate([[20.0, 9.0, 5.0, 3.0, 2.0, 1.0], np.full(60, 0.03)])

    assert only("lr-high", recorded(losses, update_l2=steps)).since_step == 0


def test_a_loss_that_comes_down_far_after_its_first_steps_is_no_fault():
    losses = np.concatenate([[2.3, 30.0, 25.0, 20.0, 9.0, 4.0], falling(100)])

    assert asked("lr-high", recorded(losses, update_l2=0.5)) == []


def test_steps_that_are_large_only_since_the_loss_leapt_did_not_make_it_leap():
    losses = np.concatenate([falling(100), np.full(60, 9.0)])
    late, in_time = (np.where(np.arange(160) < at, 1e-3, 3.0) for at in (100, 99))

    assert asked("lr-high", recorded(losses, update_l2=late)) == []
    assert only("lr-high", recorded(losses, update_l2=in_time)).since_step == 99


def test_a_rate_that_climbs_is_held_and_not_scaled():
    rates = 0.01 * 1.03 ** np.arange(200)
    losses = np.concatenate([falling(120), np.linspace(0.2, 30.0, 80)])
    history = recorded(losses, update_l2=rates, scalars={"lr": rates})

    assert only("lr-high", history).fix.code == "fix_schedule"


def test_a_first_rise_is_waited_out_unless_steps_are_far_too_large():
    thrown = np.array([9.0, 6.0, 9.0, 12.0, 13.0, 25.0, 18.0, 15.0])
    down = np.concatenate([thrown, falling(80, start=5.0)])

    for points in range(5, len(down)):
        assert asked("lr-high", recorded(down[:points], update_l2=0.07 * SIZE)) == []
    assert asked("lr-high", recorded(np.array([2.3, 9.0, 30.0, 40.0, 60.0]), update_l2=SIZE))


def test_a_loss_that_breaks_after_steps_of_a_quarter_is_not_blamed_on_them():
    losses = np.array([6.0, 26.0, 26.0, NAN, NAN, NAN])

    assert asked("lr-high", recorded(losses, update_l2=0.27 * SIZE)) == []
    assert asked("lr-high", recorded(losses, update_l2=1.5 * SIZE))


def test_weights_that_were_replaced_at_the_start_explain_a_loss_that_rests():
    rested = np.concatenate([[1.0, 50.0, 200.0], falling(100, start=2.0, end=0.5, pace=0.3)])
    steps = SIZE * np.where(np.arange(103) < 3, 4.0, 1e-3)

    assert only("lr-high", recorded(rested, update_l2=steps)).since_step == 0


def test_a_heavy_momentum_is_lowered_where_it_alone_makes_steps_large():
    losses = np.concatenate([falling(15), np.full(60, 9.0)])
    steps = SIZE * np.minimum(0.02 * (1 + np.arange(75)), 0.1)
    history = recorded(losses, update_l2=steps, optimizer={"momentum": 0.99})

    fix = only("lr-high", history).fix

    assert fix.code == "lower_momentum"
    assert fix.parameters == {"value": 0.9, "lr_factor": 0.5}


def test_what_a_heavy_momentum_gathers_counts_as_first_steps():
    losses = level(120) * noise(120, 0.05)
    steps = SIZE * np.minimum(0.006 * (1 + np.arange(120)), 0.04)

    def told(momentum):
        return asked("lr-high", recorded(losses, update_l2=steps, optimizer={"momentum": momentum}))

    assert [each.fix.code for each in told(0.98)] == ["lower_momentum"]
    assert told(0.9) == []


def test_steps_of_a_heavy_momentum_echo_for_longer():
    time = np.arange(160)
    losses = np.where(time < 70, 1.9, 9.0) * noise(160, 0.05)
    steps = SIZE * np.where(time < 20, 0.08, 0.02)

    def told(momentum):
        return asked("lr-high", recorded(losses, update_l2=steps, optimizer={"momentum": momentum}))

    assert [each.since_step for each in told(0.99)] == [0]
    assert told(0.9) == []


def test_a_rise_that_seems_to_begin_with_the_first_values_is_dated_to_its_half():
    losses = np.concatenate([[1.4, 1.9, 1.4, 2.0, 0.9], 5.0 * noise(80, 0.2)])
    steps = SIZE * np.concatenate([[0.016, 0.1, 0.1, 0.16, 0.2], np.full(80, 1e-4)])

    found = only("lr-high", recorded(losses, update_l2=steps))

    assert (found.since_step, found.evidence["harm_step"]) == (1, 5)


def test_a_second_step_that_the_first_made_larger_asks_for_a_lower_rate():
    losses = np.concatenate([[1.4, 1.7], np.full(60, 9.0)])

    def factor(second):
        steps = SIZE * np.concatenate([[0.1, second], np.full(60, 0.2)])
        return only("lr-high", recorded(losses, update_l2=steps)).fix.parameters["factor"]

    assert factor(0.05) == factor(0.1) == pytest.approx(0.15)
    assert factor(0.4) == pytest.approx(0.075)
    assert factor(50.0) == pytest.approx(0.047)


def test_steps_that_grew_before_the_loss_suffered_ask_for_a_lower_rate_and_all_of_it_if_it_broke():
    grown = 0.02 * 1.2 ** np.arange(13)

    def factor(*end):
        losses = np.concatenate([np.full(12, 1.4), end])
        steps = SIZE * np.append(grown, np.full(len(end) - 1, 2.0))
        return only("lr-high", recorded(losses, update_l2=steps)).fix.parameters["factor"]

    assert factor(*[9.0] * 60) == pytest.approx(0.28)
    assert factor(*[9.0] * 8, NAN, NAN) == pytest.approx(0.1, rel=0.1)


def test_a_first_step_that_tears_the_weights_says_all_whatever_it_threw_up():
    losses = np.array([6.0, 4e3, 4e11, NAN, NAN, NAN])

    def factor(second):
        steps = SIZE * np.array([0.5, second, 1e6, 1e6, 1e6, 1e6])
        return only("lr-high", recorded(losses, update_l2=steps)).fix.parameters["factor"]

    assert factor(1.0) == factor(100.0) == pytest.approx(0.03)


def test_the_first_step_of_rmsprop_is_not_taken_for_those_that_do_the_harm():
    losses = np.concatenate([np.full(10, 2.3), np.full(50, 9.0)])
    plain = only("lr-high", recorded(losses, update_l2=8.0))
    scaled = only(
        "lr-high", recorded(losses, update_l2=8.0, optimizer={"name": "RMSprop", "alpha": 0.99})
    )

    ratio = scaled.fix.parameters["factor"] / plain.fix.parameters["factor"]
    assert ratio == pytest.approx(10**0.5, rel=0.05)


def test_noisy_labels_are_no_stuck_loss_where_held_back_data_are_learned():
    losses = np.concatenate([np.linspace(0.7, 0.52, 60), 0.52 * noise(120, 0.2, 3)])
    looks = np.where(np.arange(180) % 20 == 19, 0.33, np.nan)
    steps = np.where(np.arange(180) < 3, 0.12, 0.01)
    run = {"weight_l2": 1.0, "update_l2": steps}

    assert asked("lr-high", recorded(losses, **run))
    assert asked("lr-high", recorded(losses, scalars={"val_loss": looks}, **run)) == []


def test_steps_are_not_blamed_where_the_first_layers_never_got_a_gradient():
    reached = np.array([1e-2] * len(network()))
    cut = np.where(np.arange(len(network())) < 4, 0.0, reached)
    large = {"update_l2": 0.5, "layers": network(activation="Tanh")}

    assert asked("lr-high", recorded(level(120) * noise(120, 0.5), grad_l2=reached, **large))
    assert asked("lr-high", recorded(level(120) * noise(120, 0.5), grad_l2=cut, **large)) == []


def test_a_loss_that_first_steps_throw_up_is_waited_for_while_it_comes_back():
    steps = 0.36 * 0.75 ** np.arange(5)
    thrown, lost = [8.6, 40.0, 48.0, 31.0, 13.0], [8.6, 40.0, 48.0, 51.0, 43.0]
    run = {"weight_l2": 1.0, "update_l2": steps}

    assert asked("lr-high", recorded(thrown, **run)) == []
    assert asked("lr-high", recorded(lost, **run))


def test_batches_that_differ_make_a_rise_by_chance_where_the_first_were_easy():
    batches = 0.45 * noise(59, 0.25, 5)
    batches[:3], batches[21:26] = (0.37, 0.31, 0.45), (0.47, 0.62, 0.57, 0.6, 0.59)
    alike = np.concatenate([np.full(21, 0.38), np.full(38, 0.6)])
    large = {"update_l2": 0.05 * SIZE}

    for points in range(5, len(batches)):
        assert asked("lr-high", recorded(batches[:points], **large)) == []
    assert asked("lr-high", recorded(alike, **large))


def undone(rates, behind=2.0, late=None):
    """Make a run that loses much of what it had won behind step 100, never all of it."""
    late = np.full(100, behind) if late is None else late
    losses = np.concatenate([falling(100, start=2.3, end=1.0), late * noise(100, 0.03, 4)])
    steps = SIZE * np.where(np.arange(200) < 99, 2e-3, 0.08)
    return recorded(losses, update_l2=steps, scalars={"lr": rates})


RISES = np.where(np.arange(200) < 99, 0.002, 0.05)


def test_a_loss_that_a_rate_undoes_that_rose_at_once_is_told_and_the_rate_before_asked_for():
    found = only("lr-high", undone(RISES))

    assert found.since_step == 99
    assert (found.fix.code, found.fix.parameters) == ("fix_schedule", {"hold": 0.002})


def test_a_rate_that_did_not_rise_for_good_or_a_loss_that_comes_back_is_not_told_so():
    restarts = np.where(np.arange(200) < 20, 0.05, RISES)
    back = falling(100, start=2.0, end=1.0)

    assert asked("lr-high", undone(np.full(200, 0.05))) == []
    assert asked("lr-high", undone(restarts)) == []
    assert asked("lr-high", undone(RISES, late=back)) == []


def thrown(batch, first=0.1, **optimizer):
    """Make a run that first steps throw up, and whose steps then are all alike."""
    losses = np.concatenate([[2.3, 2.2], np.full(60, 9.0)])
    facts = {"output": {"shape": [batch, 10], "min": -0.3, "max": 0.3}}
    steps = SIZE * np.where(np.arange(62) == 0, first, 0.2)
    return recorded(losses, update_l2=steps, facts=facts, optimizer=optimizer)


def test_steps_of_a_few_examples_ask_for_more_of_them():
    fix = only("lr-high", thrown(2, first=0.02)).fix

    assert (fix.code, fix.parameters) == ("larger_batch", {"factor": 16.0})
    assert only("lr-high", thrown(32)).fix.code == "scale_lr"


def test_steps_that_are_too_large_by_themselves_ask_for_a_lower_rate_beside_it():
    plain, heavy = (
        only("lr-high", thrown(2, **given)).fix.parameters
        for given in ({"first": 0.5}, {"first": 0.02, "momentum": 0.97})
    )

    assert plain == {"factor": 16.0, "lr_factor": 0.03}
    assert heavy == {"factor": 16.0, "lr_factor": 0.15}


def test_a_heavy_momentum_is_not_to_blame_where_the_loss_never_fell():
    losses = np.concatenate([[2.3, 2.2], np.full(73, 9.0)])
    steps = SIZE * np.minimum(0.02 * (1 + np.arange(75)), 0.1)
    history = recorded(losses, update_l2=steps, optimizer={"momentum": 0.99})

    assert only("lr-high", history).fix.code == "scale_lr"


def test_the_first_step_of_nesterov_has_the_momentum_of_the_second():
    losses = np.concatenate([np.full(10, 2.3), np.full(50, 9.0)])
    plain, ahead = (
        only("lr-high", recorded(losses, update_l2=2.0, optimizer=given)).fix.parameters["factor"]
        for given in ({"momentum": 0.9}, {"momentum": 0.9, "nesterov": True})
    )

    assert ahead / plain == pytest.approx(1.9, rel=0.05)


def test_a_loss_summed_over_the_batch_is_no_sign_of_wild_weights():
    facts = {"output": {"shape": [32, 4], "min": -1.0, "max": 1.0}, "input": {"shape": [32, 8]}}
    steps = np.where(np.arange(100) < 3, 0.8, 1e-3) * SIZE
    weights = [(2 * WIDTH) ** 0.5] * 12

    found = only("lr-high", recorded(level(100, at=46.0), facts=facts, update_l2=steps,
                                     weight_l2=weights))  # fmt: skip

    assert found.fix.parameters == {"factor": 0.031}


def test_what_replaced_weights_cost_is_not_where_the_run_began():
    losses = np.concatenate([[1.6, 4.9, 5.1, 3.7, 7.1, 2.4], np.full(80, 1.0) * noise(80, 0.05, 2)])
    facts = {"output": {"shape": [32, 5], "min": -0.3, "max": 0.3}}
    steps = SIZE * np.concatenate([[2.0, 0.7, 0.4, 0.3], np.full(82, 1e-3)])
    learned = np.where(np.arange(86) < 6, losses, 0.3 * losses)

    assert only("lr-high", recorded(losses, update_l2=steps, facts=facts)).since_step == 0
    assert asked("lr-high", recorded(learned, update_l2=steps, facts=facts)) == []


def test_a_loss_that_climbs_off_its_level_again_behind_steps_that_tore_the_weights_is_told():
    time = np.arange(300)
    settled = 0.8 + 2.0 * np.exp(-time / 15)
    back = settled + np.clip(time - 120, 0, 60) / 300
    torn = SIZE * np.where(time < 20, 0.45, 0.01)

    def told(losses, steps):
        # Held-back data cost little, so that nobody says that nothing was learned.
        looks = {"val_loss": np.where(time % 20 == 19, losses, NAN)}
        noisy = losses * noise(300, 0.03)
        return asked("lr-high", recorded(noisy, scalars=looks, update_l2=steps))

    (found,) = told(back, torn)
    assert "climbed" in found.text
    assert found.fix.code == "scale_lr"
    # What settles was borne, and first steps that tear nothing did not make it climb.
    assert told(settled, torn) == []
    assert told(back, SIZE * 0.01) == []


def test_a_loss_that_stands_since_the_rate_is_nothing_is_not_blamed_on_first_steps():
    losses = np.concatenate([np.linspace(2.3, 2.0, 40), 2.0 * noise(160, 0.01, 3)])
    steps = SIZE * np.where(np.arange(200) < 20, 0.05, 1e-5)
    decayed = 0.01 * 0.9 ** np.arange(200)

    blamed = only("lr-high", recorded(losses, update_l2=steps))
    assert "in " in blamed.evidence["harm"]
    assert asked("lr-high", recorded(losses, update_l2=steps, scalars={"lr": decayed})) == []


def test_swings_behind_one_batch_far_out_are_not_blamed_on_the_steps_before_it():
    swings = np.resize([0.3, 1.5, 6.0], 220) * noise(220, 0.1, 3)
    losses = np.concatenate([np.linspace(2.0, 0.4, 60), 0.4 * noise(140, 0.1, 3), [9e4], swings])
    at = np.arange(len(losses))
    steps = SIZE * np.where(at < 5, 0.05, 0.01)
    norms = np.where(at == 200, 40.0, 1e-2)

    assert "swings" in only("lr-high", recorded(losses, update_l2=steps)).evidence["harm"]
    assert asked("lr-high", recorded(losses, update_l2=steps, grad_l2=norms)) == []


def torn_while_warming(first, climb=20.0):
    """Make a run whose rate climbs over twenty steps, and whose loss rises from the first on."""
    rates = climb * np.minimum((1 + np.arange(100)) / climb, 1.0)
    losses = np.concatenate([[1.7] * 10, np.full(90, 1e3) * noise(90, 0.3)])
    steps = SIZE * np.concatenate([[first, first], np.full(98, 0.2)])
    return recorded(losses, update_l2=steps, scalars={"lr": rates}, optimizer={"name": "Adam"})


def test_a_sum_over_the_places_of_sequences_asks_for_their_share_though_the_rate_warms_up():
    facts = {"output": {"shape": [32, 8, 4], "min": -1.0, "max": 1.0}}
    steps = np.where(np.arange(100) < 3, 0.8, 1e-3) * SIZE
    rates = np.minimum(0.01 * (1 + np.arange(100)), 0.2)

    found = only("lr-high", recorded(level(100, at=370.0), facts=facts, update_l2=steps,
                                     weight_l2=[(2 * WIDTH) ** 0.5] * 12,
                                     scalars={"lr": rates}))  # fmt: skip

    assert (found.fix.code, found.fix.parameters) == ("scale_lr", {"factor": 0.0039})


@pytest.mark.parametrize("at", [1.25, 0.9])
def test_a_loss_that_only_came_back_from_where_first_steps_threw_it_is_stuck_or_rests(at):
    losses = np.concatenate([[1.3, 1.9, 3.9, 7.0], at * noise(100, 0.05, 2)])
    looks = {"val_loss": np.where(np.arange(104) % 20 == 19, 0.8, NAN)}

    def told(steps):
        return asked("lr-high", recorded(losses, update_l2=steps, scalars=looks))

    (found,) = told(SIZE * 0.27 * 0.75 ** np.arange(104))
    assert found.fix.parameters["factor"] == pytest.approx(0.056)
    assert told(1e-3) == []


def test_gradients_that_large_steps_silenced_are_told_where_nothing_was_learned():
    losses = np.concatenate([[1.6, 10.0, 20.0, 2.0, 1.75, 3.9, 1.4], level(20, 1.65)])
    silent = 1e-2 * SIZE * np.where(np.arange(27) < 3, 1.0, 1e-3)
    torn = SIZE * 0.8 * 0.7 ** np.arange(27)

    def told(points, losses=losses, grad=silent, steps=torn):
        return asked("lr-high", recorded(losses[:points], grad_l2=grad[:points],
                                         update_l2=steps[:points]))  # fmt: skip

    (found,) = told(7)
    assert found.since_step == 0
    assert "gradients" in found.evidence["harm"]
    assert told(7, grad=np.full(27, 1e-2)) == []
    assert told(20, losses=falling(27, start=1.6, pace=0.2)) == []
    small = {"losses": np.full(27, 1.6), "steps": torn / 15}
    assert told(12, **small) == []
    assert told(20, **small)


def test_steps_that_divide_gradients_are_not_excused_by_gradients_or_first_losses():
    losses = np.concatenate([[1e3], np.full(40, 1e9)])
    run = {"update_l2": 10 * SIZE, "grad_l2": 1e4}

    adam, sgd = (asked("lr-high", recorded(losses, optimizer={"name": name}, **run))
                 for name in ("AdamW", "SGD"))  # fmt: skip

    assert adam[0].fix.parameters["factor"] == pytest.approx(0.0021)
    assert sgd == []


def test_replaced_weights_that_only_guess_are_told_however_far_above_guessing_the_run_began():
    losses = np.concatenate([[32.0, 4e4, 4e3, 700.0, 30.0], level(80, 2.3)])
    facts = {"output": {"shape": [48, 10], "min": -70.0, "max": 70.0}}
    steps = SIZE * np.concatenate([[2.8, 0.7, 0.4, 0.3], np.full(81, 1e-3)])
    learned = np.where(np.arange(85) < 5, losses, 0.2 * losses)

    assert only("lr-high", recorded(losses, update_l2=steps, facts=facts)).since_step == 0
    assert asked("lr-high", recorded(learned, update_l2=steps, facts=facts)) == []


def test_a_loss_behind_torn_weights_is_stuck_sooner():
    losses = np.concatenate([[0.94, 1.5, 1.5, 1.4], level(40, 1.15)])

    def told(first):
        return asked("lr-high", recorded(losses, update_l2=SIZE * first * 0.8 ** np.arange(44)))

    assert told(0.5)
    assert told(0.1) == []
