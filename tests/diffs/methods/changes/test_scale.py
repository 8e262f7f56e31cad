import ml_dtypes
import numpy as np
import pytest
from diffs.analyses.small import changed, decoder

from difflens.diffs.analyses import analyse
from difflens.diffs.story import diff


def scale(left, right):
    evidence = analyse("change_summary", diff(left, right)).fields["evidence"]
    return evidence.get("uniform_scale")


@pytest.mark.parametrize("c", [1.1, 0.5, -1.0, 1.0001, 0.999, 1000.0])
def test_the_factor_is_found(c):
    model = decoder(dtype=np.float64)

    found = scale(model, changed(model, lambda value: value * c, ""))

    assert found["c"] == pytest.approx(c, rel=1e-9)
    assert found["residual"] < 1e-3


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_rounding_to_a_coarse_dtype_does_not_hide_a_scale(dtype):
    model = decoder(dtype=dtype)

    found = scale(model, changed(model, lambda value: value.astype(np.float32) * 1.1, ""))

    assert found["c"] == pytest.approx(1.1, rel=1e-2)


def test_a_change_as_small_as_rounding_is_not_called_a_scale():
    model = decoder(dtype=ml_dtypes.bfloat16)

    assert scale(model, changed(model, lambda value: value.astype(np.float32) * 1.003, "")) is None


def test_two_factors_are_no_uniform_scale():
    model = decoder()
    other = changed(model, lambda value: value * np.float32(1.1), "mlp")

    assert scale(model, changed(other, lambda value: value * np.float32(1.2), "attn")) is None


def test_a_scale_with_noise_is_no_scale():
    model = decoder()
    noise = np.random.default_rng(1)
    other = changed(model, lambda value: value * 1.1 + noise.normal(0, 1e-4, value.shape), "")

    assert scale(model, other) is None


def test_one_number_that_changed_is_no_scale():
    assert scale({"a": np.ones(1, np.float32)}, {"a": np.full(1, 2, np.float32)}) is None


def test_zeros_are_their_own_multiple():
    model = decoder() | {"zero.weight": np.zeros(8, np.float32)}

    assert scale(model, changed(model, lambda value: value * np.float32(-2), ""))["c"] == -2


def test_zeros_that_became_something_are_no_multiple():
    model = decoder() | {"zero.weight": np.zeros(8, np.float32)}
    other = changed(model, lambda value: value * np.float32(2), "")

    assert scale(model, other | {"zero.weight": np.ones(8, np.float32)}) is None


def test_a_nan_among_the_values_is_no_scale():
    model = decoder()
    other = changed(model, lambda value: value * np.float32(2), "")
    other["lm_head.weight"][0, 0] = np.nan

    assert scale(model, other) is None


def test_scaled_integers_are_not_called_a_scale():
    model = {"a.weight": np.arange(8, dtype=np.int32)}

    assert scale(model, {"a.weight": model["a.weight"] * 2}) is None
