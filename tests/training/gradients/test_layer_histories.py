"""Histories of one layer: bounded, on real steps, JSON both ways."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from difflens.core.errors import InvalidConfig, SnapshotError
from difflens.training.gradients.histories import GradientFlow, GradientHistory
from difflens.training.gradients.signals import signals_of_histories


def filled(steps, norms, length=1000):
    history = GradientHistory.new("fc", length)
    for step, norm in zip(steps, norms, strict=True):
        history.add_gradient_flow(GradientFlow(layer_name="fc", step=step, gradient_norm=norm))
    return history


def test_a_full_history_drops_the_oldest_and_counts_them():
    """DX-06: histories are bounded, and say what went."""
    history = filled(range(10), range(10), length=4)

    assert history.gradient_norms == [6, 7, 8, 9]
    assert history.step_numbers == [6, 7, 8, 9]
    assert history.dropped == 6


def test_a_slope_is_per_step_and_not_per_record():
    """DC-30: irregular logging does not change the slope."""
    steps = [0, 1, 2, 50, 100, 101, 300]
    history = filled(steps, [1 + 0.5 * step for step in steps])

    assert history.get_trend_slope() == pytest.approx(0.5)


def test_a_slope_needs_three_finite_norms():
    assert filled([0, 1], [1.0, 2.0]).get_trend_slope() is None
    assert filled([0, 1, 2], [1.0, float("nan"), 2.0]).get_trend_slope() is None


@given(some.lists(some.floats(0, 1e6), min_size=3, max_size=30))
def test_the_slope_is_that_of_least_squares(norms):
    steps = np.cumsum(np.arange(1, len(norms) + 1))

    slope = filled(steps.tolist(), norms).get_trend_slope()

    assert slope == pytest.approx(np.polyfit(steps, norms, 1)[0], rel=1e-6, abs=1e-6)


def test_steps_that_do_not_ascend_are_refused():
    history = filled([5], [1.0])

    with pytest.raises(SnapshotError, match="step 5 of 'fc' comes after step 5"):
        history.add_gradient_flow({"layer_name": "fc", "step": 5, "gradient_norm": 1.0})


def test_a_record_of_another_layer_is_refused():
    with pytest.raises(SnapshotError, match="'other'"):
        filled([], []).add_gradient_flow({"layer_name": "other", "step": 0, "gradient_norm": 1})


@pytest.mark.parametrize("norm", [-1.0, -1e-300])
def test_a_norm_below_zero_is_refused(norm):
    with pytest.raises(SnapshotError, match="gradient_norm"):
        GradientFlow(layer_name="fc", step=0, gradient_norm=norm)


@pytest.mark.parametrize("length", [0, -3, 2.5, True])
def test_a_length_that_is_none_is_refused(length):
    with pytest.raises(InvalidConfig, match="max_history_length"):
        GradientHistory("fc", length)


@given(some.lists(some.floats(0) | some.just(float("nan")), max_size=12))
def test_json_gives_the_same_history_back(norms):
    """DX-05, also where norms are not finite."""
    history = filled(range(len(norms)), norms, length=5)

    again = GradientHistory.from_json(history.to_json())

    assert again == history
    assert again.dropped == history.dropped


def test_json_that_is_no_history_is_refused():
    for text in (b"[]", b"{}", b"nonsense", b'{"layer_name": "a", "flows": [1]}'):
        with pytest.raises(SnapshotError, match="not a Gradient"):
            GradientHistory.from_json(text)


def test_sequences_arrays_maps_and_histories_read_alike():
    norms = [1.0, 2.0, 4.0]
    forms = [norms, tuple(norms), np.array(norms, np.float32), filled(range(3), norms),
             filled(range(3), norms).to_dict()]  # fmt: skip

    read = [signals_of_histories({"fc": each}).layers[0] for each in forms]

    assert all(each.norms.tolist() == norms for each in read)
    assert all(each.steps.tolist() == [0, 1, 2] for each in read)


def test_what_was_not_recorded_is_not_a_norm():
    signal = signals_of_histories({"fc": [1.0, None, 3.0]}).layers[0]

    assert signal.norms.tolist() == [1.0, 3.0]
    assert signal.steps.tolist() == [0, 2]


@pytest.mark.parametrize(
    ("given_in", "said"),
    [
        ({"fc": [1.0, -2.0]}, "norm 1 is -2, below zero"),
        ({"fc": [[1.0], [2.0]]}, "2 dimensions"),
        ({"fc": ["a"]}, "sequence of numbers"),
        ({"fc": 3.0}, "sequence of numbers"),
        ({1: [1.0]}, "names are text"),
        ([[1.0]], "map layers"),
    ],
)
def test_what_is_no_series_of_norms_is_refused_in_one_line(given_in, said):
    with pytest.raises(SnapshotError, match=said):
        signals_of_histories(given_in)
