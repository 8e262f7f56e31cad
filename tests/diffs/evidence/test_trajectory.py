"""Trajectories: squared distances and norms as NumPy has them, from which all else follows."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from difflens.diffs.evidence.trajectory import trajectory
from difflens.diffs.story import diff

VALUES = st.floats(-100, 100, width=32)
SERIES = st.integers(3, 5).flatmap(
    lambda length: st.fixed_dictionaries(
        {name: arrays(np.float32, (length, *shape), elements=VALUES)
         for name, shape in {"w": (2, 3), "b": (3,)}.items()}
    )
)  # fmt: skip


def made(models):
    pairs = {(i, j): diff(models[i], models[j], always=True)
             for i, j in combinations(range(len(models)), 2)}  # fmt: skip
    names = [f"point {i}" for i in range(len(models))]
    return trajectory(names, [None] * len(models), pairs)


@given(SERIES)
def test_distances_and_norms_are_those_of_numpy(series):
    length = len(series["w"])
    found = made([{name: values[i] for name, values in series.items()} for i in range(length)])

    for name, values in series.items():
        wide = values.astype(np.float64).reshape(length, -1)
        apart = ((wide[:, None] - wide[None]) ** 2).sum(-1)
        assert np.array(found.distances[name]) == pytest.approx(apart, rel=1e-9, abs=1e-12)
        assert np.array(found.norms[name]) == pytest.approx((wide**2).sum(1), rel=1e-9, abs=1e-12)


def test_inner_products_of_moves_follow_by_polarisation():
    chance = np.random.default_rng(0)
    points = chance.normal(size=(4, 50))
    far = np.array(made([{"w": each} for each in points]).distances["w"])
    moves = np.diff(points, axis=0)

    # 2 <W1 - W0, W3 - W2> = |W3 - W0|² + |W2 - W1|² - |W2 - W0|² - |W3 - W1|²
    twice = far[3, 0] + far[2, 1] - far[2, 0] - far[3, 1]
    assert twice / 2 == pytest.approx(moves[0] @ moves[2], rel=1e-9)


def test_a_tensor_that_is_not_everywhere_the_same_kind_is_left_out():
    models = [
        {"w": np.ones(3), "grown": np.ones(2), "count": np.array([1])},
        {"w": np.ones(3), "grown": np.ones(3), "count": np.array([2]), "late": np.ones(1)},
        {"w": np.zeros(3), "grown": np.ones(3), "count": np.array([3]), "late": np.ones(1)},
    ]
    found = made(models)

    assert found.distances.keys() == {"w"}
    assert found.distances["w"] == ((0.0, 0.0, 3.0), (0.0, 0.0, 3.0), (3.0, 3.0, 0.0))
    assert found.norms["w"] == (3.0, 3.0, 0.0)


def test_what_is_not_finite_is_counted_by_point_and_measured_nowhere():
    models = [
        {"w": np.ones(2), "x": np.ones(2)},
        {"w": np.array([np.nan, 1]), "x": np.ones(2)},
        {"w": np.array([np.inf, np.inf]), "x": np.zeros(2)},
    ]
    found = made(models)

    assert found.nonfinite == (0, 1, 2)
    assert found.distances.keys() == {"x"}


def test_names_are_those_of_the_last_point():
    models = [{"module.w": np.ones(2)}, {"module.w": np.zeros(2)}, {"w": np.full(2, 3.0)}]

    assert made(models).distances.keys() == {"w"}
