import numpy as np
from simulation import replicates
from training.diagnoses.histories import asked, only

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


def test_one_fall_and_one_leap_back_are_no_swings_to_and_fro():
    thrown = np.concatenate([np.full(20, 1.3), np.linspace(1.3, 0.3, 30), np.full(15, 1.35)])
    swings = np.where(np.arange(65) % 10 < 5, 1.35, 0.5)

    assert asked("oscillating", recorded(thrown)) == []
    assert only("oscillating", recorded(swings)).evidence["passes"] >= 4


def test_swings_of_tiny_batches_ask_for_larger_ones():
    swings = np.where(np.arange(120) % 10 < 5, 4.0, 0.5)
    facts = {"output": {"shape": [4, 1], "min": 1.0, "max": 2.0}}

    assert only("oscillating", recorded(swings, facts=facts)).fix.code == "larger_batch"
    assert only("oscillating", recorded(swings)).fix.code == "scale_lr"


def test_batches_that_cost_differently_by_nature_do_not_move_the_held_back_loss():
    losses = np.where(np.arange(120) % 3 == 0, 0.3, 0.85)

    def of(looks, **facts):
        held_back = np.full(120, np.nan)
        held_back[19::20] = looks
        return asked("oscillating", recorded(losses, facts=facts, scalars={"val_loss": held_back}))

    assert of([0.6, 0.55, 0.5, 0.48, 0.47, 0.48]) == []
    assert of([0.6, 0.4, 0.5, 0.8, 0.5, 0.6])
    assert of([0.85, 0.85, 0.85, 0.85, 0.85, 0.85])
    assert of([0.85, 0.85, 0.85, 0.85, 0.85, 0.85], output={"shape": [64, 4]}) == []


def test_a_held_back_loss_that_is_thrown_up_and_down_is_told_though_the_batches_came_down():
    losses = falling(300, start=1.6, end=0.7)
    thrown = [1.6, 2.5, 1.3, 0.8, 1.2, 1.3, 1.2, 0.7, 0.7, 1.0, 0.6, 0.5, 0.8, 0.9, 1.5]

    def of(looks):
        held_back = np.full(300, np.nan)
        held_back[19::20] = looks
        return asked("oscillating", recorded(losses, scalars={"val_loss": held_back}))

    (found,) = of(thrown)

    assert (found.severity, found.since_step, found.evidence["leaps"]) == ("warning", 39, 4)
    assert of([0.25 * each for each in thrown]) == []  # it came down
    assert of([9 * each for each in thrown]) == []  # it left the training loss behind
    assert of([1.6, 2.5, 1.3, 2.0, 0.8, 1.2, *[0.8] * 9]) == []  # it has calmed down


def test_a_heavy_momentum_keeps_swings_up_that_are_told_lower_down():
    losses = falling(300, start=2.5, end=0.6, pace=0.1)
    thrown = [0.7, 0.4, 0.5, 0.6, 0.6, 0.4, 0.6, 0.5, 0.4, 1.0, 0.4, 0.6, 0.9, 0.5, 1.2]
    held_back = np.full(300, np.nan)
    held_back[19::20] = thrown

    def of(momentum):
        history = recorded(losses, scalars={"val_loss": held_back},
                           optimizer={"name": "SGD", "momentum": momentum})  # fmt: skip
        return asked("oscillating", history)

    assert [each.fix.code for each in of(0.995)] == ["lower_momentum"]
    assert of(0.9) == []
