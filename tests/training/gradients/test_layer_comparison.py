"""A layer among its peers: magnitudes in logarithms, once over all layers."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from training.gradients.layer_cases import details, noise

from difflens.training.gradients.comparison import comparisons, measure_of, role_of, standings
from difflens.training.gradients.signals import LayerSignal, signals_of_histories


def compared(levels):
    given_in = {f"layer{i}": [float(level)] * 12 for i, level in enumerate(levels)}
    return list(comparisons(signals_of_histories(given_in).layers).values())


@given(some.lists(some.floats(1e-12, 1e12), min_size=2, max_size=12))
def test_the_ratio_is_to_the_median_of_the_others(levels):
    """DC-22: a ratio of magnitudes to the leave-one-out median, in logarithms."""
    for place, found in enumerate(compared(levels)):
        others = np.log(np.delete(levels, place))
        wanted = np.log(levels[place]) - np.median(others)
        assert found.relative_magnitude == pytest.approx(wanted, abs=1e-9)
        assert found.relative_performance == pytest.approx(np.exp(wanted), rel=1e-6)
        assert found.rank_among_layers == 1 + sum(np.log(levels[place]) < others)


def test_layers_of_one_thousandth_are_not_alike_however_small():
    """DC-22: the guard of 1e-8 in the reference makes 1e-12 and 1e-9 similar."""
    small, larger, same = compared([1e-12, 1e-9, 1.1e-9])

    assert small.similar_layers == ()
    assert larger.similar_layers == ("layer2",)
    assert same.similar_count == 1


def test_potential_is_never_claimed():
    """DC-22, DX-04: 0.8, 0.6 and 0.3 were constants."""
    assert all(each.optimization_potential is None for each in compared([1, 2, 3]))


def test_a_layer_that_is_alone_is_compared_with_nobody():
    (found,) = compared([1.0])

    assert found.relative_performance is None
    assert {"relative_performance", "rank_among_layers"} <= {each.field for each in found.missing}


def test_the_nearest_ten_are_named_and_all_are_counted():
    found = compared(np.linspace(1.0, 1.1, 40))[0]

    assert found.similar_count == 39
    assert found.similar_layers == tuple(f"layer{i}" for i in range(1, 11))


def test_layers_of_all_sizes_compare_by_gradient_over_weight():
    """DC-32: a wide layer has a larger norm, and no larger gradient."""
    steps = np.arange(20)
    layers = [
        LayerSignal("a.weight", steps, np.full(20, 10.0), 400, weight_norms=np.full(20, 100.0)),
        LayerSignal("b.weight", steps, np.full(20, 1.0), 4, weight_norms=np.full(20, 10.0)),
    ]

    found = comparisons(layers)

    assert measure_of(layers) == "rms(g)/rms(w)"
    assert found["a.weight"].relative_performance == pytest.approx(1.0)
    unweighted = [each._replace(weight_norms=None) for each in layers]
    assert measure_of(unweighted) == "rms(g)"
    assert comparisons(unweighted)["a.weight"].relative_performance == pytest.approx(1.0)


def test_biases_are_held_against_biases():
    found = details({"a.weight": noise(), "b.weight": noise(seed=1), "a.bias": 1e-5 * noise(),
                     "b.bias": 1e-5 * noise(seed=2)})  # fmt: skip

    assert all(each.health_metrics.overall_health == "Healthy" for each in found.values())
    assert found["a.bias"].comparative_analysis.role == "bias"
    assert role_of(LayerSignal("n.weight", np.array([]), np.array([]), kind="LayerNorm")) == (
        "norm weight"
    )


def test_layers_that_were_recorded_at_other_steps_still_compare():
    steps = np.arange(0, 100, 5)
    layers = [
        LayerSignal("a", np.arange(100), noise(100)),
        LayerSignal("b", steps, 1e-5 * noise(20)),
        LayerSignal("c", np.arange(50), noise(50, seed=3)),
    ]

    assert standings(layers)["b"].share_below(1e-3) == 1.0


def test_the_cost_of_comparing_grows_with_the_layers_and_not_with_their_pairs_of_records():
    """DC-23: statistics of the others are not computed again for every layer."""
    layers = signals_of_histories({f"layer{i}": noise(2000, seed=i) for i in range(300)}).layers

    began = time.process_time()
    comparisons(layers)

    assert time.process_time() - began < 2
