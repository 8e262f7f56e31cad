"""The search: a smallest set for every monotone question, by few questions in a good order."""

from math import ceil, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflens.repair.blame.search import Search


class Asked:
    """Answers which set does it, by a rule, and counts what was asked."""

    def __init__(self, rule):
        self.rule, self.sets = rule, set()

    def __call__(self, sets):
        for place, members in enumerate(sets):
            self.sets.add(frozenset(members))
            if self.rule(frozenset(members)):
                return place
        return None


def found(rule, units, outstanding=0):
    asked = Asked(rule)
    search = Search(asked, units, outstanding, lambda _: None)
    return frozenset(search.smallest()), asked


@given(
    alternatives=st.lists(
        st.frozensets(st.integers(0, 19), min_size=1, max_size=4), min_size=1, max_size=3
    ),
    outstanding=st.integers(0, 20),
)
def test_what_is_found_does_it_and_has_no_unit_to_spare(alternatives, outstanding):
    def rule(members):
        return any(each <= members for each in alternatives)

    chosen, _ = found(rule, 20, outstanding)

    assert rule(chosen)
    assert not any(rule(chosen - {each}) for each in chosen)


@pytest.mark.parametrize("units", [100, 128, 199])
def test_a_single_culprit_takes_one_question_in_front_and_two_logarithms_at_the_end(units):
    assert len(found(lambda members: 0 in members, units)[1].sets) == 1
    for place in range(units):
        chosen, asked = found(lambda members, place=place: place in members, units)

        assert chosen == {place}
        assert len(asked.sets) <= 2 * ceil(log2(units))


def test_two_suspicious_culprits_take_three_questions():
    chosen, asked = found(lambda members: {0, 1} <= members, 128, outstanding=2)

    assert chosen == {0, 1}
    assert asked.sets == {frozenset({0}), frozenset({0, 1}), frozenset({1})}


def test_a_search_that_is_not_worth_more_ends():
    asked = Asked(lambda members: len(members) > 60)
    search = Search(asked, 128, 0, lambda _: None)

    assert search.smallest(go_on=lambda _, length: length <= 4) is None
    assert len(asked.sets) < 2 * log2(128)


def test_innocents_that_came_along_are_left_out():
    # Half of a pair of innocents breaks it: not monotone, so that they stick at first.
    def rule(members):
        return 5 in members and len(members & {0, 1}) != 1

    search = Search(Asked(rule), 20, 0, lambda _: None)

    assert search.pruned((0, 1, 5)) == (5,)
