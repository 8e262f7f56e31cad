import numpy as np

from difflens.testing.histories import falling, network, recorded
from difflens.training.detectors.signs.nonfinite import (
    broke_in_the_loss,
    broke_inside,
    came_from,
    is_overflow,
    is_sudden,
)

CLASSES = {"output": {"shape": [64, 10], "min": -3.0, "max": 3.0}}


def test_a_loss_that_breaks_at_once_out_of_finite_outputs_broke_in_the_loss():
    assert broke_in_the_loss(recorded(np.full(5, np.nan), facts=CLASSES))


def test_activations_that_are_no_numbers_come_of_a_sample():
    losses = np.append(falling(20), np.nan)
    active = np.append(np.ones(20), np.nan)

    assert came_from(recorded(losses, facts=CLASSES, act_mean=active), 20) == "sample"


def test_a_loss_that_had_grown_did_not_break_out_of_the_blue():
    losses = np.append(2.0 ** np.arange(20), np.inf)

    assert not is_sudden(recorded(losses), 20)


def test_a_run_whose_numbers_are_all_finite_broke_nowhere():
    assert not broke_in_the_loss(recorded(falling()))


def test_a_loss_that_is_none_above_gradients_that_are_numbers_left_its_domain():
    losses = falling(20, end=0.5)
    losses[12] = np.nan
    one = {"output": {"shape": [48, 1], "min": 1.0, "max": 6.0}}

    assert came_from(recorded(losses, facts=one), 12) == "operation"
    assert (
        came_from(recorded(losses, facts=one, grad_nonfinite=1.0, grad_l2=np.nan), 12) == "sample"
    )


def test_a_loss_that_was_below_zero_is_no_squared_error():
    losses = np.append(np.linspace(0.4, -0.2, 20), np.nan)
    gradients = np.append(np.full(20, 1e-2), np.nan)
    two = {"output": {"shape": [40, 2], "min": -1.0, "max": 1.0}}

    assert (
        came_from(recorded(losses, facts=two, grad_l2=gradients, act_mean=0.1), 20) == "operation"
    )


def test_numbers_that_go_in_and_come_out_as_none_were_lost_on_the_way():
    facts = {"input": {"min": -1.0, "max": 1.0}, "output": {"shape": [8, 76], "min": None}}

    assert came_from(recorded(np.full(3, np.nan), facts=facts, grad_l2=np.nan), 0) == "operation"


def test_what_breaks_behind_the_first_layer_did_not_come_in():
    losses = np.append(falling(20), np.nan)
    active = np.ones((21, 12))
    active[20, 4:] = np.nan

    assert came_from(recorded(losses, facts=CLASSES, act_mean=active, grad_l2=np.nan), 20) == (
        "operation"
    )


def broken_gradient(layers, share, losses=None, norm=np.inf):
    """Make a run in whose last gradients of some layers a share of the numbers is none."""
    norms, counts = np.full((21, 12), 1e-2), np.array([each.count for each in network()])
    hit = np.zeros((21, 12))
    norms[20, layers], hit[20, layers] = norm, np.ceil(share * counts[layers])
    return recorded(falling(21) if losses is None else losses, grad_l2=norms, grad_nonfinite=hit)


def test_single_numbers_of_a_gradient_that_go_first_are_too_large_for_their_format():
    assert is_overflow(broken_gradient([2, 4], 0.01))
    assert is_overflow(broken_gradient(list(range(12)), 0.01))  # infinite, and none is NaN


def test_a_small_bias_may_overflow_as_a_whole():
    assert is_overflow(broken_gradient([2, 3], np.array([0.01, 1.0])))


def test_a_gradient_that_goes_as_a_whole_or_with_its_loss_is_no_overflow():
    assert not is_overflow(broken_gradient([2, 4], 1.0))
    assert not is_overflow(broken_gradient(list(range(12)), 0.01, norm=np.nan))
    assert not is_overflow(broken_gradient([2], 0.01, np.append(falling(20), np.nan)))
    assert not is_overflow(recorded(falling(20)))


def test_a_network_that_worked_and_breaks_inside_was_given_what_it_cannot_stand():
    losses = np.append(falling(20), np.nan)
    active = np.ones((21, 12))
    active[20, 6:] = np.nan

    assert broke_inside(recorded(losses, facts=CLASSES, act_mean=active), 20)
    assert not broke_inside(recorded(losses, facts=CLASSES, act_mean=1.0), 20)
    assert not broke_inside(recorded(losses[20:], facts=CLASSES, act_mean=active[20:]), 0)
