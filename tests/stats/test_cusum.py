"""Cumulative sums alarm early on shifts and rarely on noise, and say how rarely."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import lfilter
from simulation import replicates

from difflens.stats.change_points import baseline, cusum, run_length


@pytest.mark.parametrize(("h", "in_control", "shifted"), [(4.0, 168, 8.4), (5.0, 465, 10.4)])
def test_run_lengths_are_those_of_montgomerys_table(h, in_control, shifted):
    assert run_length(0.5, h) == pytest.approx(in_control, abs=0.6)
    assert run_length(0.5, h, shift=1.0) == pytest.approx(shifted, abs=0.05)
    assert run_length(0.5, h, shift=-1.0) == pytest.approx(run_length(0.5, h, shift=1.0))


@replicates
@pytest.mark.parametrize(("shift", "h"), [(1.0, 4.0), (1.0, 5.0)])
def test_simulated_runs_are_as_long_as_computed(shift, h, repeats):
    random = np.random.default_rng(0)
    first = [cusum(random.normal(shift, 1, 150), 0, 1, h=h).alarms[0] + 1 for _ in range(repeats)]
    error = np.std(first) / repeats**0.5

    assert np.mean(first) == pytest.approx(run_length(0.5, h, shift), abs=3.5 * error)


def test_a_shift_is_alarmed_and_noise_before_it_is_not():
    values = np.concatenate([np.tile([0.5, -0.5], 20), np.full(20, 2.0)])
    found = cusum(values, 0, 1)

    assert found.alarms == (43, 47, 51, 55, 59)
    assert found.in_control_run_length == run_length(0.5, 5.0)
    assert len(found.up) == len(found.down) == 60


@given(st.lists(st.integers(-40, 40).map(lambda x: x / 8), max_size=40))
def test_turning_the_metric_over_swaps_the_sums(values):
    found, mirrored = cusum(values, 0, 1, h=4.0), cusum([-x for x in values], 0, 1, h=4.0)

    assert (found.up, found.down) == (mirrored.down, mirrored.up)
    assert found.alarms == mirrored.alarms


@given(st.lists(st.integers(-40, 40).map(float), max_size=30))
def test_the_unit_of_the_metric_does_not_matter(values):
    assert cusum(values, 1, 2) == cusum([4 * x for x in values], 4, 8)


def test_autocorrelated_noise_alarms_no_more_often_once_it_is_whitened():
    values = lfilter([1], [1, -0.7], np.random.default_rng(1).standard_normal(4000))
    quiet = baseline(values)
    plain = cusum(values, quiet.mean, quiet.deviation)
    whitened = cusum(values, quiet.mean, quiet.deviation, phi=quiet.phi)

    assert quiet.phi == pytest.approx(0.7, abs=0.05)
    assert len(plain.alarms) > 10 * len(whitened.alarms)
    assert len(whitened.alarms) <= 20


def test_a_baseline_of_independent_values_needs_no_whitening():
    values = np.random.default_rng(1).normal(7, 2, 400)
    found = baseline(values)

    assert (found.mean, found.deviation) == pytest.approx((7, 2), abs=0.3)
    assert (found.phi, found.n) == (0.0, 400)


@pytest.mark.parametrize("values", [[1.0, 2.0] * 9, [3.0] * 40])
def test_a_short_or_constant_baseline_is_none(values):
    assert baseline(values) is None


def test_without_deviation_there_is_nothing_to_watch_by():
    with pytest.raises(ValueError, match="does not vary"):
        cusum([1.0], 0, 0)
    assert cusum([], 0, 1)[:3] == ((), (), ())
