"""Axes and curves: round ticks, everything inside, peaks survive."""

import re
from math import isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflens.render.document.drawing import Axis, Series, chart

floats = st.floats(width=64)


@pytest.mark.parametrize(
    ("low", "high", "log", "texts"),
    [
        (0, 100, False, ["0", "50", "100"]),
        (0, 7, False, ["0", "2", "4", "6"]),
        (-1, 1, False, ["-1", "-0.5", "0", "0.5", "1"]),
        (1e-6, 1, True, ["1e-6", "1e-4", "1e-2", "1"]),
        (0.015, 0.06, True, ["0.02", "0.05"]),
        (0.031, 0.032, True, ["0.031", "0.032"]),
        (5, 5, False, ["5"]),
    ],
)
def test_ticks_are_round_numbers(low, high, log, texts):
    assert [text for _, text in Axis(low, high, 0, 100, log).ticks()] == texts


@given(st.lists(st.tuples(floats, floats), max_size=20))
def test_a_curve_stays_inside_whatever_its_numbers_are(values):
    xs, ys = [x for x, _ in values], [y for _, y in values]

    drawn = chart("t", "c", [Series(xs, ys)])

    if drawn is None:
        assert not any(map(isfinite, xs)) or not any(map(isfinite, ys))
        return
    for path in drawn.paths:
        for x, y in re.findall(r"([\d.-]+) ([\d.-]+)", path.d):
            assert 0 <= float(x) <= drawn.width
            assert 0 <= float(y) <= drawn.height


def test_a_long_curve_keeps_its_peak():
    ys = [1.0] * 100_000
    ys[54_321] = 3.0

    drawn = chart("t", "c", [Series(range(len(ys)), ys)])

    assert drawn is not None
    assert len(drawn.paths[0].d) < 10_000
    heights = [float(y) for _, y in re.findall(r"([\d.-]+) ([\d.-]+)", drawn.paths[0].d)]
    assert min(heights) < max(heights) - 100


def test_a_mark_is_where_its_number_is():
    drawn = chart("t", "c", [Series([0, 10], [1, 2], "loss")], marks=[(5, "here")])

    assert drawn is not None
    (edge,) = [stroke for stroke in drawn.strokes if stroke.kind == "edge"]
    (left, _), (right, _) = re.findall(r"([\d.-]+) ([\d.-]+)", drawn.paths[0].d)
    assert edge.x1 == edge.x2 == pytest.approx((float(left) + float(right)) / 2, abs=0.1)
    assert [key.text for key in drawn.keys] == ["loss", "here"]
