import numpy as np
import pytest

from difflens.testing.histories import WIDTH, falling, level, recorded
from difflens.training.detectors.signs.rates import (
    bound,
    hold,
    is_rising,
    is_summed,
    is_torn_by_momentum,
    larger,
    lower,
    stepped,
)
from difflens.training.detectors.signs.sight import sight

SIZE = WIDTH**0.5  # norm of a matrix of a made network


@pytest.mark.parametrize(
    ("rates", "rising"),
    [
        (1.02 ** np.arange(60), True),
        (np.minimum(np.arange(60) / 30, 1.0), False),
        (np.linspace(1.0, 0.1, 60), False),
        (np.where(np.arange(60) == 59, 100.0, 1.0), True),
    ],
)
def test_a_rate_rises_where_it_is_higher_than_ever_and_goes_on(rates, rising):
    assert is_rising(rates) is rising


def test_a_rate_that_climbs_is_held_well_below_that_of_the_lowest_loss():
    rates = 0.01 * 1.02 ** np.arange(200)
    losses = np.concatenate([np.linspace(2.3, 0.3, 100), np.linspace(0.3, 9.0, 100)])

    fix = lower(sight(recorded(losses, scalars={"lr": rates})), 0.1)

    assert fix.code == "fix_schedule"
    assert fix.parameters["hold"] == pytest.approx(rates[100] / 4, rel=0.15)


def test_a_rate_that_stands_is_scaled():
    fix = lower(sight(recorded(falling(100), scalars={"lr": 0.5})), 0.123)

    assert (fix.code, fix.parameters) == ("scale_lr", {"factor": 0.12})


def lost_after(rates, best=50):
    """Make a run whose loss turns at a step, whatever its rate did by then."""
    losses = np.concatenate([np.linspace(2.3, 0.3, best), np.linspace(0.3, 9.0, len(rates) - best)])
    return sight(recorded(losses, scalars={"lr": rates}))


def test_a_rate_that_climbs_along_a_line_is_held_long_after_the_climb_is_slow():
    rates = 0.3 * (1 + np.arange(400) / 4)

    assert hold(lost_after(rates)).parameters["hold"] == pytest.approx(rates[50] / 4, rel=0.2)


def test_restarts_that_swell_are_held_at_a_part_of_what_went_well():
    rates = np.concatenate([np.full(60, 0.02), np.full(60, 0.08)])

    assert hold(lost_after(rates)).parameters == {"hold": pytest.approx(0.005)}


def test_restarts_of_one_height_and_a_slip_of_one_step_are_no_climb():
    waves = 0.02 + 0.02 * np.cos(np.arange(120) / 6)
    slip = np.where(np.arange(120) == 70, 5.0, 0.02)

    assert hold(lost_after(waves)) is None
    assert hold(lost_after(slip)) is None


def test_momentum_of_one_and_more_is_lowered_and_the_rate_left_alone():
    heavy = recorded(falling(100), optimizer={"name": "SGD", "momentum": 1.02})

    assert lower(sight(heavy), 0.1).code == "lower_momentum"
    assert lower(sight(heavy), 0.1).parameters["value"] <= 0.9


def test_an_error_of_several_large_outputs_is_not_a_sum_over_the_batch():
    kaiming = [8.0] * 12
    squares = {"output": {"shape": [32, 3], "min": -52.0, "max": 71.0}}
    classes = {"output": {"shape": [32, 3], "min": -2.0, "max": 2.0}}

    assert not is_summed(sight(recorded(level(20, 586.0), facts=squares, weight_l2=kaiming)))
    assert is_summed(sight(recorded(level(20, 35.0), facts=classes, weight_l2=kaiming)))


def outgrown(times, first=0.01):
    """Make a run whose gradients grow while its loss falls, until that breaks at step 100."""
    norms = np.concatenate([np.ones(60), np.linspace(1.0, times, 60)])
    losses = np.concatenate([falling(100, end=0.5), np.full(20, 9.0)])
    return sight(recorded(losses, grad_l2=norms, update_l2=first * norms, scalars={"lr": 0.1}))


def test_gradients_that_outgrow_the_loss_are_bounded_by_what_they_were():
    seen = outgrown(30.0)

    fix = bound(seen, 100, 0.03 * 6)

    assert fix.code == "clip_gradients"
    assert fix.parameters["max_norm"] == pytest.approx(12**0.5, rel=0.01)


