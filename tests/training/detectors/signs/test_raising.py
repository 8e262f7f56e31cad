import numpy as np
import pytest

from difflens.testing.histories import falling, level, network, recorded
from difflens.training.detectors.signs.raising import (
    end_warm_up,
    pace_at_height,
    raised,
    sound_height,
)
from difflens.training.detectors.signs.sight import sight


def small(update, depth=6, points=100, **others):
    return sight(recorded(level(points), layers=network(depth), weight_l2=1.0,
                          update_l2=update, **others))  # fmt: skip


def test_steps_are_raised_to_about_a_seventieth_of_the_weights_whatever_the_optimiser():
    for name in ("SGD", "Adam"):
        assert raised(small(1e-5, optimizer={"name": name})) == 1400


def test_the_small_steps_of_a_schedule_s_end_count_as_those_of_its_height():
    rates = np.linspace(1.0, 0.02, 100)
    seen = small(1e-4 * rates, scalars={"lr": rates})

    assert pace_at_height(seen) == pytest.approx(1e-4, rel=0.05)
    assert 100 < raised(seen) < 200


def test_a_deep_stack_is_raised_by_less():
    assert raised(small(1e-5, 20)) == raised(small(1e-5, 6)) / 2


def test_first_steps_that_were_larger_by_far_are_not_raised_until_they_tear():
    seen = small(np.where(np.arange(100) < 10, 1e-3, 1e-5))

    assert raised(seen) == 300


def test_no_step_that_moves_anything_gives_no_factor():
    assert raised(small(0.0)) is None


def test_a_warm_up_that_goes_on_should_end_within_a_tenth_of_the_run():
    assert (
        end_warm_up(small(1e-5, scalars={"lr": np.linspace(0, 1, 100)})).parameters["steps"] == 10
    )
    assert end_warm_up(small(1e-5)) is None


def test_a_rate_at_which_the_loss_fell_by_sound_steps_is_held_and_half_of_any_other():
    rates = np.linspace(0.1, -0.1, 100)

    def held(losses, update):
        return sound_height(sight(recorded(losses, weight_l2=1.0, update_l2=update,
                                           scalars={"lr": rates})))  # fmt: skip

    assert held(falling(100, pace=0.1), 5e-3) == pytest.approx(0.1)
    assert held(falling(100, pace=0.1), 5e-2) == pytest.approx(0.05)
    assert held(level(100), 5e-3) == pytest.approx(0.05)


def test_the_layer_that_moves_most_is_not_raised_until_it_tears_unless_it_starts_tiny():
    fast = np.full(12, 1e-4)
    fast[10] = 1e-2
    weights = np.full(12, 4.0)
    tiny = np.where(np.arange(12) == 10, 0.1, 4.0)

    assert raised(small(1e-4)) == 140
    raises = [raised(sight(recorded(level(100), weight_l2=each, update_l2=fast)))
              for each in (weights, tiny)]  # fmt: skip
    assert raises[0] == 120
    assert raises[1] == 560
