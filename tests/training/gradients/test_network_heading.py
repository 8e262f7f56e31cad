"""Where training is heading: the word needs the loss, and growing norms never converge."""

import numpy as np
import pytest
from simulation import replicates
from training.gradients.network_cases import analysed, decaying, falling, flat, headed, noise, run

from difflens.training.gradients.convergence import heading_evidence, measure_convergence
from difflens.training.gradients.phases import plateau_of
from difflens.training.gradients.series import totals
from difflens.training.records.network import ConvergenceTrend, NetworkLevelAnalysis

COURSES = {
    "exponential": (lambda t: np.exp(-t / 400), lambda t: 0.5 + 2 * np.exp(-t / 300)),
    "power": (lambda t: (t + 1.0) ** -0.3, lambda t: 0.3 + 3 * (t + 1.0) ** -0.35),
    "white": (flat, lambda t: 2 - t / 400),
}


def growing(time):
    return np.exp(time / 200)


def test_decaying_norms_and_a_falling_loss_converge():
    """DC-01: the reference reads time backwards and scores this 0."""
    word, reason, _ = headed(run())

    assert word == "Converging"
    assert "loss falls" in reason


def test_norms_that_shrink_without_a_loss_are_not_called_converging():
    """DC-04: shrinking gradients may be vanishing ones."""
    word, reason, _ = headed(run(loss=None))

    assert (word, reason) == ("Unknown", "gradients shrink; loss unknown")


def test_norms_that_grow_without_a_loss_diverge():
    """DC-01: the reference calls them converging."""
    word, reason, _ = headed(run(growing, None))

    assert word == "Diverging"
    assert "gradients grow" in reason


@replicates
@pytest.mark.parametrize("loss", [None, falling], ids=["no-loss", "loss-falls"])
def test_growing_norms_never_converge(loss, repeats):
    """G19: in no replicate."""
    shapes = (growing, lambda t: 1 + t / 200, lambda t: np.exp(t / 1000))
    for seed in range(repeats):
        signals = run(shapes[seed % 3], loss, phi=0.1 * (seed % 8), seed=seed, scatter=0.3)
        assert headed(signals)[0] != "Converging"


@replicates
@pytest.mark.parametrize("course", COURSES)
def test_healthy_training_raises_no_alarm(course, repeats):
    """DC-02, DC-13: the reference calls flat and decaying runs diverging and all noise swinging."""
    norms, loss = COURSES[course]
    alarms = 0
    for seed in range(repeats):
        phi = (0.0, 0.3, 0.5, 0.7)[seed % 4]
        word, _, level = headed(run(norms, loss, phi=phi, seed=seed))
        alarms += word in {"Diverging", "Oscillating"} or level == "plateau"

    assert alarms / repeats <= 0.06


@replicates
def test_swings_are_found(repeats):
    repeats //= 3
    shapes = (lambda t: 1 + 0.5 * (-1.0) ** t, lambda t: np.exp(0.4 * np.sin(2 * np.pi * t / 8)))
    words = [headed(run(shapes[seed % 2], seed=seed))[0] for seed in range(repeats)]

    assert words.count("Oscillating") / repeats >= 0.9


def test_a_swing_has_its_period_in_steps():
    signals = run(lambda t: np.exp(0.4 * np.sin(2 * np.pi * t / 8)))
    spaced = signals._replace(
        steps=10 * signals.steps,
        layers=tuple(each._replace(steps=10 * each.steps) for each in signals.layers),
    )

    assert analysed(spaced).convergence_indicators.oscillation_period == pytest.approx(80, rel=0.05)


def test_gradients_that_point_backwards_oscillate_though_their_norms_do_not():
    cosines = -0.6 + 0.05 * np.random.default_rng(1).standard_normal(400)
    word, reason, _ = headed(run(cosines=cosines))

    assert word == "Oscillating"
    assert "backwards" in reason


def test_a_flat_loss_is_stable_and_norms_that_hold_their_size_are_too():
    """DC-02: stable is shown by an interval inside a band."""
    assert headed(run(flat, lambda t: 2 * flat(t), loss_scatter=0.001))[0] == "Stable"
    word, reason, _ = headed(run(flat, None, n=2000, scatter=0.1))

    assert (word, reason) == ("Stable", "gradients hold their size; loss unknown")


def test_a_rising_loss_diverges_whatever_gradients_do():
    assert headed(run(decaying, lambda t: 1 + t / 300))[0] == "Diverging"


def test_a_loss_that_is_not_finite_any_more_diverges_since_then():
    signals = run()
    signals.loss[350:] = np.nan
    word, reason, _ = headed(signals)

    assert (word, reason) == ("Diverging", "the loss is not finite since step 350")


