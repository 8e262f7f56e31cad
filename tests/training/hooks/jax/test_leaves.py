"""What the jitted step tells of its gradients, against NumPy in 64 bits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from difflens.training.history.frame import is_missing
from difflens.training.hooks.jax import layers_of, statistics
from difflens.training.records.runs import LAYER_FIELDS

TREE = {
    "encoder": [{"kernel": jnp.ones((3, 4)), "bias": jnp.zeros(4)}],
    "head": {"kernel": jnp.ones((4, 2), jnp.bfloat16)},
}


def row(table, field):
    return np.asarray(table)[LAYER_FIELDS.index(field)]


def test_layers_are_named_by_the_way_to_them():
    names = [layer.name for layer in layers_of(TREE)]

    assert names == ["encoder.0.bias", "encoder.0.kernel", "head.kernel"]
    assert layers_of(TREE)[2].dtype == "bfloat16"


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16, jnp.float16])
def test_values_equal_those_of_64_bits(dtype):
    leaf = jnp.asarray(np.random.default_rng(0).normal(0, 1e-3, (257, 63)), dtype)
    exact = np.asarray(leaf.astype(jnp.float32), np.float64)

    table = jax.jit(statistics)({"w": leaf}, {"w": leaf}, {"w": leaf})

    assert row(table, "grad_l2")[0] == pytest.approx(np.linalg.norm(exact), rel=1e-5)
    assert row(table, "grad_mean_abs")[0] == pytest.approx(np.abs(exact).mean(), rel=1e-5)
    assert row(table, "grad_max_abs")[0] == pytest.approx(np.abs(exact).max(), rel=1e-6)
    assert row(table, "update_l2")[0] == pytest.approx(np.linalg.norm(exact), rel=1e-5)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_a_norm_neither_underflows_nor_overflows(scale):
    leaf = jnp.full((100,), scale, jnp.float32)

    assert row(statistics({"w": leaf}), "grad_l2")[0] == pytest.approx(10 * scale, rel=1e-5)


def test_what_is_not_finite_is_counted_and_not_hidden():
    leaf = jnp.array([1.0, jnp.nan, jnp.inf, 0.0])
    table = statistics({"w": leaf})

    assert row(table, "grad_nonfinite")[0] == 2
    assert row(table, "grad_zeros")[0] == 1
    assert not np.isfinite(row(table, "grad_l2")[0])
    assert row(table, "grad_mean_abs")[0] == 0.5


@pytest.mark.parametrize("compiled", [True, False])
def test_rows_that_were_not_handed_in_are_missing(compiled):
    block = (jax.jit(statistics) if compiled else statistics)({"w": jnp.ones(3)})

    assert is_missing(row(block, "weight_l2")).all()
    assert not is_missing(row(block, "grad_l2")).any()


def test_weights_that_are_nan_are_not_missing():
    block = statistics({"w": jnp.ones(3)}, {"w": jnp.full(3, jnp.nan)})

    assert np.isnan(row(block, "weight_l2")).all()
    assert not is_missing(row(block, "weight_l2")).any()
