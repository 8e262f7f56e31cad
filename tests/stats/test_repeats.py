import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflens.stats.clusters import average_repeats

answers = st.lists(st.tuples(st.sampled_from("abcd"), st.floats(-5, 5)), min_size=1, max_size=20)


@given(answers)
def test_each_question_gets_the_mean_of_its_answers(pairs):
    questions, scores = zip(*pairs, strict=True)
    found = average_repeats(questions, scores)

    for question, mean, count in zip(found.questions, found.means, found.repeats, strict=True):
        own = [score for name, score in pairs if name == question]
        assert (mean, count) == (pytest.approx(np.mean(own), abs=1e-12), len(own))


def test_questions_keep_the_order_in_which_they_came():
    assert average_repeats(["z", "a", "z"], [1, 2, 3]).questions == ("z", "a")


def test_single_answers_tell_nothing_of_the_variance_within():
    assert average_repeats(["a", "b"], [1.0, 2.0]).within is None


def test_the_variance_within_is_over_questions_that_were_asked_again():
    found = average_repeats(["a", "a", "b", "c", "c"], [0.0, 2.0, 9.0, 1.0, 1.0])

    assert found.within == pytest.approx((2.0 + 0.0) / 2)