def test_gradients_that_grow_little_or_large_first_steps_ask_for_no_bound():
    assert bound(outgrown(2.0), 100, 0.03 * 6) is None
    assert bound(outgrown(30.0), 100, 1e-4) is None


def stood(*rates):
    """Make rates that stand for thirty points each."""
    return sight(recorded(falling(30 * len(rates)), scalars={"lr": np.repeat(rates, 30)}))


def test_a_rate_rose_at_once_where_it_stood_and_had_never_been_near():
    assert stepped(stood(0.002, 0.05)) == 30
    assert stepped(stood(0.05, 0.002, 0.05)) is None
    assert stepped(stood(0.05, 0.002)) is None


def test_neither_a_ramp_nor_a_slip_rises_at_once():
    ramp = 0.002 * np.exp(np.minimum(np.arange(60), 30) / 8)
    slip = np.where(np.arange(60) == 30, 5.0, 0.002)

    for rates in (ramp, slip):
        assert stepped(sight(recorded(falling(60), scalars={"lr": rates}))) is None


def test_a_rate_that_rose_at_once_is_taken_back_where_it_did_well_before():
    rates = np.repeat([0.02, 0.08], 60)

    assert hold(lost_after(rates, best=60)).parameters == {"hold": pytest.approx(0.02)}
    assert hold(lost_after(rates, best=40)).parameters == {"hold": pytest.approx(0.005)}


@pytest.mark.parametrize("batch", [None, 5, 64])
def test_larger_batches_are_asked_for_where_they_are_known_to_be_tiny(batch):
    facts = {} if batch is None else {"output": {"shape": [batch, 10], "min": -1.0, "max": 1.0}}

    assert larger(sight(recorded(level(60), facts=facts))) is None


@pytest.mark.parametrize(("first", "asked"), [(0.005, {}), (0.04, {"lr_factor": 0.25})])
def test_a_heavy_momentum_is_lowered_and_the_rate_where_usual_steps_were_still_too_large(
    first, asked
):
    heavy = recorded(falling(60), optimizer={"momentum": 0.98}, update_l2=first * SIZE)

    assert lower(sight(heavy), 0.1).code == "lower_momentum"
    assert lower(sight(heavy), 0.1).parameters == {"value": 0.9} | asked


def test_a_heavy_momentum_is_left_where_the_loss_rose_before_it_had_gathered():
    losses = np.concatenate([[2.0, 2.1, 2.2], np.full(60, 4.0)])
    heavy = recorded(losses, optimizer={"momentum": 0.98})

    assert lower(sight(heavy), 0.1).code == "scale_lr"


def test_what_a_heavy_momentum_gathers_tears_the_weights():
    def torn(momentum, first):
        optimizer = {"momentum": momentum}
        return is_torn_by_momentum(
            sight(recorded(level(60), optimizer=optimizer, update_l2=first * SIZE))
        )

    assert torn(0.98, 0.01)
    assert not torn(0.98, 0.004)
    assert not torn(0.9, 0.1)


@pytest.mark.parametrize(("highest", "asked"), [(2.4, {}), (3.5, {"lr_factor": 0.19})])
def test_a_rate_goes_with_a_heavy_momentum_where_the_loss_leapt_before_a_usual_one_had_gathered(
    highest, asked
):
    losses = np.concatenate([[2.5, 2.3, 2.2, 2.2, 2.1, 2.3, highest], level(60)])

    fix = lower(sight(recorded(losses, update_l2=0.008 * SIZE, optimizer={"momentum": 0.99})), 0.1)

    assert (fix.code, fix.parameters) == ("lower_momentum", {"value": 0.9} | asked)


def test_a_rate_that_is_held_does_not_tear_the_weights_at_the_start():
    """Gradients are largest there: what was borne behind them says nothing of it."""
    rates = 0.03 * 1.02 ** np.arange(200)
    losses = np.concatenate([falling(100, end=0.1), np.full(100, 9.0)])
    torn = recorded(losses, update_l2=0.12 * SIZE, weight_l2=SIZE, scalars={"lr": rates})

    assert hold(sight(torn)).parameters == {"hold": pytest.approx(0.03)}
