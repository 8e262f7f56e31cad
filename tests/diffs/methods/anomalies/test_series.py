import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulation import replicates

from difflens.diffs.methods.anomalies.training import largest_jump, spikes


def points(values):
    return tuple((float(step), float(value)) for step, value in enumerate(values))


@given(st.lists(st.floats(0, 1), min_size=25, max_size=60))
def test_a_curve_that_only_falls_has_no_spike(falls):
    values = 100 - np.cumsum(falls)

    assert spikes(points(values), 6.0, 0.05) == []


def test_a_spike_is_found_at_its_step_with_its_height():
    random = np.random.default_rng(0)
    values = 2 + random.normal(0, 0.01, 100)
    values[60] = 4.0
    (found,) = spikes(points(values), 6.0, 0.05)

    assert found.step == 60
    assert found.ratio == pytest.approx(2, rel=0.02)


def test_a_jump_that_stays_is_found_and_one_that_falls_back_is_not():
    random = np.random.default_rng(0)
    values = np.exp(random.normal(0, 0.1, 200))
    stays, falls = values.copy(), values.copy()
    stays[100:] *= 50
    falls[100] *= 50

    assert largest_jump(points(stays), 6.0, 10.0, 100).ratio == pytest.approx(50, rel=0.2)
    assert largest_jump(points(falls), 6.0, 10.0, 100) is None


@pytest.mark.parametrize("length", [0, 1, 19])
def test_a_short_series_tells_nothing(length):
    values = points([1.0] * length)

    assert spikes(values, 6.0, 0.05) == []
    assert largest_jump(values, 6.0, 10.0, 100) is None


def test_a_constant_series_has_neither():
    assert spikes(points([2.0] * 50), 6.0, 0.05) == []
    assert largest_jump(points([2.0] * 50), 6.0, 10.0, 100) is None


@replicates
def test_noise_neither_spikes_nor_jumps(repeats):
    random = np.random.default_rng(1)
    series = [points(np.exp(row)) for row in random.normal(0, 0.3, (repeats, 200))]

    assert sum(bool(spikes(each, 6.0, 0.05)) for each in series) / repeats < 0.05
    assert not any(largest_jump(each, 6.0, 10.0, 100) for each in series)
