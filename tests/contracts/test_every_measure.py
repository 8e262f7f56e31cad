"""What is true of every measure: a frozen record that adds up, and tells plain numbers."""

import json
import math
import pkgutil
import struct
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import difflens.measure
from difflens.core.record import Record
from difflens.measure import kernel
from difflens.measure.kernel.layout import STATE
from difflens.measure.scan import Scan

VALUES = st.lists(
    st.tuples(*[st.floats(-1e3, 1e3, width=32) | st.sampled_from([math.nan, math.inf])] * 2),
    max_size=12,
)


def scan(pairs: list[tuple[float, float]]) -> Scan:
    sides = [struct.pack(f"<{len(pairs)}f", *side) for side in zip(*pairs, strict=True)]
    left, right = sides or (b"", b"")
    state = bytearray(STATE.size)
    kernel.scan(left, right, "F32", "F32", 0.0, state)
    return Scan.of_state(state, (len(pairs),) if pairs else ())


# How a test takes each measure of a list of (left, right) values.
TAKEN: dict[type, Callable[[list[tuple[float, float]]], Any]] = {Scan: scan}


def measures() -> list[type]:
    """Find the measures of the room: records that add up and have figures."""
    modules = pkgutil.iter_modules(difflens.measure.__path__, "difflens.measure.")
    found = {
        each
        for module in modules
        for each in vars(import_module(module.name)).values()
        if isinstance(each, type) and hasattr(each, "figures") and hasattr(each, "__add__")
    }
    return sorted(found, key=lambda each: each.__name__)


every = pytest.mark.parametrize("measure", measures(), ids=lambda each: each.__name__)


def test_every_measure_can_be_taken_by_these_tests():
    assert set(measures()) == set(TAKEN)


@every
def test_a_measure_is_a_frozen_record_whose_zero_is_all_defaults(measure):
    zero = measure()

    assert isinstance(zero, Record)
    with pytest.raises(AttributeError):
        setattr(zero, measure.__struct_fields__[0], 1)


@every
@given(VALUES)
def test_zero_adds_nothing(measure, values):
    taken = TAKEN[measure](values)

    assert alike(taken, measure() + taken)
    assert alike(taken, taken + measure())


@every
@given(VALUES, st.integers(0, 12))
def test_the_parts_add_up_to_the_whole(measure, values, cut):
    take = TAKEN[measure]
    whole, parts = take(values), take(values[:cut]) + take(values[cut:])

    for name in measure.__struct_fields__:
        one, other = getattr(whole, name), getattr(parts, name)
        if isinstance(one, float):
            assert one == pytest.approx(other, rel=1e-9, abs=1e-6, nan_ok=True), name
        elif name != "shape":
            assert one == other, name


@every
@given(VALUES)
def test_figures_are_plain_and_have_no_nan(measure, values):
    figures = TAKEN[measure](values).figures()

    assert all(type(name) is str for name in figures)
    json.dumps(figures, allow_nan=False)


@every
def test_figures_have_the_same_names_whatever_the_values(measure):
    take = TAKEN[measure]

    assert list(take([]).figures()) == list(take([(1.0, 2.0), (math.nan, 0.0)]).figures())


def alike(one: Record, other: Record) -> bool:
    """Equal field by field; NaN counts as itself."""
    return repr(one) == repr(other)
