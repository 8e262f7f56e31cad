"""The shape of the layers' norms: told from tests, and only where there are layers enough."""

import numpy as np
import pytest
from scipy.stats import kurtosis, skew
from simulation import replicates

from difflens.training.gradients.distribution import measure_distribution
from difflens.training.gradients.signals import LayerSignal, Signals
from difflens.training.records.network import DistributionType


def shaped(logs):
    """Describe layers with these ln norms, each with one norm at two steps."""
    steps = np.arange(2)
    layers = [
        LayerSignal(f"layer.{i}", steps, np.exp(np.full(2, log))) for i, log in enumerate(logs)
    ]
    return measure_distribution(Signals(tuple(layers), steps))


def test_moments_are_those_of_the_mean_norms():
    norms = np.array([1.0, 2.0, 4.0, 9.0])
    found = shaped(np.log(norms))

    assert found.mean_gradient_norm == pytest.approx(4.0)
    assert found.gradient_variance == pytest.approx(norms.var())
    assert found.gradient_skewness == pytest.approx(skew(norms))
    assert found.gradient_kurtosis == pytest.approx(kurtosis(norms))
    assert found.layer_gradient_ratios["layer.3"] == pytest.approx(2.25)


@pytest.mark.parametrize("count", [2, 3, 4, 8, 19])
def test_a_handful_of_layers_has_no_shape(count):
    """DC-24: the reference calls any two or three layers multimodal."""
    found = shaped(np.random.default_rng(1).standard_normal(count))

    assert found.distribution_type is None
    assert (
        f"{count} layers" in {each.field: each.why for each in found.missing}["distribution_type"]
    )


@replicates
def test_log_normal_layers_are_called_normal(repeats):
    """DC-24: 39 % of Gaussian sets of eight layers are multimodal in the reference."""
    random = np.random.default_rng(2)
    words = [shaped(random.standard_normal(30)).distribution_type for _ in range(repeats)]

    assert words.count(DistributionType.NORMAL) / repeats >= 0.94
    assert words.count(DistributionType.MULTIMODAL) / repeats <= 0.03


def test_every_shape_can_be_reached():
    """DX-10"""
    random = np.random.default_rng(3)
    found = {
        shaped(random.standard_normal(60)).distribution_type,
        shaped(random.exponential(size=60)).distribution_type,
        shaped(np.append(random.standard_normal(60), [-12.0, 12.0])).distribution_type,
        shaped(np.append(random.standard_normal(30), 9 + random.standard_normal(30)))
        .distribution_type,
        shaped(np.zeros(30)).distribution_type,
    }  # fmt: skip

    assert found == set(DistributionType)


def test_equal_layers_are_degenerate_not_normal():
    """DC-24"""
    assert shaped(np.zeros(3)).distribution_type == DistributionType.DEGENERATE


def test_a_uniform_spread_is_not_many_humps():
    """DC-24: its kurtosis is -1.2."""
    spread = shaped(np.random.default_rng(4).uniform(0, 3, 100))

    assert spread.distribution_type != DistributionType.MULTIMODAL


def test_norms_that_are_not_finite_are_counted_and_left_out():
    steps = np.arange(3)
    layers = (
        LayerSignal("fine", steps, np.array([1.0, 2.0, 3.0])),
        LayerSignal("odd", steps, np.array([2.0, np.nan, np.inf])),
        LayerSignal("lost", steps, np.array([np.nan] * 3)),
    )
    found = measure_distribution(Signals(layers, steps))

    assert (found.n, found.nonfinite) == (2, 5)
    assert found.mean_gradient_norm == 2.0
    assert found.layer_gradient_ratios == {"fine": 1.0, "odd": 1.0, "lost": None}
