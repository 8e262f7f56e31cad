"""A norm that rises ten thousand times and stays there to the end is critical, however late."""

import numpy as np
import pytest

from difflens import GradientAnalyzer
from difflens.training.gradients.flow import LogNorms, risen
from difflens.training.gradients.settings import GradientThresholds

LENGTHS = (3, 4, 5, 7, 10, 15, 20, 30, 40, 60, 80)
RISES = {
    "geometric": lambda length: np.geomspace(1e4 ** (1 / length), 1e4, length),
    "geometric from one": lambda length: np.geomspace(1, 1e4, length),
    "a step": lambda length: np.full(length, 1e4),
    "two steps": lambda length: np.where(np.arange(length) < length // 2, 100.0, 1e4),
    "a climb and a plain": lambda length: np.minimum(np.geomspace(1, 1e8, length), 1e4),
}


def calm(seed, n=200, sigma=0.2):
    return np.exp(sigma * np.random.default_rng(seed).standard_normal(n))


def health(norms):
    found = GradientAnalyzer("basic").analyze_gradients({"fc": norms})
    return found.layer("fc").health_metrics.overall_health


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("rise", RISES)
def test_a_rise_of_ten_thousand_that_lasts_to_the_end_is_critical(rise, length):
    for seed in range(10):
        norms = calm(seed)
        norms[-length:] *= RISES[rise](length)

        assert health(norms) == "Critical", seed


@pytest.mark.parametrize("depth", ["basic", "standard", "expert"])
def test_every_depth_calls_a_late_explosion_critical(depth):
    norms = calm(0)
    norms[-20:] *= np.geomspace(1, 1e4, 20)
    found = GradientAnalyzer(depth).analyze_gradients({"fc": norms}).layer("fc").health_metrics

    assert found.overall_health == "Critical"
    (risk,) = [each for each in found.risks if each.rule == "exploding"]
    assert risk.measured == pytest.approx(1e4, rel=1)
    assert 180 <= risk.since_step <= 190


def test_one_record_at_the_end_is_a_spike_and_no_explosion():
    norms = calm(3)
    norms[-1] *= 1e4

    assert health(norms) == "Warning"


def test_a_rise_that_came_down_again_is_no_explosion():
    norms = calm(4)
    norms[-60:-20] *= np.geomspace(1, 1e4, 40)

    assert health(norms) != "Critical"


NOISES = {
    "narrow": lambda random, n: 0.2 * random.standard_normal(n),
    "wide": lambda random, n: random.standard_normal(n),
    "heavy tails": lambda random, n: 0.5 * random.standard_t(3, n),
    "a slow walk back": lambda random, n: _remembering(0.3 * random.standard_normal(n), 0.9),
    "few records": lambda random, n: 0.3 * random.standard_normal(n // 10),
}


def _remembering(new, phi):
    values = np.zeros(len(new))
    for i in range(1, len(new)):
        values[i] = phi * values[i - 1] + new[i]
    return values


@pytest.mark.parametrize("noise", NOISES)
def test_stationary_norms_raise_no_false_alarm_by_this_rule(noise):
    """Two thousand series a kind; before the rule there were none of its alarms either."""
    random = np.random.default_rng(7)
    alarms = 0
    for _ in range(2000):
        values = NOISES[noise](random, 200)
        series = LogNorms(np.arange(len(values), dtype=float), values)
        alarms += risen(series, series, GradientThresholds()) is not None

    assert alarms == 0


def test_norms_that_fall_by_decades_and_rest_there_are_no_explosion():
    random = np.random.default_rng(1)
    for pace in (5, 20, 60):
        course = np.exp(-np.arange(200) / pace) + 1e-4
        assert health(course * np.exp(0.3 * random.standard_normal(200))) != "Critical"
