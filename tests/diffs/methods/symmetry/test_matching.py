from itertools import permutations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from difflens.diffs.methods.symmetry.matching import best_heads, best_order, clear_order, match_rows

SMALL = st.integers(1, 5).flatmap(
    lambda n: arrays(np.float64, (n, n), elements=st.integers(-9, 9).map(float))
)


@given(gain=SMALL)
def test_no_order_gains_more_than_the_one_found(gain):
    n = len(gain)
    best = max(sum(gain[i, p[i]] for i in range(n)) for p in permutations(range(n)))

    order = best_order(gain)

    assert sorted(order) == list(range(n))
    assert gain[np.arange(n), order].sum() == best


def test_units_that_are_all_alike_stay_where_they_are():
    assert np.array_equal(best_order(np.ones((4, 4))), np.arange(4))


def test_heads_stay_with_their_kv_group():
    random = np.random.default_rng(0)
    heads, pairs = random.normal(size=(6, 6)), random.normal(size=(3, 3))

    order, groups = best_heads(heads, pairs)

    found = heads[np.arange(6), order].sum() + pairs[np.arange(3), groups].sum()
    best = max(
        pairs[np.arange(3), outer].sum()
        + sum(
            max(heads[2 * g, 2 * h + a] + heads[2 * g + 1, 2 * h + 1 - a] for a in (0, 1))
            for g, h in enumerate(outer)
        )
        for outer in map(list, permutations(range(3)))
    )
    assert np.array_equal(order // 2, np.repeat(groups, 2))
    assert np.isclose(found, best)


def test_a_clear_order_is_none_where_two_rows_want_one_partner():
    left = np.array([[1.0, 0.0], [0.9, 0.1]])

    assert clear_order(left, np.array([[2.0, 0.0], [0.0, 0.1]])) is None


def test_a_clear_order_is_that_of_the_search():
    random = np.random.default_rng(1)
    left = random.normal(size=(3000, 16))
    left /= np.linalg.norm(left, axis=1, keepdims=True)
    order = random.permutation(3000)
    right = np.empty_like(left)
    right[order] = left

    assert np.array_equal(clear_order(left, right), order)


def test_rows_match_by_direction_not_by_length():
    rows = np.eye(3)

    assert match_rows(rows, np.diag([5.0, 1.0, 9.0])[[2, 0, 1]]).tolist() == [1, 2, 0]
