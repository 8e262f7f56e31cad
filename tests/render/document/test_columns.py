"""A table for the terminal: aligned by cells, fitted where there is a width, whole where not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflens.core.terminal import display_width
from difflens.render.document.text import Column, table_lines

names = st.text(st.sampled_from("ab.0重みé😀\x1b\n "), min_size=1, max_size=50)
numbers = st.floats(allow_nan=False, width=32).map(lambda number: f"{number:.4g}")
words = st.lists(st.sampled_from(["stopped", "without", "end", "vanishing,", "重み"]), max_size=8)
makers = {"name": names, "number": numbers, "value": numbers, "words": words.map(" ".join)}


@st.composite
def tables(draw):
    rows = draw(st.integers(1, 4))
    kinds = ["name", *draw(st.lists(st.sampled_from(sorted(makers)), max_size=8))]
    return [
        Column(
            f"head {i}",
            draw(st.lists(makers[kind], min_size=rows, max_size=rows)),
            kind,
            right=kind == "number",
        )
        for i, kind in enumerate(kinds)
    ]


@given(tables(), st.integers(40, 120))
def test_no_line_is_wider_than_the_room(columns, room):
    for line in table_lines(columns, room):
        assert display_width(line) <= room
        assert line.isprintable()


@given(tables(), st.integers(40, 120))
def test_every_number_is_there_whole_whatever_the_room(columns, room):
    shown = " ".join(table_lines(columns, room)).split()

    for column in columns:
        if column.kind == "number":
            assert set(column.cells) <= set(shown)


@given(tables())
def test_without_a_room_every_row_is_one_line_and_nothing_is_left_out(columns):
    lines = list(table_lines(columns))

    assert len(lines) == 1 + len(columns[0].cells)
    for column in columns[1:]:
        if column.kind != "name":
            assert all(cell.strip() in line for cell, line in zip(column.cells, lines[1:],
                                                                  strict=True))  # fmt: skip


def test_wide_letters_take_two_cells():
    lines = list(table_lines([Column("layer", ["重み", "w"], "name"), Column("norm", ["1", "2"])]))

    assert lines == ["layer  norm", "重み   1", "w      2"]


LONG = [f"model.encoder.layers.{i}.attention.query.weight" for i in range(3)]
STATES = ["ended", "stopped without end", "running"]
TIMES = ["2026-01-02 03:04:05"] * 3


def test_names_are_shortened_before_anything_is_folded():
    columns = [Column("run", LONG, "name"), Column("state", STATES)]

    assert list(table_lines(columns, 44)) == [
        "run                      state",
        "…0.attention…ery.weight  ended",
        "…1.attention…ery.weight  stopped without end",
        "…2.attention…ery.weight  running",
    ]


def test_then_words_are_folded_and_heads_then_what_is_several_numbers():
    columns = [
        Column("run", LONG, "name"),
        Column("state", STATES),
        Column("last loss", ["0.1"] * 3, "number", right=True),
        Column("latest (UTC)", TIMES, "number", right=True),
    ]

    assert list(table_lines(columns, 58)) == [
        "                                 last",
        "run               state          loss         latest (UTC)",
        "…0.atten….weight  ended           0.1  2026-01-02 03:04:05",
        "…1.atten….weight  stopped         0.1  2026-01-02 03:04:05",
        "                  without end",
        "…2.atten….weight  running         0.1  2026-01-02 03:04:05",
    ]
    assert list(table_lines(columns, 47)) == [
        "                              last       latest",
        "run               state       loss        (UTC)",
        "…0.atten….weight  ended        0.1   2026-01-02",
        "                                       03:04:05",
        "…1.atten….weight  stopped      0.1   2026-01-02",
        "                  without              03:04:05",
        "                  end",
        "…2.atten….weight  running      0.1   2026-01-02",
        "                                       03:04:05",
    ]


def test_columns_that_find_no_room_go_on_below_beside_the_first():
    columns = [Column("tensor", LONG, "name")]
    columns += [Column(f"figure{i}", [f"{i}.2345678"] * 3, "value", right=True) for i in range(6)]
    lines = list(table_lines(columns, 60))

    assert lines.count("") == 1
    assert [line.split()[0] for line in lines if line].count("tensor") == 2
    assert "figure5" in lines[lines.index("") + 1]


@pytest.mark.parametrize("room", [None, 40])
def test_a_table_without_rows_is_its_heads(room):
    columns = [Column("tensor", [], "name"), Column("x", []), Column("y", [], "number")]

    assert " ".join(table_lines(columns, room)).split() == ["tensor", "x", "y"]


@pytest.mark.parametrize("room", [None, 40])
def test_a_table_without_heads_has_only_its_rows(room):
    assert list(table_lines([Column("", ["a", "b"], "name")], room)) == ["a", "b"]


def test_a_name_that_commands_the_terminal_is_written_out():
    (line,) = table_lines([Column("", ["\x1b[31m"], "name")])

    assert line == "\\x1b[31m"


def test_columns_with_nothing_in_them_go_where_room_is_short():
    columns = [
        Column("metric", ["accuracy", "loss"], "name"),
        Column("interval of the difference", ["", ""]),
        Column("outcome", ["improved", "the same"]),
    ]

    assert list(table_lines(columns, 20)) == [
        "metric    outcome",
        "accuracy  improved",
        "loss      the same",
    ]
    assert "interval of the difference" in next(table_lines(columns, 60))
