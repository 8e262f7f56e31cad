from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import rel_entr

from difflens.diffs.evidence.activations_patterns import entropy, gathered, jensen_shannon, queries

SHARES = arrays(float, (2, 6), elements=st.floats(0.001, 1)).map(
    lambda rows: rows / rows.sum(1, keepdims=True)
)


def test_one_key_against_another_is_one():
    assert jensen_shannon(np.array([1.0, 0, 0, 0]), np.array([0, 0, 1.0, 0])) == 1


def test_four_keys_against_the_first_two_is_a_third_of_a_bit():
    uniform, half = np.full(4, 0.25), np.array([0.5, 0.5, 0, 0])

    assert jensen_shannon(uniform, half) == pytest.approx(0.3113, abs=5e-5)


@given(SHARES)
def test_it_is_the_mean_divergence_from_the_middle_in_bits(rows):
    expected = rel_entr(rows, rows.mean(axis=0)).sum() / 2 / log(2)

    assert jensen_shannon(*rows) == pytest.approx(expected, abs=1e-12)


@given(SHARES)
def test_sides_may_be_swapped_and_nothing_differs_from_itself(rows):
    assert jensen_shannon(rows[0], rows[1]) == jensen_shannon(rows[1], rows[0])
    assert jensen_shannon(rows[0], rows[0]) == 0


def test_entropy_is_that_of_the_keys_looked_at():
    assert entropy(np.array([[0.25] * 4, [1.0, 0, 0, 0]])) == pytest.approx([log(4), 0])


@pytest.mark.parametrize(
    ("mask", "kept"),
    [
        (None, [False, True, True, True]),
        ([1, 1, 1, 0], [False, True, True, False]),
        ([0, 1, 1, 1], [False, False, True, True]),
        ([0, 0, 0, 0], [False] * 4),
    ],
)
def test_padding_and_the_first_position_are_no_queries(mask, kept):
    found = queries(None if mask is None else np.array(mask), 4)

    assert found.tolist() == kept


def attention(seed: int, length: int = 5) -> np.ndarray:
    scores = np.random.default_rng(seed).normal(size=(2, 3, length, length))
    weights = np.exp(scores) * np.tril(np.ones((length, length)))
    return (weights / weights.sum(-1, keepdims=True)).astype(np.float32)


def test_examples_are_compared_head_by_head_with_a_floor_and_a_ceiling():
    same = [{"attentions": attention(seed), "cast": attention(seed)} for seed in range(3)]

    found = gathered(lambda: iter([(each, each) for each in same]))

    assert found.js.shape == (3, 2, 3)
    assert found.js.max() == found.floor.max() == 0
    assert found.ceiling.min() > 0
    sinks = attention(0)[..., 1:, 0].mean(-1)
    np.testing.assert_allclose(found.left_sink[0], sinks, rtol=1e-6)


def test_one_example_has_no_ceiling():
    found = gathered(lambda: iter([({"attentions": attention(0)}, {"attentions": attention(1)})]))

    assert found.ceiling is None
    assert found.floor is None
    assert found.js.min() > 0


@pytest.mark.parametrize(
    "right", [{}, {"attentions": attention(0, 4)}, {"attentions": attention(0)[0]}]
)
def test_sides_that_do_not_show_the_same_attention_are_not_compared(right):
    assert gathered(lambda: iter([({"attentions": attention(0)}, right)])) is None


def test_attention_that_is_not_finite_is_not_compared():
    broken = attention(0)
    broken[0, 0, 2, 1] = np.nan

    assert gathered(lambda: iter([({"attentions": broken}, {"attentions": attention(0)})])) is None
