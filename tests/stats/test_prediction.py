"""A new value is held against what its history can promise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulation import near, replicates

from difflens.stats.forecast import against_history, against_trend

SIZES = [3, 5, 10, 30]
NAIVE = {3: 0.23, 5: 0.16, 10: 0.09, 30: 0.07}
PAST = st.lists(st.integers(-50, 50).map(float), min_size=3, max_size=12)


def histories(n: int, repeats: int) -> list[np.ndarray]:
    return list(np.random.default_rng(n).standard_normal((repeats, n + 1)))


@replicates
@pytest.mark.parametrize("n", SIZES)
def test_a_value_of_the_same_kind_is_called_strange_one_time_in_twenty(n, repeats):
    alarms = [against_history(each[:-1], each[-1]).p <= 0.05 for each in histories(n, repeats)]

    assert near(np.mean(alarms), 0.05, repeats)


@pytest.mark.parametrize("n", SIZES)
def test_two_deviations_would_call_more_often_than_they_say(n):
    every = histories(n, 4000)
    alarms = [abs(each[-1] - each[:-1].mean()) > 1.96 * each[:-1].std(ddof=1) for each in every]

    assert near(np.mean(alarms), NAIVE[n], 4000, slack=0.01)


@replicates
def test_a_drifting_history_is_regressed_first(repeats):
    times = np.arange(10)
    noise = np.random.default_rng(0).standard_normal((repeats, 11))
    alarms = [
        against_trend(times, 3 * times + each[:-1], 10, 30 + each[-1]).p <= 0.05 for each in noise
    ]

    assert near(np.mean(alarms), 0.05, repeats)


@given(PAST, st.integers(-50, 50).map(float))
def test_a_value_lies_outside_the_interval_exactly_when_p_is_small(past, value):
    found = against_history(past, value)

    assert (found.p < 0.05) == (not found.low <= value <= found.high)


@given(PAST, st.integers(-50, 50).map(float))
def test_turning_the_sign_of_all_values_turns_the_sign_of_t(past, value):
    found, mirrored = against_history(past, value), against_history([-x for x in past], -value)

    assert found.p == mirrored.p
    assert (found.t or 0) == -(mirrored.t or 0)


def test_the_formula_is_that_of_a_prediction_interval():
    found = against_history([1.0, 2.0, 3.0, 4.0], 5.0)

    assert found.t == pytest.approx(2.5 / (np.std([1, 2, 3, 4], ddof=1) * 1.25**0.5))
    assert (found.df, found.n) == (3, 4)


@pytest.mark.parametrize("past", [[], [1.0], [1.0, 2.0]])
def test_fewer_than_three_past_values_give_no_answer(past):
    assert against_history(past, 1.0) is None
    assert against_trend(range(len(past)), past, 9, 1.0) is None


def test_a_history_without_noise_excludes_all_but_itself():
    assert against_history([0.1] * 7, 0.1)[:3] == (None, 6, 1.0)
    assert against_history([0.1] * 7, 0.2).p == 0.0


def test_a_history_on_a_line_excludes_all_but_the_line():
    times, past = range(5), [0.1 * x for x in range(5)]

    assert against_trend(times, past, 5, 0.5).p == 1.0
    assert against_trend(times, past, 5, 0.6).p == 0.0
    assert against_trend([2] * 5, past, 5, 0.5) is None


def test_strange_input_is_refused():
    with pytest.raises(ValueError, match="not finite"):
        against_history([1.0, 2.0, 3.0], float("nan"))
    with pytest.raises(ValueError, match="not finite"):
        against_history([1.0, 2.0, float("inf")], 1.0)
    with pytest.raises(ValueError, match="2 times for 4 past values"):
        against_trend([1, 2], [1.0, 2.0, 3.0, 4.0], 5, 5.0)
