"""Flat is what is shown to be flat."""

import numpy as np
import pytest
from scipy.signal import lfilter
from simulation import replicates

from difflens.stats.steadiness import SMALLEST, plateau

MARGIN = 2e-3


def noise(random, phi, n):
    made = lfilter([1], [1, -phi], random.standard_normal(n + 300))[300:]
    return 0.3 * made * (1 - phi**2) ** 0.5


def outcomes(phi, slope, repeats, n=400):
    random, time = np.random.default_rng(6), np.arange(n)
    found = [
        plateau(time, noise(random, phi, n) + slope * time, MARGIN).outcome for _ in range(repeats)
    ]
    return {word: found.count(word) / repeats for word in ("plateau", "moving", "cannot_tell")}


@replicates
@pytest.mark.parametrize("phi", [0.0, 0.5, 0.7])
def test_a_slope_of_just_the_margin_is_rarely_called_flat(phi, repeats):
    rate = outcomes(phi, MARGIN, repeats)["plateau"]

    assert rate <= 0.05 + 3 * (0.05 * 0.95 / repeats) ** 0.5


@replicates
def test_a_flat_series_is_found_flat_where_its_noise_allows(repeats):
    rate = outcomes(0.0, 0.0, repeats)

    assert rate["plateau"] >= 0.9
    assert rate["moving"] <= 0.05


@replicates
def test_a_series_that_falls_at_three_margins_moves(repeats):
    assert outcomes(0.3, -3 * MARGIN, repeats)["moving"] >= 0.95


def test_noise_wider_than_the_margin_cannot_tell_and_says_what_would_suffice():
    random, n = np.random.default_rng(1), 200
    found = plateau(np.arange(n), 5 * noise(random, 0.0, n), MARGIN)
    longer = max(found.needed * 3, n)
    again = plateau(np.arange(longer), 5 * noise(random, 0.0, longer), MARGIN)

    assert found.outcome == "cannot_tell"
    assert found.needed > found.points
    assert again.outcome == "plateau"


def test_a_curve_that_fell_and_then_lies_flat_is_flat_since_then():
    n, random = 1600, np.random.default_rng(2)
    time = np.arange(n)
    curve = np.where(time < 700, 3 - time / 350, 1.0) + 0.05 * random.standard_normal(n)
    found = plateau(time, curve, MARGIN)

    assert found.outcome == "plateau"
    assert found.points == 800
    assert found.start == 800


def test_times_count_not_places():
    random = np.random.default_rng(3)
    values = -0.005 * np.arange(400) + noise(random, 0.0, 400)

    assert plateau(np.arange(400), values, MARGIN).outcome == "moving"
    assert plateau(10 * np.arange(400), values, MARGIN).outcome == "plateau"


def test_a_short_series_cannot_tell():
    found = plateau(range(60), [1.0] * 60, MARGIN)

    assert found.outcome == "cannot_tell"
    assert found.needed == 2 * SMALLEST


def test_a_constant_is_flat():
    assert plateau(range(200), [1.0] * 200, MARGIN).outcome == "plateau"


def test_a_margin_of_nothing_is_refused():
    with pytest.raises(ValueError, match="margin"):
        plateau(range(200), [1.0] * 200, 0.0)
