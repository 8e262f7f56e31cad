import numpy as np
import pytest
from diffs.methods.quantisation.test_expected import asymmetric, symmetric
from hypothesis import given
from hypothesis import strategies as st

from difflens.diffs.methods.quantisation import gridded, on_grid
from difflens.diffs.story import diff


def gauss(seed=0, shape=(64, 512)):
    return np.random.default_rng(seed).normal(0, 0.02, shape).astype(np.float32)


def found(weight):
    model = {"a.weight": weight}
    return gridded(diff(model, model), "left", 0.99)


@pytest.mark.parametrize("bits", [3, 4])
@pytest.mark.parametrize("group", [128, 64, 512])
@pytest.mark.parametrize("quantise", [symmetric, asymmetric])
def test_floats_on_a_grid_are_seen_with_their_bits_and_group(bits, group, quantise):
    (grid,) = found(quantise(gauss(), bits, group).astype(np.float32))

    assert grid.bits == bits
    assert grid.group in (group, 0 if group == 512 else group)
    assert grid.share >= 0.99


def test_eight_bits_a_row_are_seen_where_the_row_is_long_enough():
    (grid,) = found(symmetric(gauss(shape=(16, 2048)), 8, 2048).astype(np.float32))

    assert (grid.bits, grid.group) == (8, 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_plain_floats_are_on_no_grid(dtype):
    assert found(gauss().astype(dtype)) == []


def test_half_precision_keeps_a_grid_visible():
    (grid,) = found(symmetric(gauss(), 4, 128).astype(np.float16))

    assert (grid.bits, grid.group) == (4, 128)


def test_few_values_off_the_grid_are_no_grid():
    values = np.array([0.0, 1.0, 1.5001, 4.0], np.float32)

    assert not on_grid(np.tile(values, 32), 2, 1e-6)


@given(
    origin=st.floats(-1, 1), step=st.floats(1e-3, 1), places=st.sets(st.integers(0, 15), min_size=3)
)
def test_whole_steps_from_an_origin_are_a_grid_where_two_are_neighbours(origin, step, places):
    places |= {min(places) + 1} if min(places) < 15 else {14}
    values = np.array([origin + step * place for place in sorted(places)])

    assert on_grid(np.repeat(values, 8), 4, 1e-12)
