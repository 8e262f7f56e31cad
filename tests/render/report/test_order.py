"""The order by magnitude: total, and the same whatever the order it was given in."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from render.reports import M, changed, info, row, stats

from difflens.core.errors import UnknownName
from difflens.render.report.order import KEYS, by_magnitude

ZERO = row(
    "from zero",
    left_stats=stats(zeros=192),
    right_stats=stats(),
    figures=M | {"relative_l2": None, "l2": 2.0, "cosine": None},
)
ROWS = [
    changed("nan", right_nonfinite=1, relative_l2=None),
    row("new nan", "added", right_stats=stats(nan=2)),
    row("gone", "removed"),
    row("shape", "reshaped", right=info("shape", shape=(2,))),
    ZERO,
    changed("far", relative_l2=0.5, cosine=0.99, max_abs=0.1, sqnr_db=6.0, l2=1.0, ulp_p99=9.0),
    changed("near", relative_l2=0.1, cosine=0.5, max_abs=9.0, sqnr_db=9.0, l2=8.0, ulp_p99=90.0),
    row("same", "identical"),
]


def test_non_finite_then_structure_then_change_then_the_rest():
    expected = ["nan", "new nan", "gone", "shape", "from zero", "far", "near", "same"]

    assert [each.name for each in by_magnitude(reversed(ROWS))] == expected


@pytest.mark.parametrize(
    ("key", "first"),
    [
        ("relative_l2", "far"),
        ("cosine_distance", "near"),
        ("sqnr", "far"),
        ("ulp_p99", "near"),
        ("max_abs", "near"),
        ("energy_share", "near"),
    ],
)
def test_every_key_puts_the_larger_change_first(key, first):
    measured = [each.name for each in by_magnitude(ROWS, key) if each.name in {"far", "near"}]

    assert measured[0] == first


def test_every_key_is_tried_here():
    assert set(KEYS) == {
        "relative_l2", "cosine_distance", "sqnr", "ulp_p99", "max_abs", "energy_share",
    }  # fmt: skip


def test_tensors_from_all_zeros_go_by_what_they_became():
    small = row(
        "a small one",
        left_stats=stats(zeros=192),
        right_stats=stats(),
        figures=M | {"relative_l2": None, "l2": 0.5},
    )

    assert [each.name for each in by_magnitude([small, ZERO])] == ["from zero", "a small one"]


def test_what_has_no_such_figure_comes_after_what_has():
    rows = [changed("a", ulp_p99=1.0), changed("b")]

    assert [each.name for each in by_magnitude(reversed(rows), "ulp_p99")] == ["a", "b"]


def test_ties_go_by_name_and_not_by_arrival():
    rows = [changed(name) for name in ("b", "a", "B")]

    orders = {tuple(each.name for each in by_magnitude(given)) for given in permutations(rows)}

    assert orders == {("B", "a", "b")}


@given(st.lists(st.floats() | st.none(), min_size=2, max_size=6), st.randoms())
def test_the_order_is_total(values, random):
    rows = [changed(f"w{place}", relative_l2=value) for place, value in enumerate(values)]
    mixed = random.sample(rows, len(rows))

    assert [each.name for each in by_magnitude(mixed)] == [each.name for each in by_magnitude(rows)]


def test_an_unknown_key_is_answered_with_those_there_are():
    with pytest.raises(UnknownName, match="no order is called 'relative'") as raised:
        by_magnitude(ROWS, "relative")

    assert raised.value.hint == "did you mean relative_l2?"
