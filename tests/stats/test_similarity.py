"""Representations are compared whatever the directions of their axes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanes import examples
from scipy.linalg import orthogonal_procrustes
from scipy.stats import ortho_group

from difflens.stats import similarity
from difflens.stats.similarity import linear_cka, neighbour_overlap, procrustes

SEEDS = st.integers(0, 999)


def gaussian(n: int, p: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, p))


def unbiased_by_definition(x: np.ndarray, y: np.ndarray) -> float:
    """Song et al. (2012) with whole Gram matrices."""

    def hsic(k: np.ndarray, other: np.ndarray) -> float:
        n, one = len(k), np.ones(len(k))
        cross = np.trace(k @ other)
        both = (one @ k @ one) * (one @ other @ one) / ((n - 1) * (n - 2))
        return cross + both - 2 / (n - 2) * (one @ k @ other @ one)

    grams = [side @ side.T for side in (x, y)]
    for gram in grams:
        np.fill_diagonal(gram, 0)
    k, other = grams
    return hsic(k, other) / (hsic(k, k) * hsic(other, other)) ** 0.5


@pytest.mark.parametrize(("n", "p"), [(100, 1000), (1000, 1000), (1000, 100)])
def test_unrelated_rows_are_not_alike(n, p):
    x, y = gaussian(n, p, 1), gaussian(n, p, 2)

    assert linear_cka(x, y) == pytest.approx(0, abs=0.025 if n < p else 0.01)


def test_the_unbiased_estimate_is_zero_on_average():
    pairs = [(gaussian(50, 200, seed), gaussian(50, 200, seed + 100)) for seed in range(100)]
    found = [linear_cka(x, y) for x, y in pairs]

    assert np.mean(found) == pytest.approx(0, abs=0.01)


@examples(30)
@given(SEEDS, st.integers(4, 12), st.integers(2, 12), st.integers(2, 12))
def test_the_short_formula_is_the_definition(seed, n, left, right):
    x, y = gaussian(n, left, seed) + 3, gaussian(n, right, seed + 1000)
    y = y + x[:, :1]

    assert linear_cka(x, y) == pytest.approx(unbiased_by_definition(x, y), rel=1e-6, abs=1e-8)


@examples(20)
@given(SEEDS)
def test_rotation_scale_and_shift_change_nothing(seed):
    x = gaussian(40, 8, seed)
    turned = 4 * x @ ortho_group.rvs(8, random_state=seed) + 7

    assert linear_cka(x, turned) == pytest.approx(1)


def test_a_general_map_does_change_something():
    x = gaussian(1000, 100)

    assert linear_cka(x, x @ gaussian(100, 100, 5)) == pytest.approx(0.72, abs=0.05)


@examples(20)
@given(SEEDS)
def test_sides_may_be_swapped_and_scaled_by_powers_of_two(seed):
    x, y = gaussian(20, 30, seed), gaussian(20, 5, seed + 1)

    assert linear_cka(x, y) == linear_cka(8 * x, 8 * y)
    assert linear_cka(x, y) == pytest.approx(linear_cka(y, x), rel=1e-9)


def test_blocks_of_rows_add_up_to_the_whole(monkeypatch):
    x, y = gaussian(101, 7), gaussian(101, 5, 1)
    whole = linear_cka(x, y), procrustes(x[:, :5], y), neighbour_overlap(x, y, 3, range(101))
    monkeypatch.setattr(similarity, "_BLOCK", 130)
    parts = linear_cka(x, y), procrustes(x[:, :5], y), neighbour_overlap(x, y, 3, range(101))

    assert parts[:2] == pytest.approx(whole[:2])
    assert parts[2] == whole[2]


def test_columns_that_do_not_vary_have_no_similarity():
    x = gaussian(20, 3)

    assert linear_cka(x, np.full((20, 3), 0.1)) is None
    assert linear_cka(np.full((20, 3), 0.1), x) is None
    assert linear_cka(x[:3], x[:3]) is None
    assert procrustes(x, np.full((20, 3), 0.1)) is None


def test_procrustes_is_zero_for_a_rotation_and_the_known_residual_otherwise():
    x, y = gaussian(60, 6), gaussian(60, 6, 1)
    centred, other = x - x.mean(axis=0), y - y.mean(axis=0)
    rotation, _ = orthogonal_procrustes(centred, other)
    expected = np.linalg.norm(centred @ rotation - other) / np.linalg.norm(other)

    assert procrustes(x, x @ ortho_group.rvs(6, random_state=1) + 2) == pytest.approx(0, abs=1e-12)
    assert procrustes(x, y) == pytest.approx(expected)


def test_rotated_rows_keep_all_their_neighbours():
    x = gaussian(200, 16)
    turned = 3 * x @ ortho_group.rvs(16, random_state=2)

    assert neighbour_overlap(x, turned, 10, range(0, 200, 3)).mean == 1.0


def test_unrelated_rows_keep_the_share_that_chance_gives():
    found = neighbour_overlap(gaussian(2000, 64), gaussian(2000, 64, 1), 10, range(400))

    assert found.null == pytest.approx(0.0050, abs=5e-5)
    assert found.mean == pytest.approx(found.null, abs=0.0025)
    assert len(found.shares) == 400


def test_only_rows_that_moved_lose_their_neighbours():
    centres = np.repeat(10 * gaussian(10, 32), 20, axis=0)
    x = centres + 0.1 * gaussian(200, 32, 1)
    y = x.copy()
    y[0] = x[199]
    found = neighbour_overlap(x, y, 5, [0, 50, 100])

    assert found.shares == (0.0, 1.0, 1.0)


def test_a_row_of_zeros_has_neighbours_like_any_other():
    x = gaussian(10, 3)
    x[4] = 0

    assert neighbour_overlap(x, x, 2, [4]).mean == 1.0


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: linear_cka(x, x[:5]), "same rows"),
        (lambda x: linear_cka(x[0], x[0]), "same rows"),
        (lambda x: procrustes(x, x[:, :2]), "3 and 2 columns"),
        (lambda x: neighbour_overlap(x, x, 10, [0]), "10 neighbours of 10 rows"),
        (lambda x: neighbour_overlap(x, x, 2, []), "no row"),
    ],
)
def test_what_cannot_be_compared_is_refused(call, said):
    with pytest.raises(ValueError, match=said):
        call(gaussian(10, 3))
