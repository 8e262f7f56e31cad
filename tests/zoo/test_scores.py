"""The arithmetic of the evaluation, on findings made by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from zoo_runs import a_healthy_label, a_label, judged

from zoo.scores import delay, is_ahead, rate, score


def test_recall_and_false_alarms_count_runs_not_alarms():
    found = score([
        judged(a_label(), ("vanishing", 20), ("slow", 30)),
        judged(a_label()),
        judged(a_healthy_label(), ("dead", 5), ("slow", 9)),
        judged(a_healthy_label()),
        judged(a_healthy_label()),
        judged(a_healthy_label()),
    ])  # fmt: skip

    assert (found.recall.hits, found.recall.n) == (1, 2)
    assert (found.false_alarms.hits, found.false_alarms.n) == (1, 4)
    assert (found.precision.hits, found.precision.n) == (1, 2)
    assert found.alarms_per_thousand_steps == pytest.approx(1000 * 2 / 1200)


def test_the_first_alarm_counts_as_first_and_what_stands_at_the_end_as_last():
    both = judged(a_label(), ("dead", 10), ("slow", 20))
    late = both._replace(verdict=type(both.verdict)(both.verdict.alarms, both.verdict.alarms[1:]))
    found = score([both, late])

    assert found.right_first.hits == 0
    assert found.right_last.hits == 1
    assert found.right_among.hits == 2


def test_a_run_that_heals_counts_for_nothing_and_a_dropped_one_is_left_out():
    found = score([
        judged(a_label(heals=True)),
        judged(a_label(dropped=True)),
        judged(a_healthy_label(dropped=True), ("dead", 1)),
    ])  # fmt: skip

    assert found.recall.n == 0
    assert found.recall.value is None
    assert found.false_alarms.n == 0


def test_only_a_critical_alarm_on_a_healthy_run_is_a_critical_false_alarm():
    found = score([
        judged(a_healthy_label(), ("dead", 1)),
        judged(a_healthy_label(), ("dead", 1), critical=True),
    ])  # fmt: skip

    assert (found.critical_alarms.hits, found.critical_alarms.n) == (1, 2)


def test_a_layer_is_located_among_the_first_three_that_are_named():
    label = a_label(layers=("hidden.2.*",))
    names = ("output.weight", "hidden.0.linear.weight", "hidden.2.linear.weight")
    found = score([judged(label, ("vanishing", 3), layers=names), judged(label)])

    assert (found.layer_first.hits, found.layer_third.hits, found.layer_third.n) == (0, 1, 2)


def test_an_alarm_that_never_comes_is_later_than_any_other():
    label = a_label(onset_step=100)
    waits = [judged(label, ("slow", 130)), judged(label, ("slow", 90)), judged(label)]

    assert [delay(each) for each in waits] == [30, 0, float("inf")]
    assert score(waits).delay == 30


def test_a_warning_counts_as_ahead_only_ten_steps_before_and_only_if_it_tells_of_it():
    label = a_label(fault_class="diverging", accept=(), divergence_step=100)

    assert is_ahead(judged(label, ("diverging", 90)))
    assert is_ahead(judged(label, ("lr-high", 60)))
    assert not is_ahead(judged(label, ("diverging", 91)))
    assert not is_ahead(judged(label, ("over-fit", 20)))


def test_a_divergence_before_step_twenty_is_not_asked_of_a_forecast():
    early = judged(a_label(divergence_step=19))
    late = judged(a_label(divergence_step=20))

    assert score([early, late]).ahead.n == 1


@given(st.lists(st.booleans(), min_size=1, max_size=60))
def test_a_rate_lies_within_its_interval(answers):
    found = rate(answers)

    assert found.low <= found.value <= found.high
    assert found.hits == sum(answers)
