import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from difflens.testing.histories import falling, network, recorded
from difflens.training.detectors.signs.layers import Layers, initial_scales, is_matrix, median
from difflens.training.records.runs import Layer

FLOATS = st.floats(-1e6, 1e6) | st.just(float("nan"))


@given(arrays(float, (5, 4), elements=FLOATS), st.integers(0, 1))
def test_the_median_past_what_is_no_number_is_that_of_numpy(values, axis):
    with pytest.warns(RuntimeWarning) if np.isnan(values).all(axis=axis).any() else _quiet():
        expected = np.nanmedian(values, axis=axis)

    np.testing.assert_allclose(expected, median(values, axis), rtol=1e-9)


def test_the_median_of_the_smallest_number_is_that_number():
    assert median(np.array([[5e-324], [np.nan]]), axis=0).tolist() == [5e-324]


def _quiet():
    from contextlib import nullcontext

    return nullcontext()


def test_weights_before_a_step_are_those_after_the_step_before():
    weights = np.arange(1.0, 11.0)
    history = recorded(falling(10), weight_l2=weights, update_l2=0.1)

    assert Layers(history).weights[:, 0].tolist() == [1.0, *weights[:-1]]


def test_weights_that_the_first_step_swamped_are_taken_for_those_of_kaiming():
    history = recorded(falling(10), weight_l2=1e6, update_l2=1e6)

    assert Layers(history).weights[0, 0] == pytest.approx((2 * 32) ** 0.5)
    assert initial_scales(Layers(history))[0] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        (Layer("a.weight", (4, 4), "Linear", "weight"), True),
        (Layer("a.bias", (4,), "Linear", "bias"), False),
        (Layer("e.weight", (4, 4), "Embedding", "weight"), False),
        (Layer("n.weight", (4,), "LayerNorm", "weight"), False),
        (Layer("imported/dense"), True),
        (Layer("imported/dense/bias".replace("/", ".")), False),
    ],
)
def test_only_matrices_count(layer, expected):
    assert is_matrix(layer) is expected


def test_columns_stand_in_network_order_whatever_was_recorded_first():
    layers = network()[::-1]

    assert Layers(recorded(falling(5), layers=layers)).named([0]) == ["hidden.0.weight"]


def test_a_kernel_has_its_units_last():
    """Keras and JAX lay a matrix out as (in, out): kaiming's norm is that of the units."""
    layers = tuple(Layer(f"{i}.kernel", (20, 50), role="kernel", kind="Dense") for i in range(2))
    history = recorded(falling(40), layers=layers, weight_l2=10.0, update_l2=1e-3)

    assert initial_scales(Layers(history)).tolist() == pytest.approx([1.0, 1.0])
