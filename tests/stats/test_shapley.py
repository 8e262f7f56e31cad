"""Shapley shares: exact where every coalition was asked for, near it where not."""

from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflens.stats.shapley import Coalition, coalitions, exact, monotone, normalised, shapley


def asked(players: int, most: int, value, seed: int = 0) -> list[float]:
    everyone = frozenset(range(players))
    sets: list[Coalition] = [frozenset(), everyone, *coalitions(players, most, seed)]
    return shapley(players, {each: value(each) for each in sets})


@given(st.lists(st.floats(0, 1), min_size=16, max_size=16))
def test_all_coalitions_give_the_shares_of_the_definition(values):
    def value(each):
        return values[sum(2**player for player in each)]

    assert asked(4, 100, value) == pytest.approx(exact(4, value), abs=1e-9)


@given(st.lists(st.floats(0, 1), min_size=8, max_size=8))
def test_players_that_only_add_up_get_what_they_bring(parts):
    def value(each):
        return sum(parts[player] for player in each)

    assert asked(8, 20, value) == pytest.approx(parts, abs=1e-9)


@pytest.mark.parametrize("bend", [sqrt, lambda x: x**2, lambda x: min(x, 1.8)])
def test_a_bent_sum_is_shared_within_four_points(bend):
    parts = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.2, 0.9]

    def value(each):
        return bend(sum(parts[player] for player in each))

    true, found = normalised(exact(8, value)), normalised(asked(8, 46, value))

    assert max(abs(one - other) for one, other in zip(true, found, strict=True)) < 0.04


@given(st.lists(st.floats(0.01, 1), min_size=6, max_size=6), st.floats(0.1, 0.9))
def test_what_only_holds_or_not_is_known_from_few_answers(parts, share):
    limit, asked_for = share * sum(parts), []

    def holds(each):
        asked_for.append(each)
        return sum(parts[player] for player in each) >= limit

    values = monotone(6, holds)

    assert len(asked_for) < 50
    assert len(values) == 64
    assert all(values[each] == (sum(parts[p] for p in each) >= limit) for each in values if each)


def test_shares_add_up_whatever_the_values():
    assert sum(asked(8, 40, lambda each: float(len(each) > 3))) == pytest.approx(1)
    assert normalised([0.0, 0.0]) == [0.0, 0.0]
