import numpy as np
from diagnoses.histories import asked, only
from simulation import replicates

from difflens.testing.histories import falling, faulty, recorded


@replicates
def test_white_noise_about_a_healthy_fall_does_not_oscillate(repeats):
    """DC-13: the reference calls 98 % of pure noise oscillating (methods 11.4: at most 6 %)."""
    random = np.random.default_rng(7)
    told = 0
    for _ in range(repeats):
        noise = np.exp(0.3 * random.standard_normal(120))
        told += bool(asked("oscillating", recorded(falling(120) * noise, layers=())))

    assert told / repeats <= 0.06


@replicates
def test_white_noise_about_a_level_does_not_oscillate(repeats):
    """DC-13: noise turns at two of three points."""
    random = np.random.default_rng(8)
    told = 0
    for _ in range(repeats):
        losses = 2.3 * np.exp(0.2 * random.standard_normal(120))
        told += bool(asked("oscillating", recorded(losses, layers=())))

    assert told / repeats <= 0.06


def test_wide_swings_that_do_not_come_down_are_told():
    assert asked("oscillating", faulty()["oscillating"])


def test_wide_swings_about_a_level_that_came_down_are_no_fault():
    losses = falling(400) * np.exp(0.9 * np.random.default_rng(3).standard_normal(400))

    assert asked("oscillating", recorded(losses)) == []


def test_the_noise_about_the_low_loss_of_trained_weights_is_no_oscillation():
    random = np.random.default_rng(2)
    losses = 0.05 * np.exp(0.6 * random.standard_normal(120))
    output = {"shape": [64, 10], "rows_sum_to_one": False, "min": -15.0, "max": 18.0}

    assert asked("oscillating", recorded(losses, facts={"output": output})) == []


def test_small_batches_of_squared_errors_swing_by_themselves():
    random = np.random.default_rng(4)

    def of(batch):
        losses = random.chisquare(batch, 160) / batch
        output = {"shape": [batch, 1], "rows_sum_to_one": False}
        return asked("oscillating", recorded(losses, facts={"output": output}))

    assert [of(batch) for batch in (1, 4, 16)] == [[], [], []]


def test_a_loss_that_passes_below_zero_has_no_level_to_swing_about():
    """A likelihood of densities: its zero means nothing."""
    swinging = 2.3 + 1.4 * np.sin(np.arange(200))

    assert only("oscillating", recorded(swinging))
    assert asked("oscillating", recorded(swinging - 1.2)) == []


def test_a_loss_that_was_below_zero_has_no_level_to_swing_about():
    losses = 1.0 + 0.8 * np.sin(np.arange(120))
    facts = {"output": {"shape": [48, 1], "min": 1.0, "max": 2.0}}
    below = np.where(np.arange(120) == 70, -0.1, losses)

    assert asked("oscillating", recorded(losses, facts=facts))
    assert asked("oscillating", recorded(below, facts=facts)) == []
