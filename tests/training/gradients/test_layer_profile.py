"""The depth profile: the slope of ln rms(g)/rms(w) along the network, overall and over time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from training.gradients.layer_cases import noise

from difflens.training.gradients.analyzer import GradientAnalyzer
from difflens.training.gradients.comparison import depth_profile
from difflens.training.gradients.signals import LayerSignal, Signals, signals_of_histories


def network(rate, layers=10, n=100, sigma=0.2):
    """A network whose gradients change by `rate` a layer on the way back to the input."""
    return {
        f"layer{i}": rate ** (layers - 1 - i) * noise(n, seed=i, sigma=sigma) for i in range(layers)
    }


@given(some.floats(0.2, 5.0))
def test_the_slope_is_the_decay_rate_of_a_layer(rate):
    """DC-32: the reference knows no depth at all."""
    found = depth_profile(signals_of_histories(network(rate, sigma=0.01)))

    assert found.slope == pytest.approx(-np.log(rate), abs=0.01)
    assert found.interval.low <= found.slope <= found.interval.high
    assert found.layers == 10


@pytest.mark.parametrize(("rate", "word"), [(0.3, "vanishing"), (3.0, "exploding"), (1.0, "even")])
def test_a_network_that_fades_towards_the_input_is_vanishing(rate, word):
    assert depth_profile(signals_of_histories(network(rate))).verdict == word


def test_levels_without_order_cannot_be_told():
    random = np.random.default_rng(4)
    found = depth_profile(
        signals_of_histories({f"l{i}": np.exp(4 * random.normal()) * noise() for i in range(6)})
    )

    assert found.verdict == "cannot_tell"


def test_the_profile_over_time_shows_when_it_began():
    layers = {
        f"layer{i}": np.r_[noise(100, seed=i), 0.3 ** (9 - i) * noise(100, seed=50 + i)]
        for i in range(10)
    }

    windows = depth_profile(signals_of_histories(layers)).windows

    assert len(windows) == 10
    assert all(abs(each.slope) < 0.1 for each in windows[:5])
    assert all(each.slope == pytest.approx(-np.log(0.3), abs=0.1) for each in windows[5:])
    assert [windows[0].first_step, windows[-1].last_step] == [0, 199]


def test_wide_layers_do_not_look_like_large_gradients():
    steps = np.arange(50)
    layers = tuple(
        LayerSignal(f"{i}.weight", steps, 10.0**i * noise(50, seed=i), depth=i,
                    weight_norms=np.full(50, 10.0**i))
        for i in range(6)
    )  # fmt: skip

    found = depth_profile(Signals(layers, steps))

    assert found.measure == "ln rms(g)/rms(w)"
    assert found.verdict == "even"


def test_three_layers_have_no_profile_and_a_reason():
    found = depth_profile(signals_of_histories(network(0.5, layers=3)))

    assert found.slope is None
    assert {"slope", "interval", "verdict"} == {each.field for each in found.missing}


def test_the_profile_is_part_of_the_network_from_the_standard_depth_on():
    def profile(depth):
        return GradientAnalyzer(depth).analyze_gradients(network(0.3)).network_level_analysis

    assert profile("basic").depth_profile is None
    assert profile("standard").depth_profile.verdict == "vanishing"
    assert "depth_profile" in {each.field for each in profile("basic").missing}
    assert "depth_profile" not in {each.field for each in profile("standard").missing}
