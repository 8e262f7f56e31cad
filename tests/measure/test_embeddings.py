import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflens.diffs.story import diff
from difflens.measure.embeddings import picked_rows, row_moves, row_squares

TABLE = np.random.default_rng(0).normal(size=(9, 4)).astype(np.float32)


def values(array):
    return diff({"w": array}, {"w": array}).values("left", "w")


@given(st.lists(st.integers(0, 8), max_size=20))
def test_rows_come_in_the_order_asked_for(rows):
    found = picked_rows(values(TABLE), np.array(rows, np.int64))

    np.testing.assert_array_equal(found, TABLE[rows] if rows else np.empty((0, 4)))


def test_each_aligned_row_has_its_own_distance_and_cosine():
    right = TABLE[::-1] * np.float32(2)
    rows = np.arange(9)

    moves = row_moves(values(TABLE), values(right.copy()), rows, rows[::-1].copy())

    np.testing.assert_allclose(moves.relative_l2, 1, rtol=1e-6)
    np.testing.assert_allclose(moves.cosine, 1, rtol=1e-6)


def test_blocks_change_nothing(monkeypatch):
    rows, right = np.arange(9), values(TABLE + 1)
    whole = row_moves(values(TABLE), right, rows, rows)
    monkeypatch.setattr("difflens.measure.embeddings._BLOCK", 8)

    parts = row_moves(values(TABLE), right, rows, rows)

    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_row_of_zeros_has_no_relative_distance_and_nan_stays_in_its_row():
    left, right = TABLE.copy(), TABLE.copy()
    left[0], right[1, 2] = 0, np.nan
    rows = np.arange(9)

    moves = row_moves(values(left), values(right), rows, rows)

    assert np.isnan(moves.relative_l2).tolist() == [True, True] + [False] * 7


def test_squares_are_those_of_the_rows():
    assert row_squares(values(TABLE)) == pytest.approx((TABLE.astype(float) ** 2).sum(1))
