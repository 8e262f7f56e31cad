"""The interval of a mean holds for series with memory."""

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import ttest_1samp
from simulation import replicates

from difflens.stats.steadiness import correlated_mean


@replicates
@pytest.mark.parametrize("phi", [0.0, 0.5, 0.8])
def test_the_interval_covers_the_mean_of_a_series_with_memory(phi, repeats):
    random = np.random.default_rng(1)
    noise = lfilter([1], [1, -phi], random.standard_normal((400, repeats)), axis=0)[300:]
    found = [correlated_mean(column) for column in noise.T]
    covered = np.mean([each.low <= 0 <= each.high for each in found])

    assert covered >= 0.93 - 3 * (0.95 * 0.05 / repeats) ** 0.5


def test_without_memory_it_is_student_s():
    noise = np.random.default_rng(6).standard_normal(2000)
    found, student = correlated_mean(noise), ttest_1samp(noise, 0).confidence_interval()

    assert (found.low, found.high) == pytest.approx((student.low, student.high), abs=0.01)


def test_a_few_points_have_no_interval_and_a_constant_has_none_to_speak_of():
    assert correlated_mean([1.0, 2.0, 3.0])[:3] == (2.0, None, None)
    assert correlated_mean([0.5] * 20)[:3] == (0.5, 0.5, 0.5)
