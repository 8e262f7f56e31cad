import numpy as np
import pytest

from difflens.testing.histories import falling, level, network, recorded
from difflens.training.detectors.signs.radial import along, is_drawn_in, multiplied, swelling
from difflens.training.detectors.signs.sight import sight

SGD = {"name": "SGD", "lr": 0.1, "momentum": 0.0}


def grown(pace, losses=None, *, points=80, cosine=1.0, momentum=0.0, gradient=None, size=1.0):
    """Make weights that grow by `pace` a step, by steps of which a part goes along them."""
    weights = size * np.exp(pace * np.arange(points))
    before = np.concatenate([[size], weights[:-1]])
    # |w'|^2 = |w|^2 + 2 c |w| |u| + |u|^2, solved for |u|.
    steps = before * (np.sqrt(cosine**2 + (weights / before) ** 2 - 1) - cosine)
    pull = steps * (1 - momentum) / 0.1 if gradient is None else gradient
    return sight(recorded(level(points) if losses is None else losses, weight_l2=weights,
                          update_l2=steps, grad_l2=pull, scalars={"lr": 0.1},
                          optimizer={**SGD, "momentum": momentum}))  # fmt: skip


@pytest.mark.parametrize("cosine", [1.0, 0.5])
def test_the_cosine_of_a_step_and_the_weights_follows_from_their_norms(cosine):
    found = along(grown(0.05, cosine=cosine))

    assert found[5:] == pytest.approx(np.full((75, 6), cosine), abs=1e-3)


def test_weights_that_grow_along_themselves_while_the_loss_stands_are_told():
    found = swelling(grown(0.05))

    assert found.per_step == pytest.approx(0.05, rel=0.01)
    assert found.cosine > 0.99


@pytest.mark.parametrize(
    "seen",
    [
        grown(0.05, falling(80)),  # the loss falls: weights find their size
        grown(0.05, cosine=0.2),  # most of a step goes elsewhere
        grown(0.001, points=600),  # classes that come apart, slowly
        grown(0.05, gradient=1e-6),  # what momentum goes on with
        grown(0.05, momentum=1.02),
        grown(0.05, gradient=100.0),  # stronger than any penalty
    ],
)
def test_other_growth_is_not(seen):
    assert swelling(seen) is None


def test_weights_that_start_tiny_may_grow_until_they_are_of_a_usual_size():
    assert swelling(grown(0.015, size=4.0)) is not None
    assert swelling(grown(0.015, size=0.5)) is None


def test_growth_that_slows_down_ends_by_itself():
    weights = 1 + np.log1p(np.arange(200) / 4)
    steps = np.diff(weights, prepend=1.0)

    assert swelling(sight(recorded(level(200), weight_l2=weights, update_l2=steps,
                                   optimizer=SGD))) is None  # fmt: skip


def bent(paces, losses=None):
    """Make matrices that grow at a pace each, by steps of which but a part goes along them."""
    sizes = np.exp(np.outer(np.arange(80), np.repeat(paces, 2)))
    return sight(recorded(level(80) if losses is None else losses, weight_l2=sizes,
                          update_l2=0.04 * sizes, grad_l2=0.4 * sizes, scalars={"lr": 0.1},
                          optimizer=SGD))  # fmt: skip


def test_matrices_that_all_grow_at_one_pace_are_told_though_data_bend_their_steps():
    found = swelling(bent([0.02, 0.019, 0.021, 0.02, 0.022, 0.02]))

    assert found.per_step == pytest.approx(0.02, rel=0.05)
    assert found.cosine < 0.6


def test_matrices_that_grow_each_at_its_pace_or_while_the_loss_falls_are_not():
    assert swelling(bent([0.02, 0.01, 0.03, 0.02, 0.015, 0.025])) is None
    assert swelling(bent([0.02] * 6, falling(80))) is None


def test_growth_at_one_pace_that_was_faster_before_is_not():
    sizes = np.exp(np.minimum(0.3 * np.arange(80), 4 + 0.02 * np.arange(80)))
    seen = sight(recorded(level(80), weight_l2=sizes, update_l2=0.04 * sizes,
                          grad_l2=0.4 * sizes, scalars={"lr": 0.1}, optimizer=SGD))  # fmt: skip

    assert swelling(seen) is None


def test_first_steps_straight_towards_nothing_are_a_penalty_s():
    weights = 0.95 ** np.arange(1, 41)

    assert is_drawn_in(
        sight(recorded(level(40), weight_l2=weights, update_l2=weights * 0.05 / 0.95))
    )
    assert not is_drawn_in(sight(recorded(level(40))))


def test_weights_that_grow_by_more_than_their_steps_are_multiplied():
    weights = np.exp(0.02 * np.arange(40))

    found = multiplied(sight(recorded(falling(40), weight_l2=weights, update_l2=5e-3)))

    assert found.per_step == pytest.approx(0.02, rel=0.01)
    assert found.since <= 1


@pytest.mark.parametrize(
    ("pace", "size", "facts"),
    [
        (0.02, 0.03, {}),  # their steps can have made it
        (1e-3, 1e-5, {}),  # so slowly that nothing comes of it
        (-0.02, 1e-3, {}),  # taken away
        (0.02, 5e-3, {"estimated_weights": 2}),
    ],
)
def test_weights_that_steps_can_have_made_are_not_multiplied(pace, size, facts):
    weights = np.exp(pace * np.arange(40))
    run = recorded(falling(40), weight_l2=weights, update_l2=size * weights, facts=facts)

    assert multiplied(sight(run)) is None


def test_weights_told_as_they_were_before_a_leap_are_not_multiplied_by_it():
    at = np.arange(40)[:, None] * np.ones(len(network()), int)
    weights, updates = np.where(at < 12, 1.0, 1e6), np.where(at == 11, 1e6, 1e-3)

    run = recorded(falling(40), weight_l2=weights, update_l2=updates)
    assert multiplied(sight(run)) is None
