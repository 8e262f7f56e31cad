"""Packed rows: a sequence like a tuple of the same rows, in a fraction of its memory."""

import copy
import math
import pickle
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflens.core.records import Figures, Row, Stats, TensorInfo
from difflens.diffs.judge import PackedRows
from difflens.diffs.judge.packed_rows import _PAGE

FEW, MANY = 3, 2 * _PAGE + 7


def row(number: int, name: str = "h", further: dict[str, Any] | None = None) -> Row:
    info = TensorInfo(f"{name}.{number}", "F32", (number, 2))
    stats = Stats(mean=number / 3, std=math.inf, zeros=number)
    figures = Figures(relative_l2=number / 7, max_abs_index=(number, 1), changed_count=number)
    left = None if number % 5 == 0 else info
    return Row(info.name, "changed", left, info, "exact", None, None, stats, None, figures, further)


def packed(rows: list[Row]) -> PackedRows:
    result = PackedRows()
    for each in rows:
        result.append(each)
    return result


@pytest.mark.parametrize("count", [0, FEW, _PAGE, MANY])
def test_rows_come_back_as_they_were(count):
    rows = [row(number) for number in range(count)]

    assert tuple(packed(rows)) == tuple(rows)
    assert packed(rows) == tuple(rows)
    assert packed(rows).as_tuple() == tuple(rows)
    assert len(packed(rows)) == count


def test_few_rows_are_a_plain_tuple():
    assert type(packed([row(number) for number in range(FEW)]).as_tuple()) is tuple


@given(st.integers(-MANY, MANY - 1), st.slices(MANY))
def test_places_and_slices_are_those_of_a_tuple(place, part):
    one, some = PACKED[place], PACKED[part]

    assert one == ROWS[place]
    assert some == ROWS[part]


ROWS = tuple(row(number) for number in range(MANY))
PACKED = packed(list(ROWS))


def test_a_place_beyond_the_end_is_an_error():
    with pytest.raises(IndexError):
        PACKED[MANY]


def test_other_rows_are_not_equal():
    assert ROWS[:-1] != PACKED
    assert (*ROWS[:-1], row(0)) != PACKED
    assert PACKED != "rows"


@pytest.mark.parametrize(
    "odd", [row(1, "lone \ud800"), row(1, further={"spans": (1, (2, 3))}), row(1 << 70)]
)
def test_what_cannot_be_packed_stays_as_it_is(odd):
    rows = [*ROWS[:9], odd, *ROWS[10:]]

    assert repr(list(packed(rows))) == repr(rows)
    assert packed(rows)[9] == odd


def test_they_can_be_copied_and_pickled():
    assert pickle.loads(pickle.dumps(PACKED)) == ROWS  # noqa: S301  our own bytes
    assert copy.deepcopy(PACKED) == ROWS


def test_a_row_takes_less_than_a_fifth_of_its_memory():
    held = sum(sys.getsizeof(page) for page in PACKED._pages) / (2 * _PAGE)
    plain = sum(map(sys.getsizeof, (ROWS[7], ROWS[7].left, ROWS[7].left_stats, ROWS[7].figures)))

    assert held * 5 < plain