def test_a_loss_that_was_not_logged_at_the_last_steps_is_no_divergence():
    from difflens.training.history.frame import MISSING_SCALAR

    signals = run()
    signals.loss[395:] = MISSING_SCALAR

    assert headed(signals)[0] == "Converging"


def test_few_points_say_nothing():
    """DC-03: the reference scores 0.5 and goes on."""
    found = analysed(run(n=12)).convergence_indicators

    assert found.convergence_trend == ConvergenceTrend.UNKNOWN
    assert found.gradient_convergence_score is None
    assert {each.field for each in found.missing} >= {"gradient_convergence_score"}


def test_three_scores_are_measured_apart():
    """DC-05: the reference has one number, times 0.8 and 0.9."""
    updates = np.exp(np.arange(400) / 250)
    found = analysed(run(update_norms=updates)).convergence_indicators

    assert found.gradient_convergence_score == pytest.approx(-100 / 300, abs=0.15)
    assert found.parameter_convergence_score == pytest.approx(100 / 250, rel=1e-3)
    assert found.loss_convergence_score == pytest.approx(-100 / 300, abs=0.12)


def test_updates_that_grow_are_not_convergence():
    word, reason, _ = headed(run(update_norms=np.exp(np.arange(400) / 250)))

    assert word == "Unknown"
    assert "updates grow" in reason


def test_steps_to_convergence_come_from_the_curve_with_an_interval():
    """DC-06: the reference says (1 - score) 1000."""
    found = analysed(run(n=1000, loss_scatter=0.01), "expert").convergence_indicators
    truth = 300 * np.log(2 / 0.005) - 999

    assert found.steps_interval.low <= found.estimated_steps_to_convergence
    assert found.estimated_steps_to_convergence <= found.steps_interval.high
    assert found.estimated_steps_to_convergence == pytest.approx(truth, rel=0.1)
    assert found.loss_curve.floor == pytest.approx(0.5, rel=0.02)


def test_no_steps_are_estimated_where_the_floor_is_not_identified():
    """DC-06"""
    found = analysed(run(loss=lambda t: 3 - t / 400), "expert").convergence_indicators

    assert found.estimated_steps_to_convergence is None
    reasons = {each.field: each.why for each in found.missing}
    assert "bent" in reasons["estimated_steps_to_convergence"]


def test_slopes_are_of_steps_not_of_records():
    """DC-01, DC-30"""
    signals = run()
    spaced = signals._replace(
        steps=10 * signals.steps,
        layers=tuple(each._replace(steps=10 * each.steps) for each in signals.layers),
    )
    near, far = (analysed(each).convergence_indicators for each in (signals, spaced))

    assert near.gradient_convergence_score == pytest.approx(10 * far.gradient_convergence_score)


def test_a_thinned_run_is_not_asked_for_swings():
    signals = run(lambda t: decaying(t) * (1 + 0.5 * (-1.0) ** t))
    found = analysed(signals._replace(thinned=True))

    assert found.convergence_indicators.oscillation_p is None
    assert found.convergence_indicators.convergence_trend == ConvergenceTrend.CONVERGING
    assert any("several frames" in each for each in found.notes)


def test_an_answer_survives_json():
    found = analysed(run(), "expert")

    assert NetworkLevelAnalysis.from_json(found.to_json()) == found
    assert "<table>" in found._repr_html_()
    assert found.to_json() == analysed(run(), "expert").to_json()


def test_unclear_noise_is_unknown_with_a_reason():
    random = np.random.default_rng(3)
    signals = run(flat, flat, n=120, loss_scatter=0.2)
    signals = signals._replace(loss=1 + noise(random, 0.5, 120)[:, 0])
    word, reason, level = headed(signals)

    assert (word, level) == ("Unknown", "cannot_tell")
    assert reason


def test_the_slope_that_is_told_is_the_one_that_the_word_rests_on():
    """The window may rise where the later half, which the word is made of, falls."""

    def norms(time):
        return np.exp(-time / 150 + np.clip(time - 370, 0, None) / 110)

    signals = run(norms, seed=1)
    whole = totals(signals)
    seen = heading_evidence(whole, signals, plateau_of(whole.loss), 25)
    found = measure_convergence(seen, whole, None, forecast=False)

    assert seen.gradient.recent.slope > 0 > seen.gradient.later.slope
    assert "gradients shrink" in found.reason
    assert found.gradient_convergence_score == seen.gradient.later.slope < 0
    assert found.gradient_trend == seen.gradient.later
