"""Intervals of forecasts hold as often as they say."""

import numpy as np
import pytest
from scipy.signal import lfilter
from simulation import near, replicates

from difflens.stats.forecast import FEWEST, forecast, intervals


def autocorrelated(random, phi, n):
    return lfilter([1], [1, -phi], random.standard_normal(n + 300))[300:]


@replicates
def test_one_step_ahead_ninety_per_cent_are_ninety_per_cent(repeats):
    # Each replicate is one forecast of a point that nothing has seen.
    random = np.random.default_rng(90)
    hits = 0
    for _ in range(repeats):
        series = autocorrelated(random, 0.7, 301)
        made = forecast(series[:300])
        hits += made.low <= series[300] <= made.high

    assert near(hits / repeats, 0.9, repeats)


@pytest.mark.parametrize("kind", ["ar", "persistent", "walk", "decay", "louder"])
def test_held_back_halves_are_covered_at_the_stated_rate(kind):
    random, n = np.random.default_rng(12), 1200
    time = np.arange(n)
    series = {
        "ar": lambda: autocorrelated(random, 0.7, n),
        "persistent": lambda: autocorrelated(random, 0.95, n),
        "walk": lambda: np.cumsum(random.standard_normal(n)),
        "decay": lambda: -np.log1p(time) + 0.2 * autocorrelated(random, 0.5, n),
        "louder": lambda: autocorrelated(random, 0.5, n) * np.where(time > 800, 3, 1),
    }[kind]
    hits = np.concatenate([intervals(series(), 1, 0.9, n // 2).hits for _ in range(4)])

    assert near(float(hits.mean()), 0.9, len(hits))


def test_without_adapting_a_run_that_grows_louder_would_be_missed():
    random, n = np.random.default_rng(13), 1200
    loud = np.where(np.arange(n) > 600, 3, 1)
    series = autocorrelated(random, 0.5, n) * loud
    held = intervals(series, 1, 0.9, 600)
    stiff = intervals(series, 1, 0.9, 600, rate=0.0)

    assert abs(held.hits[:300].mean() - 0.9) < abs(stiff.hits[:300].mean() - 0.9)


def test_an_interval_uses_nothing_that_came_after_its_origin():
    series = autocorrelated(np.random.default_rng(2), 0.7, 400)
    changed = series.copy()
    changed[350:] += 100.0
    before, after = (intervals(each, 5, 0.9, 200) for each in (series, changed))

    # The interval of point t was made at t - 5.
    assert (before.lows[:150] == after.lows[:150]).all()
    assert (before.highs[150:155] == after.highs[150:155]).all()
    assert not (before.highs[155:] == after.highs[155:]).all()


def test_the_interval_of_a_walk_grows_with_the_horizon_and_that_of_noise_does_not():
    random = np.random.default_rng(7)
    walk, noise = np.cumsum(random.standard_normal(1000)), random.standard_normal(1000)
    width = {
        (name, horizon): (made := forecast(series, horizon)).high - made.low
        for name, series in (("walk", walk), ("noise", noise))
        for horizon in (1, 50)
    }

    assert width["walk", 50] > 3 * width["walk", 1]
    assert width["noise", 50] < 1.5 * width["noise", 1]


def test_a_line_is_forecast_along_itself():
    made = forecast(0.5 * np.arange(300.0) + 2, 10)

    assert made.value == pytest.approx(0.5 * 309 + 2, rel=1e-6)


def test_a_sluggish_series_is_forecast_by_an_ar1_and_a_walk_by_its_last_value():
    random = np.random.default_rng(3)

    assert forecast(autocorrelated(random, 0.6, 1500), 3).method == "AR(1)"
    assert forecast(np.cumsum(random.standard_normal(1500)), 1).method in {
        "last value",
        "drift",
        "AR(1)",
    }


def test_too_short_a_series_or_too_far_a_horizon_is_not_forecast():
    assert forecast(np.arange(float(FEWEST - 1))) is None
    assert forecast(np.arange(500.0), 51) is None
    assert forecast(np.arange(500.0), 50) is not None


def test_a_forecast_whose_intervals_failed_is_not_calibrated():
    made = forecast(autocorrelated(np.random.default_rng(1), 0.5, 400))

    assert made.is_calibrated
    assert not made._replace(empirical_coverage=0.7).is_calibrated


def test_the_same_series_has_the_same_forecast():
    series = autocorrelated(np.random.default_rng(1), 0.5, 400)

    assert forecast(series, 3) == forecast(series.copy(), 3)
