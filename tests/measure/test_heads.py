import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from difflens.diffs.story import diff
from difflens.measure.heads import head_rows, products, with_bias


def values(array):
    return diff({"w": array}, {"w": array}).values("left", "w")


def test_heads_are_rows_or_columns_of_a_matrix():
    matrix = np.arange(24.0).reshape(4, 6)

    rows = head_rows(values(matrix), (2, 0), 2)
    columns = head_rows(values(matrix), (3, 0), 3, turned=True)

    np.testing.assert_array_equal(rows, [matrix[2:4], matrix[0:2]])
    np.testing.assert_array_equal(columns, [matrix[:, 3:].T, matrix[:, :3].T])


@given(st.integers(0, 10**6))
def test_products_give_norms_and_inner_products_of_circuits(seed):
    random = np.random.default_rng(seed)
    q, k, other_q, other_k = random.normal(size=(4, 1, 3, 7))

    first, second = products(q, other_q), products(k, other_k)

    one, other = q[0].T @ k[0], other_q[0].T @ other_k[0]
    np.testing.assert_allclose((first.left * second.left).sum(), (one**2).sum())
    np.testing.assert_allclose((first.across * second.across).sum(), (one * other).sum(), atol=1e-9)
    np.testing.assert_allclose(first.moved[0], ((other_q - q) ** 2).sum())


@given(st.integers(0, 10**6))
def test_folding_the_norm_and_the_bias_keeps_what_the_layer_computes(seed):
    random = np.random.default_rng(seed)
    heads, bias = random.normal(size=(2, 3, 5)), random.normal(size=(2, 3))
    gain, shift, x = random.normal(size=(3, 5))

    folded = with_bias(heads, bias, gain, shift)

    expected = heads @ (gain * x + shift) + bias
    np.testing.assert_allclose(folded @ np.append(x, 1), expected, atol=1e-9)


def test_one_array_for_both_sides_has_not_moved_at_all():
    rows = np.random.default_rng(0).normal(size=(2, 3, 5))

    found = products(rows, rows)

    assert found.right is found.left is found.across
    assert found.moved.tolist() == [0, 0]


def test_heads_of_different_widths_are_not_multiplied():
    found = products(np.ones((2, 3, 5)), np.ones((2, 3, 4)))

    assert found.across is None
    assert found.moved is None
    assert found.right.shape == (2, 3, 3)
