import numpy as np
from simulation import replicates
from training.diagnoses.histories import asked, only, until

from difflens.testing.histories import falling, faulty, noise, recorded
from difflens.training.diagnoses import diagnose


def ramp(points=240):
    """Make a run whose learning rate grows by 2 % a step until the loss turns and blows up."""
    steps = np.arange(points)
    rate = 0.02 * 1.02**steps
    losses = falling(points, end=0.2) * np.where(steps < 150, 1, 1.07 ** (steps - 150))
    return recorded(losses, update_l2=rate, scalars={"lr": rate})


def test_a_blow_up_is_announced_ten_steps_ahead():
    history = ramp()
    blown = int(np.flatnonzero(history.course.scalar("loss") > 3 * 2.3)[0])
    told = next(at for at in range(30, 240, 5) if asked("diverging", until(history, at)))

    assert told <= blown - 10


def test_growing_norms_are_never_called_healthy():
    """DC-01, DC-02: the reference calls growth convergence and decay divergence."""
    assert diagnose(faulty()["diverging"]).healthy is False


def test_a_decaying_norm_is_not_called_diverging():
    """DC-02, DC-10: a flat or decaying run scores "Diverging" in the reference."""
    decay = falling(200)

    assert asked("diverging", recorded(decay, grad_l2=decay, update_l2=1e-3 * decay)) == []


def test_a_warm_up_while_the_loss_falls_is_no_ramp():
    rate = np.linspace(1e-5, 1e-2, 200)

    assert asked("diverging", recorded(falling(200), update_l2=rate, scalars={"lr": rate})) == []


def test_the_forecast_names_its_horizon():
    found = only("diverging", faulty()["diverging"])

    assert 0 < found.evidence["steps_ahead"] <= found.evidence["horizon"]


@replicates
def test_noise_about_a_healthy_decay_is_not_diverging(repeats):
    """methods 11.4: silent in at least 94 % of healthy runs."""
    random = np.random.default_rng(6)
    told = 0
    for _ in range(repeats):
        losses = falling(120) * np.exp(0.3 * random.standard_normal(120))
        norms = 1e-2 * noise(120, 0.4, int(random.integers(1 << 30)))
        told += bool(asked("diverging", recorded(losses, grad_l2=norms)))

    assert told / repeats <= 0.06


def test_a_rate_that_grows_without_end_is_told_before_the_loss_shows_it():
    endless, warm_up = 0.1 * 1.03 ** np.arange(150), np.linspace(1e-4, 0.1, 150)

    found = only("diverging", recorded(falling(150), scalars={"lr": endless}))

    assert found.fix.parameters == {"hold": 0.1}
    assert asked("diverging", recorded(falling(150), scalars={"lr": warm_up})) == []


def test_a_loss_that_climbs_back_slowly_with_the_held_back_loss_is_told():
    losses = np.concatenate([falling(150, end=0.2), np.linspace(0.25, 1.2, 150)])
    held_back = np.where(np.arange(300) % 20 == 0, losses, np.nan)

    found = only("diverging", recorded(losses * noise(300, 0.2, 3),
                                       scalars={"val_loss": held_back}))  # fmt: skip

    assert "held-back" in found.text


def test_a_training_loss_that_climbs_for_a_while_without_the_held_back_loss_is_not():
    losses = np.concatenate([falling(150, end=0.2), np.linspace(0.25, 1.2, 150)])
    held_back = np.where(np.arange(300) % 20 == 0, falling(300, end=0.3), np.nan)

    assert asked("diverging", recorded(losses * noise(300, 0.2, 3),
                                       scalars={"val_loss": held_back})) == []  # fmt: skip


def test_weights_that_a_penalty_makes_grow_are_announced_before_the_loss_shows_it():
    weights = np.exp(0.07 * np.arange(60))
    losses = np.concatenate([falling(20, end=0.6), np.full(40, 0.65)])
    history = recorded(losses, weight_l2=weights, update_l2=weights * (1 - np.exp(-0.07)),
                       grad_l2=0.7 * weights, scalars={"lr": 0.1},
                       optimizer={"name": "SGD", "momentum": 0.0})  # fmt: skip

    found = only("diverging", history)

    assert (found.fix.code, found.fix.parameters["factor"] < 0) == ("scale_penalty", True)
    assert asked("lr-high", history) == []


def test_a_rate_below_zero_is_told_at_once_with_a_hold():
    rate = np.linspace(0.1, -0.02, 60)

    found = only("diverging", recorded(falling(60), scalars={"lr": rate}))

    assert (found.severity, found.fix.code) == ("critical", "fix_schedule")
    assert found.since_step == int(np.flatnonzero(rate < 0)[0])
    assert found.fix.parameters["hold"] > 0


def test_weights_that_something_multiplies_are_told_before_the_loss_shows_it():
    weights = np.exp(0.02 * np.arange(30))

    found = only("diverging", recorded(falling(30), weight_l2=weights, update_l2=5e-3))

    assert found.fix.code == "leave_weights"


def test_a_climb_that_began_with_one_step_is_dated_to_it_and_not_to_the_lowest_loss():
    """The lowest level may lie long before."""
    history = recorded(
        np.concatenate([np.linspace(2.0, 0.4, 60), np.linspace(0.4, 0.5, 100), np.full(80, 2.0)]),
        scalars={"val_loss": np.repeat([2.0, 0.4, 0.4, 0.4, 2.0, 2.0, 2.0, 2.0], 30)},
    )

    assert only("diverging", history).since_step in range(155, 165)


def leapt(back):
    """Make a warm-up with one leap of the loss, behind which gradients and steps shrink, or not."""
    at, rate = np.arange(90), np.linspace(1e-3, 3e-2, 90)
    behind = np.clip(at - 80, 0, None) * back
    losses = np.where(at < 80, falling(90, end=0.5), 1.4 * 0.95**behind)
    sizes = np.where(at < 80, 1.0, 12.0 * 0.7**behind)
    steps = 0.1 * rate * np.where(at < 80, 1.0, 6.0 * 0.95**behind)
    return recorded(losses, grad_l2=1e-3 * sizes, update_l2=steps, scalars={"lr": rate})


def test_a_leap_of_a_warm_up_that_dies_away_is_no_ramp():
    assert asked("diverging", leapt(1.0)) == []
    assert only("diverging", leapt(0.0)).evidence["lr_at_lowest"] > 0


def test_a_rise_from_next_to_nothing_to_little_is_no_ramp():
    rates = np.linspace(0.01, 0.1, 100)
    course = falling(100, end=0.01, pace=0.08)
    harmed = falling(100, end=0.5, pace=0.08)
    updates = np.where(np.arange(100) < 80, 1e-3, 4e-3)

    def told(losses, times):
        rising = losses * np.where(np.arange(100) < 85, 1.0, times)
        return asked("diverging", recorded(rising, update_l2=updates, scalars={"lr": rates}))

    assert told(course, 5.0) == []
    assert [each.name for each in told(harmed, 2.0)] == ["diverging"]
