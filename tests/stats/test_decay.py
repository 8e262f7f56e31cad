"""Floors are told where the curve has bent, and only there."""

import numpy as np
import pytest
from scipy.optimize import curve_fit
from scipy.signal import lfilter
from simulation import replicates

from difflens.stats.decay import FEWEST, decay

TIME = np.arange(800)
CURVES = {
    "exponential": (lambda t: 1 + 2 * np.exp(-t / 200), 200 * np.log(200) - 799),
    "power": (lambda t: 1 + 5 * (t + 1.0) ** -0.9, 500 ** (1 / 0.9) - 800),
}


def noise(random, phi, n=800):
    made = lfilter([1], [1, -phi], random.standard_normal(n + 300))[300:]
    return 0.03 * made * (1 - phi**2) ** 0.5


@replicates
@pytest.mark.parametrize("phi", [0.0, 0.5])
@pytest.mark.parametrize("form", ["exponential", "power"])
def test_intervals_cover_the_floor_and_the_steps_to_it(form, phi, repeats):
    repeats //= 3
    random = np.random.default_rng(4)
    curve, truth = CURVES[form]
    found = [decay(TIME, curve(TIME) + noise(random, phi), seed=i) for i in range(repeats)]
    told = [each for each in found if each.steps is not None]
    floors = np.mean([each.floor_low <= 1 <= each.floor_high for each in found])
    steps = np.mean([each.steps_low <= truth <= each.steps_high for each in told])
    least = 0.95 - 3 * (0.95 * 0.05 / len(told)) ** 0.5 - 0.03

    assert np.mean([each.form == form for each in found]) > 0.95
    assert floors >= least
    assert steps >= least


@pytest.mark.parametrize("form", ["exponential", "power"])
def test_the_fit_is_that_of_scipy(form):
    values = CURVES[form][0](TIME) + noise(np.random.default_rng(1), 0.0)
    found = decay(TIME, values)
    curves = {
        "exponential": lambda t, floor, a, b: floor + a * np.exp(-b * t),
        "power": lambda t, floor, a, b: floor + a * (t + 1.0) ** -b,
    }
    start = (1.0, 2.0, 1 / 200) if form == "exponential" else (1.0, 5.0, 0.9)
    floor, amplitude, rate = curve_fit(curves[form], TIME, values, start)[0]

    assert (found.floor, found.amplitude) == pytest.approx((floor, amplitude), rel=0.02)
    assert found.rate == pytest.approx(rate, rel=0.05)


def test_a_straight_line_has_no_floor_to_tell():
    found = decay(TIME, 3 - TIME * 1e-3 + noise(np.random.default_rng(2), 0.3))

    assert not found.identified
    assert found.steps is None
    assert "not bent" in found.note


def test_a_curve_that_falls_on_past_its_fit_has_no_floor_to_tell():
    falls_on = 1 + 2 * np.exp(-TIME / 30) - TIME * 5e-4
    found = decay(TIME, falls_on + noise(np.random.default_rng(2), 0.3))

    assert not found.identified
    assert found.steps is None


def test_a_curve_that_rises_or_is_constant_has_no_decay():
    assert decay(TIME, 1 + TIME * 1e-3) is None
    assert decay(TIME, np.ones(800)) is None
    assert decay(TIME[: FEWEST - 1], np.exp(-TIME[: FEWEST - 1])) is None


def test_a_floor_of_zero_has_no_one_per_cent():
    found = decay(TIME, 2 * np.exp(-TIME / 100) + noise(np.random.default_rng(3), 0.0))

    assert found.steps is None


def test_once_there_no_steps_are_left():
    found = decay(TIME, 1 + 2 * np.exp(-TIME / 50) + noise(np.random.default_rng(5), 0.0))

    assert (found.steps, found.steps_low, found.steps_high) == (0.0, 0.0, 0.0)


def test_the_unit_of_the_values_does_not_matter():
    values = CURVES["exponential"][0](TIME) + noise(np.random.default_rng(6), 0.0)
    found, scaled = decay(TIME, values), decay(TIME, 1000 * values)

    assert scaled.steps == pytest.approx(found.steps, rel=1e-6)
    assert scaled.floor == pytest.approx(1000 * found.floor, rel=1e-6)


def test_the_same_seed_gives_the_same_answer():
    values = CURVES["power"][0](TIME) + noise(np.random.default_rng(7), 0.5)

    assert decay(TIME, values, seed=3) == decay(TIME, values, seed=3)
