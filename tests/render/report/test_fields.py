"""Fields of an analysis as text and small tables."""

import pytest

from difflens.core.findings import Envelope, Interval, Missing
from difflens.render.report.fields import Grid, fields, grid, text, written_uncertainty


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, "unknown"),
        (True, "true"),
        (0.05432, "0.0543"),
        ([], "none"),
        ([1, 2.5, "x"], "1, 2.5, x"),
        (list(range(15)), "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 3 more"),
        ({"gini": 0.25, "n": None}, "gini: 0.25, n: unknown"),
        ({}, "none"),
        ([[1, 2], [3, 4]], "2 entries"),
        ({"a": {"b": [1]}}, "1 entry"),
        ("x" * 500, f"{'x' * 120}…(+380 characters)"),
    ],
)
def test_a_value_is_one_line_and_what_is_too_large_is_counted(value, written):
    assert text(value) == written


def test_a_list_of_records_is_a_table_with_every_column():
    found = grid([{"name": "a", "x": 1.0}, {"name": "b", "y": None}])

    assert found == Grid(
        ("name", "x", "y"), [("a", "1", "unknown"), ("b", "unknown", "unknown")], ""
    )


def test_a_map_is_a_table_of_its_keys():
    assert grid({"a": 1, "b": 2}) == Grid(("", "value"), [("a", "1"), ("b", "2")], "")
    assert grid({"a": {"x": 1}, "b": {"x": [1, 2]}}) == Grid(
        ("", "x"), [("a", "1"), ("b", "1, 2")], ""
    )


def test_a_long_table_says_what_is_left_out():
    found = grid([{f"c{column}": 1 for column in range(10)}] * 100)

    assert found is not None
    assert (len(found.rows), len(found.heads)) == (60, 8)
    assert found.left_out == "40 more lines and 2 more columns: -o json"


@pytest.mark.parametrize("value", [[], [1, 2], {}, {"one": 1}, "text", 3, [{"a": 1}, 2]])
def test_what_is_no_table_is_none(value):
    assert grid(value) is None


def test_a_null_says_what_would_fill_it():
    envelope = Envelope("a", "partial", {"x": None}, missing=(Missing("x", "--log", "no log"),))

    (field,) = fields(envelope)

    assert (field.text, field.reason) == ("unknown", "not assessed (needs --log); no log")


def test_fields_that_are_null_for_one_reason_are_told_together_and_last():
    lacks = tuple(Missing(name, "--log", "no log") for name in ("x", "z"))
    envelope = Envelope("a", "partial", {"x": None, "y": 1, "z": None}, missing=lacks)

    assert [field.names for field in fields(envelope)] == [("y",), ("x", "z")]


def test_how_sure_a_number_is_stands_beside_it():
    assert written_uncertainty("exact") == "exact"
    assert written_uncertainty(None) == ""
    assert written_uncertainty(Interval(None, 2.0, 0.9)) == "90% [unknown, 2]"
