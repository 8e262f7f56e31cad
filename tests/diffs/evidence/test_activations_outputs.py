import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import softmax
from scipy.stats import entropy

from difflens.diffs.evidence.activations import Compared, compared, kl

LOGITS = arrays(float, (2, 3, 5), elements=st.floats(-20, 20))


def gathered(*examples) -> Compared:
    found = Compared()
    for left, right in examples:
        found.add(compared(left, right))
    return found


@given(LOGITS)
def test_the_divergence_of_predictions_is_scipys(logits):
    expected = entropy(softmax(logits[0], -1), softmax(logits[1], -1), axis=-1)

    np.testing.assert_allclose(kl(*logits), expected, atol=1e-9)


def test_the_error_of_outputs_is_relative_to_the_left():
    left = {"outputs": np.array([[1.0, 2.0], [3.0, 4.0]])}
    right = {"outputs": left["outputs"] * 1.1}

    assert gathered((left, right)).output_error == pytest.approx(0.1)


def test_predictions_are_compared_where_the_mask_says_so():
    left = {"outputs": np.array([[5.0, 0], [5.0, 0], [5.0, 0]]), "mask": np.array([1, 1, 0])}
    right = {"outputs": np.array([[5.0, 0], [0, 5.0], [0, 5.0]])}

    assert gathered((left, right)).per_example("agreement") == (0.5,)


def test_labels_say_how_often_each_side_is_right():
    left = {"outputs": np.array([[5.0, 0], [5.0, 0], [5.0, 0]]), "labels": np.array([0, 1, -100])}
    right = {"outputs": np.array([[0, 5.0], [0, 5.0], [0, 5.0]])}

    assert gathered((left, right)).correct() == ((0.5,), (0.5,))


@pytest.mark.parametrize(
    "right", [{}, {"outputs": np.ones((2, 3))}, {"outputs": np.array([[1, np.nan], [1, 1]])}]
)
def test_outputs_that_cannot_be_compared_give_no_figure(right):
    left = {"outputs": np.ones((2, 2))}

    found = gathered((left, {"outputs": np.ones((2, 2))}), (left, right))

    assert found.output_error is None
    assert found.per_example("kl") is None
    assert found.correct() is None


def test_outputs_of_zeros_have_no_relative_error():
    zeros = {"outputs": np.zeros((2, 2))}

    assert gathered((zeros, zeros)).output_error is None
