"""Onsets, divergences and the gate, on losses made by hand."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st
from zoo_runs import a_label

from zoo.labels import at_fault, divergence, onset_of, passes_gate


def outcome(losses, validated=()):
    return {"losses": list(losses), "val_losses": dict(validated)}


def test_a_loss_that_comes_back_did_not_diverge():
    assert divergence([1.0, 50.0, 60.0, 0.5]) is None
    assert divergence([1.0, 0.5, *[50.0] * 10]) == 2


def test_a_loss_that_leaps_did_not_diverge_because_the_run_ends_on_a_leap():
    assert divergence([1.0, *[50.0, 0.5] * 20, 50.0, 60.0]) is None
    assert divergence([1.0, *[50.0, 0.5] * 20, 50.0, math.nan]) == 41


def test_a_loss_that_is_lost_diverges_where_it_is_lost_for_good():
    assert divergence([1.0, 1.0, math.nan, 1.0, math.inf, math.nan]) == 4
    assert divergence([math.nan] * 3) == 0
    assert divergence([-1.0, -2.0, *[-9.0, -90.0] * 5]) == 2


@given(st.lists(st.floats(0.1, 2.9), min_size=1, max_size=50))
def test_a_loss_below_three_times_its_start_never_diverges(losses):
    assert divergence([1.0, *losses]) is None


def test_the_onset_is_what_was_injected_or_what_the_run_shows():
    assert onset_of(150, outcome([1.0])) == 150
    assert onset_of("nonfinite", outcome([1.0, 2.0, math.inf, math.nan])) == 2
    assert onset_of("nonfinite", outcome([1.0])) is None
    assert onset_of("lowest-validation", outcome([1.0], {"19": 2.0, "39": 1.0, "59": 3.0})) == 39
    assert onset_of("divergence", outcome([1.0] * 30 + [9.0] * 10)) == 30


def test_a_fault_that_heals_on_two_seeds_of_five_does_not_pass():
    assert passes_gate([True] * 4 + [False])
    assert not passes_gate([True] * 3 + [False] * 2)
    assert not passes_gate([])


def test_a_module_stands_for_its_tensors_and_not_for_its_neighbour():
    assert at_fault(("hidden.1", "hidden.10.linear.weight"), ("hidden.1.*",)) == [True, False]
    assert at_fault(("memory.weight_hh_l0",), ("memory.*",)) == [True]


def test_a_label_is_written_with_its_class_under_that_name():
    label = a_label(accept=("slow",), layers=("hidden.*",))

    assert label.to_dict()["class"] == label.fault_class
