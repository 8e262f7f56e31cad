"""Calls on a cluster: results in order, a bounded number at a time, and twins for what is late."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflens.engines._turns import Turns


class Pretended:
    """A cluster with a clock of its own: each call is its number of ticks, one per slot."""

    def __init__(self, slots, twins=()):
        self.slots, self.twins = slots, dict(twins)
        self.clock, self.started, self.most, self.cancelled = 0.0, [], 0, []
        self.ends, self.waiting = {}, []

    def start(self, call):
        """Begin it as soon as a slot is free."""
        number = len(self.started)
        place, ticks = call
        if place in [each for each, _ in self.started]:
            ticks = self.twins.get(place, ticks)
        self.started.append(call)
        self.waiting.append((number, ticks))
        self._fill()
        self.most = max(self.most, len(self.ends) + len(self.waiting))
        return number

    def _fill(self):
        while self.waiting and len(self.ends) < self.slots:
            number, ticks = self.waiting.pop(0)
            self.ends[number] = self.clock + ticks

    def wait(self, calls, timeout):
        """Go on until the first is done, or the time is over."""
        known = {call: self.ends[call] for call in calls if call in self.ends}
        first = min(known, key=known.get)
        if timeout is not None and known[first] > self.clock + timeout:
            self.clock += timeout
            return []
        self.clock = max(self.clock, known[first])
        del self.ends[first]
        self._fill()
        return [first]

    def result(self, number):
        """Say which call it was."""
        return self.started[number][0]

    def cancel(self, number):
        """Free the slot."""
        self.cancelled.append(number)
        self.ends.pop(number, None)
        self.waiting = [each for each in self.waiting if each[0] != number]
        self._fill()


@pytest.fixture
def clocked(monkeypatch):
    def make(cluster):
        monkeypatch.setattr("difflens.engines._turns.monotonic", lambda: cluster.clock)
        return cluster

    return make


@given(
    ticks=st.lists(st.floats(0.1, 100), max_size=60),
    slots=st.integers(1, 8),
    most=st.integers(1, 20),
    late=st.floats(0.5, 5),
)
def test_results_come_in_order_and_never_too_many_are_out(ticks, slots, most, late):
    cluster = Pretended(slots)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("difflens.engines._turns.monotonic", lambda: cluster.clock)
        results = list(Turns(cluster, slots, most, late).results(enumerate(ticks)))

    assert results == list(range(len(ticks)))
    assert cluster.most <= 2 * most


def test_a_call_that_is_late_gets_one_twin_and_the_first_counts(clocked):
    cluster = clocked(Pretended(2, {3: 1}))
    calls = [(place, 1000 if place == 3 else 1) for place in range(6)]

    assert list(Turns(cluster, 2, 8, 3).results(calls)) == list(range(6))
    assert [call[0] for call in cluster.started].count(3) == 2
    assert cluster.cancelled == [3]
    assert cluster.clock < 20


def test_nothing_gets_a_twin_while_there_is_other_work(clocked):
    cluster = clocked(Pretended(2))
    calls = [(0, 50), *((place, 1) for place in range(1, 60))]

    assert list(Turns(cluster, 2, 100, 3).results(calls)) == list(range(60))
    assert len(cluster.started) == 60


def test_whoever_stops_early_takes_back_what_is_out(clocked):
    cluster = clocked(Pretended(2))
    results = Turns(cluster, 2, 4, 3).results((place, 1) for place in range(100))

    assert next(results) == 0
    results.close()
    assert len(cluster.started) == 4
    assert sorted(cluster.cancelled) == [1, 2, 3]


def test_no_list_of_all_calls_is_held(clocked):
    cluster = clocked(Pretended(2))
    drawn = []
    calls = (drawn.append(place) or (place, 1) for place in range(10_000))

    for place in Turns(cluster, 2, 8, 3).results(calls):
        assert len(drawn) <= place + 10
