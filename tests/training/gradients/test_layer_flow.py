"""How norms move: trends on real steps, smoothness without units, oscillation beyond noise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from simulation import replicates
from training.gradients.layer_cases import details, noise, one

from difflens.training.gradients.flow import LogNorms, condensed, flow, log_norms, residuals
from difflens.training.gradients.signals import LayerSignal, signals_of_histories

DECAY = [1.0, 0.83, 0.71, 0.62, 0.48, 0.43, 0.33, 0.29, 0.24, 0.21]


def of(norms, steps=None):
    norms = np.asarray(norms, float)
    steps = np.arange(len(norms)) if steps is None else np.asarray(steps)
    return flow(log_norms(LayerSignal("layer", steps, norms)))


def test_the_trend_is_the_slope_of_the_logarithm_per_hundred_real_steps():
    """Vector 7; DC-14, DC-30: signed, with an interval, against steps."""
    found = of(DECAY, range(0, 100, 10))

    assert found.trend_strength == pytest.approx(-1.772553, rel=1e-6)
    assert found.trend_interval.low == pytest.approx(-1.863296, rel=1e-6)
    assert found.trend_interval.high == pytest.approx(-1.653357, rel=1e-6)
    assert found.kendall_tau == pytest.approx(-1)
    assert found.trend_p < 0.01


def test_alternation_is_oscillation_and_a_monotone_course_is_not():
    """Vector 7."""
    to_and_fro, rising = of([1.0, 2.0] * 10), of(np.arange(1.0, 21.0))

    assert to_and_fro.turning_z == pytest.approx(3.337, abs=5e-4)
    assert to_and_fro.oscillation_frequency == 1
    assert rising.turning_z == pytest.approx(-6.674, abs=5e-4)
    assert rising.oscillation_frequency == 0


@replicates
def test_pure_noise_does_not_oscillate(repeats):
    """DC-13: the reference flags 98 % of series of independent noise; vector 12."""
    norms = np.exp(np.random.default_rng(3).normal(size=(repeats, 50)))

    alarms = sum(one(row).recent_flow.is_oscillating for row in norms)

    assert alarms / repeats <= 0.05 + 3 * (0.05 * 0.95 / repeats) ** 0.5


def test_a_thousand_layers_of_noise_are_not_fifty_that_oscillate():
    """DC-13 again, over many layers: q, not p, decides."""
    found = details({f"layer{i}": noise(100, seed=i) for i in range(200)})

    assert sum(each.recent_flow.is_oscillating for each in found.values()) <= 2


def test_a_layer_that_overshoots_oscillates_among_many_that_do_not():
    layers = {f"layer{i}": noise(100, seed=i) for i in range(30)}
    layers["swinging"] = np.tile([1.0, 2.0], 50) * noise(100, sigma=0.05)

    found = details(layers)

    assert found["swinging"].recent_flow.is_oscillating
    assert found["swinging"].recent_flow.lag1_interval.high < 0


def test_a_clean_decay_is_stable():
    """DC-10: the reference gives a clean exponential decay a stability of 0.41."""
    found = of(np.exp(-np.arange(400) / 50))

    assert found.stability_measure == 1
    assert found.residual_iqr == pytest.approx(0, abs=1e-9)


def test_a_learning_curve_that_bends_is_stable():
    steps = np.arange(1, 2001)

    assert of(10 / steps**0.7).stability_measure > 0.97


def test_a_scatter_of_decades_is_not_stable():
    assert of(noise(400, sigma=2.0)).stability_measure < 0.5


@given(some.integers(3, 300), some.floats(-12, 12))
def test_the_unit_of_the_norm_does_not_matter(n, power):
    """DC-12: tiny norms are not smooth because they are tiny."""
    norms = noise(n, seed=n)
    here, there = of(norms), of(norms * 10.0**power)

    for field in ("consistency_score", "smoothness_index", "trend_strength", "stability_measure",
                  "residual_iqr"):  # fmt: skip
        assert getattr(there, field) == pytest.approx(getattr(here, field), rel=1e-6, abs=1e-9)


def test_a_rise_and_the_same_fall_are_equally_consistent():
    """DC-11: the reference lets rises count without bound, and falls for one at most."""
    up = of([1.0, 10.0, 100.0, 1000.0])

    assert up.consistency_score == of([1000.0, 100.0, 10.0, 1.0]).consistency_score
    assert up.consistency_score == pytest.approx(np.log(10))


def test_smoothness_tells_a_curve_from_noise_from_alternation():
    curve = of(np.exp(np.sin(np.arange(200) / 20)))
    white = of(noise(2000))
    swinging = of([1.0, 2.0] * 50)

    assert curve.smoothness_index < 0.05
    assert white.smoothness_index == pytest.approx(2, abs=0.15)
    assert swinging.smoothness_index > 3.9


def test_the_recent_window_and_the_whole_are_told_apart():
    """DC-30: what happened long ago does not hide what happens now."""
    found = one(np.r_[np.exp(-np.arange(400) / 100), np.exp(-4 + np.arange(100) / 50)])

    assert found.flow_characteristics.trend_strength < 0
    assert found.recent_flow.trend_strength == pytest.approx(2.0, rel=0.05)


def test_a_zero_has_no_logarithm_and_is_left_out():
    series = log_norms(signals_of_histories({"layer": [1.0, 0.0, np.nan, 2.0]}).layers[0])

    assert series.steps.tolist() == [0, 3]


@given(some.integers(129, 3000))
def test_a_shortened_series_keeps_a_straight_line(n):
    steps = np.arange(n, dtype=float)
    short = condensed(LogNorms(steps, 2 - 0.25 * steps))

    assert len(short.values) <= 128
    assert np.allclose(short.values, 2 - 0.25 * short.steps)


@given(some.integers(100, 1000), some.floats(-0.1, 0.1))
def test_a_straight_line_leaves_no_residual(n, slope):
    steps = np.arange(n, dtype=float)

    assert np.abs(residuals(LogNorms(steps, 1 + slope * steps))).max() < 1e-9
