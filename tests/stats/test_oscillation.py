"""Swings are told from noise, whatever memory the noise has."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import lfilter
from simulation import near, replicates

from difflens.stats.oscillation import _fisher, oscillation, oscillations, turning_points

SERIES = st.lists(st.integers(-9, 9).map(float), min_size=0, max_size=40)


def autocorrelated(random, phi, n, series):
    noise = random.standard_normal((n + 300, series))
    return lfilter([1], [1, -phi], noise, axis=0)[300:]


def test_alternation_turns_more_often_than_noise_and_a_slope_never():
    # Vector 7 of the acceptance list.
    swing, slope = turning_points([1.0, 2.0] * 10), turning_points(np.arange(20.0))

    assert (swing.count, swing.expected, swing.n) == (18, 12.0, 20)
    assert swing.variance == pytest.approx(3.2333333)
    assert swing.z == pytest.approx(3.3367680, rel=1e-6)
    assert slope.z == pytest.approx(-6.6735360, rel=1e-6)
    assert swing.p < 0.01
    assert slope.p > 0.99


@given(SERIES)
def test_turns_are_those_counted_by_hand(values):
    kept = [value for i, value in enumerate(values) if not i or value != values[i - 1]]
    by_hand = sum((b - a) * (c - b) < 0 for a, b, c in zip(kept, kept[1:], kept[2:], strict=False))

    assert turning_points(values).count == by_hand


@given(SERIES.filter(lambda values: len(values) > 2))
def test_a_series_run_backwards_or_upside_down_turns_as_often(values):
    found = turning_points(values)

    assert turning_points(values[::-1]) == found
    assert turning_points([-each for each in values]) == found


@pytest.mark.parametrize(
    ("phi", "rate"),
    [(-0.9, 0.899), (-0.5, 0.770), (0.0, 0.667), (0.5, 0.580), (0.9, 0.516), (0.99, 0.502)],
)
def test_every_ar1_series_turns_at_more_than_half_of_its_points(phi, rate):
    series = autocorrelated(np.random.default_rng(3), phi, 20_000, 1)[:, 0]

    assert turning_points(series).rate == pytest.approx(rate, abs=0.015)


@replicates
def test_white_noise_turns_at_two_points_of_three_and_is_not_called_oscillating(repeats):
    # DC-13: the reference's limit of 0.5 flags all such series; G18 and vector 12.
    noise = np.random.default_rng(18).standard_normal((100, repeats))
    found = oscillations(noise)
    per_point = np.mean([turning_points(column).count / 100 for column in noise.T])

    assert per_point == pytest.approx(0.653, abs=0.03)
    assert (found.p <= 0.05).mean() <= 0.06
    turning = [turning_points(column).p <= 0.05 for column in noise.T]
    assert near(float(np.mean(turning)), 0.054, repeats, slack=0.01)


@replicates
@pytest.mark.parametrize("phi", [0.0, 0.3, 0.5, 0.7])
@pytest.mark.parametrize("course", ["exponential", "power", "none"])
@pytest.mark.parametrize("n", [60, 400])
def test_noise_about_a_healthy_decay_does_not_oscillate(phi, course, n, repeats):
    time = np.arange(n)[:, None]
    drift = {"exponential": -time / 100, "power": -0.5 * np.log1p(time), "none": 0 * time}[course]
    noise = 0.1 * autocorrelated(np.random.default_rng(5), phi, n, repeats)

    assert (oscillations(drift + noise).p <= 0.05).mean() <= 0.06


@replicates
def test_alternation_and_a_period_of_eight_are_found(repeats):
    random = np.random.default_rng(8)
    time, noise = np.arange(200)[:, None], 0.5 * random.standard_normal((200, repeats))
    phase = random.uniform(0, 2 * np.pi, repeats)
    slow = oscillations(np.sin(2 * np.pi * time / 8 + phase) * 0.7 - 0.01 * time + noise)
    quick = oscillations(0.5 * (-1.0) ** time - 0.01 * time + noise)

    assert (slow.p <= 0.05).mean() >= 0.9
    assert np.median(slow.period) == pytest.approx(8, abs=0.4)
    assert (quick.p <= 0.05).mean() >= 0.9
    assert (quick.lag1_high < 0).mean() >= 0.9


def test_one_series_and_many_at_once_agree():
    noise = np.random.default_rng(1).standard_normal((64, 3))
    many, one = oscillations(noise), oscillation(noise[:, 1])

    assert one.lag1 == pytest.approx(many.lag1[1])
    assert (one.p, one.period) == pytest.approx((many.p[1], many.period[1]))
    assert one.lag1_low < one.lag1 < one.lag1_high


def test_a_smooth_curve_without_noise_does_not_oscillate():
    for curve in (np.exp(-np.arange(100.0) / 10), np.log1p(np.arange(300.0)), np.arange(50.0)):
        assert not oscillation(curve).is_oscillating


@pytest.mark.parametrize("values", [[], [1.0], [1.0] * 40, [1.0, 2.0] * 4])
def test_too_little_or_no_variation_is_no_oscillation(values):
    found = oscillation(values)

    assert not found.is_oscillating
    assert found.lag1 is None


@given(st.floats(-50, 50), st.floats(0.01, 100))
def test_neither_level_nor_unit_matter(level, unit):
    noise = np.random.default_rng(2).standard_normal(80)
    found, moved = oscillation(noise), oscillation(level + unit * noise)

    assert moved.p == pytest.approx(found.p, rel=1e-6)
    assert moved.turning.count == found.turning.count


def test_fisher_s_g_is_the_largest_share_of_equal_exponentials():
    random = np.random.default_rng(9)
    powers = random.exponential(size=(20_000, 30))
    shares = powers.max(axis=1) / powers.sum(axis=1)
    for g in (0.12, 0.18, 0.25):
        expected = (shares >= g).mean()
        assert _fisher(np.array([g]), 30)[0] == pytest.approx(expected, abs=0.02)
