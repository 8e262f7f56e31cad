import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulation import near, replicates

from difflens.stats.sequential import betting_sequence, confidence_sequence

scores = st.lists(st.floats(0, 1), min_size=1, max_size=60)


@replicates
def test_looking_again_and_again_at_a_fixed_test_raises_the_alarms_of_armitage(repeats):
    """Armitage, McPherson & Rowe (1969): why the other tests of this file are needed."""
    draw = np.random.default_rng(33)
    walks = np.cumsum(draw.normal(size=(repeats, 100)), axis=1) / np.sqrt(np.arange(1, 101))
    expected = {1: 0.05, 2: 0.083, 5: 0.142, 10: 0.193, 20: 0.248, 50: 0.320, 100: 0.374}

    for looks, rate in expected.items():
        alarms = (np.abs(walks[:, :looks]) > 1.96).any(axis=1).mean()
        assert near(alarms, rate, repeats, slack=0.005)


@replicates
def test_a_null_history_monitored_for_a_hundred_looks_alarms_in_at_most_five_percent(repeats):
    draw = np.random.default_rng(34)
    alarms = np.zeros(2)
    for _ in range(repeats):
        values, answers = draw.normal(size=100), draw.integers(0, 2, 100)
        alarms += [
            confidence_sequence(values, start=20).stopped is not None,
            betting_sequence(answers, null=0.5).stopped is not None,
        ]

    assert (alarms / repeats <= 0.05 + 3 * (0.05 * 0.95 / repeats) ** 0.5).all()


@replicates
def test_over_thousands_of_looks_alarms_stay_below_five_percent(repeats):
    draw = np.random.default_rng(35)
    alarms = np.zeros(2)
    for _ in range(repeats):
        values = draw.normal(size=3000)
        alarms += [
            confidence_sequence(values).stopped is not None,
            confidence_sequence(draw.exponential(size=3000), null=1.0).stopped is not None,
        ]

    assert (alarms / repeats <= 0.05 + 3 * (0.05 * 0.95 / repeats) ** 0.5).all()


def test_the_asymptotic_sequence_is_silent_before_its_start_and_then_tightens():
    values = np.random.default_rng(37).normal(3.0, 1.0, 2000)
    found = confidence_sequence(values)

    assert found.low[48] is None
    assert found.low[49] < 3.0 < found.high[49]
    assert found.high[-1] - found.low[-1] < 0.25
    assert found.stopped == 50


def test_values_that_do_not_vary_bound_nothing_asymptotically():
    found = confidence_sequence([1.0] * 100)

    assert set(found.low) == {None}
    assert found.stopped is None


def test_a_far_away_origin_costs_no_digits():
    values = np.random.default_rng(38).normal(size=300)
    near_by, far = confidence_sequence(values), confidence_sequence(values + 1e8)

    assert far.low[-1] - 1e8 == pytest.approx(near_by.low[-1], abs=1e-6)


@given(scores)
def test_bets_bound_the_mean_within_its_range_and_never_widen(values):
    found = betting_sequence(values)

    widths = np.subtract(found.high, found.low)
    assert min(found.low) >= 0
    assert max(found.high) <= 1
    assert (np.diff(widths) <= 1e-12).all()


@given(scores)
def test_turning_scores_around_turns_the_bounds_around(values):
    found = betting_sequence(values)
    turned = betting_sequence([1 - each for each in values])

    assert turned.low == pytest.approx([1 - each for each in found.high], abs=1.1e-3)


@given(scores)
def test_bounded_differences_are_scores_on_another_scale(values):
    found = betting_sequence(values)
    scaled = betting_sequence([2 * each - 1 for each in values], bounds=(-1, 1))

    assert scaled.low == pytest.approx([2 * each - 1 for each in found.low], abs=2.1e-3)


def test_taking_values_up_in_parts_changes_nothing(monkeypatch):
    values = np.random.default_rng(39).random(500)
    whole = betting_sequence(values, null=0.5)
    monkeypatch.setattr("difflens.stats.sequential._STEP", 64)

    assert betting_sequence(values, null=0.5) == whole


def test_where_every_mean_is_ruled_out_one_is_left_standing():
    values = [0.0] * 400 + [1.0] * 400
    found = betting_sequence(values)

    assert found.low[-1] < found.high[-1] <= found.low[-1] + 0.0021


@pytest.mark.parametrize("bounds", [(0.0, 0.5), (0.5, 1.0), (1.0, 0.0)])
def test_values_outside_their_bounds_are_refused(bounds):
    with pytest.raises(ValueError, match="within the bounds"):
        betting_sequence([0.2, 0.8], bounds=bounds)
