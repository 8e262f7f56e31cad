import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanes import examples
from measure.taken import BF16, noise, take

from difflens.measure.norms import Norms, gini


def test_one_changed_row_has_all_the_energy():
    left = noise(50, 40)
    right = left.copy()
    right[7] += 1

    found = take(Norms, left, right)

    assert (found.rows_changed, found.columns_changed, found.top_row) == (1, 40, 7)
    assert found.top_row_share == pytest.approx(1)
    assert found.row_gini == pytest.approx(1 - 1 / 50)


def test_rows_that_all_move_alike_have_no_gini():
    left = noise(50, 40)

    found = take(Norms, left, left + np.float32(1))

    assert found.row_gini == pytest.approx(0, abs=1e-6)
    assert found.top_row_share == pytest.approx(1 / 50, rel=1e-4)
    assert found.energy_top1 == pytest.approx(0.01, rel=1e-3)


def test_planted_entries_hold_the_energy_they_were_given():
    left = np.zeros((100, 100))
    right = np.ones((100, 100))
    right.flat[:100] = 10

    assert take(Norms, left, right).energy_top1 == pytest.approx(100 * 100 / (100 * 100 + 9900))


def test_the_share_of_the_largest_entries_is_that_of_a_sort():
    left, right = noise(200, 150), noise(200, 150, seed=1)
    squares = np.sort(((right - left).astype(np.float64) ** 2).ravel())[::-1]

    assert take(Norms, left, right).energy_top1 == pytest.approx(
        squares[:300].sum() / squares.sum(), rel=2e-3
    )


def test_rows_and_columns_of_zeros_are_counted_on_each_side():
    left, right = noise(30, 20), noise(30, 20, seed=1)
    left[3] = 0
    right[3] = right[5] = 0
    right[:, 2] = 0

    found = take(Norms, left, right)

    assert (found.left_zero_rows, found.right_zero_rows, found.newly_zero_rows) == (1, 2, 1)
    assert (found.left_zero_columns, found.right_zero_columns) == (0, 1)
    assert found.newly_zero_columns == 1


@pytest.mark.parametrize("dtype", [np.float32, BF16, np.float64])
def test_rows_that_became_copies_are_counted_once_each(dtype):
    left = noise(40, 24).astype(dtype)
    left[9] = left[4]
    right = left.copy()
    right[[11, 12]] = right[0]
    right[20], right[21] = 0, 0

    found = take(Norms, left, right)

    assert (found.left_duplicate_rows, found.right_duplicate_rows) == (1, 3)
    assert found.newly_duplicate_rows == 2


def test_rows_of_one_norm_are_not_copies():
    left = np.eye(32, dtype=np.float32)

    assert take(Norms, left, left * np.float32(2)).right_duplicate_rows == 0


def test_what_is_not_finite_is_no_energy_and_no_zero_row():
    left, right = np.zeros((4, 4), np.float32), np.zeros((4, 4), np.float32)
    right[1] = np.nan
    right[2, 0] = 3

    found = take(Norms, left, right)

    assert found.top_row == 2
    assert found.top_row_share == 1
    assert found.right_zero_rows == 2
    assert found.rows_changed == 2


def test_blocks_do_not_matter(monkeypatch):
    left, right = noise(300, 20), noise(300, 20, seed=1)
    right[250] = right[3]
    whole = take(Norms, left, right)

    monkeypatch.setattr("difflens.measure.norms.STEP", 170)

    assert take(Norms, left, right) == whole


@examples(50)
@given(st.lists(st.floats(0, 100), min_size=1, max_size=30).filter(any))
def test_gini_is_half_the_relative_mean_difference(values):
    energies = np.array(values)
    expected = np.abs(energies[:, None] - energies).sum() / (2 * len(values) * energies.sum())

    assert gini(energies) == pytest.approx(expected, abs=1e-9)


def test_a_vector_has_no_rows():
    assert take(Norms, noise(100), noise(100, seed=1)) is None
