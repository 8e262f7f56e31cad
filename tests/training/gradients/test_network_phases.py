"""The phase comes from the loss, the speeds from what was recorded of each."""

import numpy as np
import pytest
from simulation import replicates
from training.gradients.network_cases import analysed, decaying, falling, flat, run

from difflens.training.records.network import LearningPhase, PlateauSeverity


def dynamics(signals, **how):
    return analysed(signals, **how).training_dynamics


def phase(signals):
    return dynamics(signals).learning_phase


def test_every_phase_can_be_reached():
    """DC-07, DX-10: the reference never finds overfitting, calls the steepest slope a plateau."""
    time = np.arange(400)
    found = {
        phase(run(loss=lambda t: 3 - t / 400)),
        phase(run(loss=lambda t: 0.5 + 2 * np.exp(-t / 300))),
        phase(run(loss=lambda t: 0.3 + 3 * (t + 1.0) ** -0.35, loss_scatter=0.005)),
        phase(run(loss=lambda t: 2 * flat(t), loss_scatter=0.001)),
        phase(run(loss=lambda t: 1 + 2 * np.exp(-t / 15), loss_scatter=0.004, n=190)),
        phase(run()._replace(validation_steps=time[::10], validation_loss=1 + time[::10] / 400)),
    }

    assert found == set(LearningPhase)


def test_without_a_loss_there_is_no_phase():
    """DC-07"""
    found = dynamics(run(loss=None))

    assert found.learning_phase is None
    assert found.reason == "no loss was recorded"
    assert "learning_phase" in {each.field for each in found.missing}


def test_overfitting_needs_a_validation_loss_that_rises():
    time = np.arange(400)
    falls = run()._replace(validation_steps=time[::10], validation_loss=falling(time[::10]))

    assert phase(falls) == LearningPhase.RAPID_LEARNING


def test_speeds_are_measured_apart():
    """DC-05: the reference has three multiples of one number."""
    cosines = 0.3 + 0.02 * np.random.default_rng(1).standard_normal(400)
    signals = run(
        loss=lambda t: 3 - t / 400, cosines=cosines, update_norms=np.full(400, 2e-3),
        weight_norms=np.full(400, 2.0),
    )  # fmt: skip
    found = dynamics(signals)

    assert found.gradient_momentum == pytest.approx(0.3, abs=0.01)
    assert found.momentum_interval.low < 0.3 < found.momentum_interval.high
    assert found.learning_velocity == pytest.approx(1 / 400, rel=0.3)
    assert found.velocity_interval.low < 1 / 400 < found.velocity_interval.high
    assert found.adaptation_rate == pytest.approx(1e-3)


def test_speeds_that_were_not_recorded_are_not_known():
    found = dynamics(run(loss=None))

    assert (found.gradient_momentum, found.learning_velocity, found.adaptation_rate) == (None,) * 3
    assert len({each.field for each in found.missing}) == len(found.missing)


@pytest.mark.parametrize(
    ("still", "severity"), [(1150, "Mild"), (1050, "Moderate"), (400, "Severe")]
)
def test_a_plateau_is_as_severe_as_it_is_long(still, severity):
    """DC-08: the reference says 10 steps and Mild whatever happens."""
    signals = run(
        loss=lambda t: np.where(t < still, 1 + (still - t) / 300, 1.0), n=1300, loss_scatter=2e-4
    )
    found = dynamics(signals).plateau_detection

    assert found.outcome == "plateau"
    assert found.plateau_severity == PlateauSeverity(severity)
    assert found.plateau_duration <= 1300 - still
    assert str(found.since_step) in found.suggested_actions[0]


def test_a_loss_that_moves_has_no_severity():
    """DC-08"""
    found = dynamics(run()).plateau_detection

    assert found.is_plateau is False
    assert found.plateau_severity is None
    assert found.suggested_actions == ()


def test_a_noisy_loss_cannot_tell_and_says_how_many_points_would():
    found = dynamics(run(loss=flat, loss_scatter=0.3)).plateau_detection

    assert (found.outcome, found.is_plateau) == ("cannot_tell", None)
    assert found.points_needed > 200
    assert str(found.points_needed) in next(
        each.why for each in found.missing if each.field == "is_plateau"
    )


def test_gradients_that_hold_their_size_are_no_plateau():
    assert dynamics(run(flat, falling)).plateau_detection.is_plateau is False
    assert dynamics(run(flat, None)).plateau_detection.is_plateau is None


@replicates
def test_a_loss_that_falls_by_the_margin_is_rarely_called_a_plateau(repeats):
    from training.gradients.network_cases import noise

    from difflens.training.gradients.phases import plateau_of
    from difflens.training.gradients.series import Series

    random, steps = np.random.default_rng(4), np.arange(400.0)
    found = 0
    for i in range(repeats):
        scatter = 1e-4 * noise(random, (0.0, 0.5, 0.7)[i % 3], 400)[:, 0]
        found += plateau_of(Series(steps, 1 - 1e-5 * (steps - 375) + scatter)).is_plateau is True

    assert found / repeats <= 0.05 + 3 * (0.05 * 0.95 / repeats) ** 0.5


def test_decay_of_norms_without_loss_gives_no_velocity():
    assert dynamics(run(decaying, None)).learning_velocity is None
