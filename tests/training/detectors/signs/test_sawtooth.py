import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanes import examples
from simulation import replicates

from difflens.training.detectors.signs.losses import Losses
from difflens.training.detectors.signs.sawtooth import sawtooth


def losses(values):
    return Losses(np.arange(len(values)), np.asarray(values, float), None)


@examples(30)
@given(st.integers(9, 20), st.integers(0, 1000))
def test_the_period_of_sorted_classes_is_measured(period, seed):
    noise = np.exp(0.1 * np.random.default_rng(seed).standard_normal(200))
    found = sawtooth(losses(2.5 * np.exp(-0.5 * (np.arange(200) % period)) * noise))

    assert found
    assert found.period == pytest.approx(period, abs=1)


@replicates
def test_noise_of_small_batches_has_no_teeth(repeats):
    random = np.random.default_rng(2)
    told = 0
    for _ in range(repeats):
        found = sawtooth(losses(2.0 * np.exp(0.8 * random.standard_normal(200))))
        told += found is not None and found.skewness > 0.85

    assert told / repeats <= 0.01


def midway(jumps):
    """Make a loss that is learned, and jumps from step 150 on."""
    values = 0.02 * np.exp(0.1 * np.random.default_rng(4).standard_normal(300))
    values[:40] = np.geomspace(2.0, 0.02, 40)
    for at in jumps:
        values[at : at + 12] = 2.0 * 0.6 ** np.arange(12)
    return losses(values)


def test_teeth_that_begin_midway_are_found_where_they_keep_a_period():
    found = sawtooth(midway([187, 224, 261]))

    assert found
    assert (found.jumps, found.period, found.since, found.is_regular) == (3, 37, 187, True)


def test_leaps_midway_that_keep_no_period_are_no_teeth():
    assert sawtooth(midway([190, 230, 255])) is None
