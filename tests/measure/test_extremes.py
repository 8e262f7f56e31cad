import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from difflens.diffs.story import diff
from difflens.measure.chunks import STEP
from difflens.measure.extremes import KEPT, LARGEST, Extremes

TYPES = {
    "F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16,
    "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2,
    "F8_E4M3FNUZ": ml_dtypes.float8_e4m3fnuz, "F8_E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
}  # fmt: skip


def taken(left, right):
    ((_, measure),) = diff({"w": left}, {"w": right}).measured(Extremes)
    return measure


@pytest.mark.parametrize("dtype", LARGEST)
def test_the_largest_number_of_every_format_is_known(dtype):
    assert LARGEST[dtype] == float(ml_dtypes.finfo(TYPES[dtype]).max)


@pytest.mark.parametrize("dtype", ["F32", "F16", "BF16", "F8_E4M3", "F8_E5M2"])
def test_only_what_is_newly_at_the_end_of_its_dtype_is_counted(dtype):
    largest = LARGEST[dtype]
    left = np.array([largest, 1, 1, 0], np.float64).astype(TYPES[dtype])
    right = np.array([largest, -largest, largest, 0], np.float64).astype(TYPES[dtype])

    assert taken(left, right).newly_saturated == 2


def test_a_cast_that_clips_saturates():
    left = np.array([1e6, 1.0, 2.0], np.float32)
    right = np.clip(left, -65504, 65504).astype(np.float16)

    assert taken(left, right).newly_saturated == 1


@given(arrays(np.float32, 40, elements=st.floats(-1e6, 1e6, width=32)))
def test_the_largest_are_those_that_sorting_gives(values):
    other = np.arange(40, dtype=np.float32) + 0.5
    if (values == other).all():
        return
    found = taken(other, values).largest

    expected = np.sort(np.abs(values))[::-1][:KEPT]
    assert [abs(each.right) for each in found] == expected.tolist()
    assert all(values[each.place] == each.right for each in found)
    assert all(other[each.place] == each.left for each in found)


def test_they_are_found_across_pieces():
    right = np.zeros(2 * STEP + 7, np.float32)
    right[[3, STEP + 1, 2 * STEP + 5]] = [5, -7, 6]
    found = taken(np.zeros_like(right), right).largest

    assert [(each.place, each.right) for each in found[:3]] == [
        (STEP + 1, -7), (2 * STEP + 5, 6), (3, 5),
    ]  # fmt: skip


def test_what_is_not_finite_is_no_large_value():
    right = np.array([np.nan, np.inf, 2.0, 1.0], np.float32)

    assert [each.right for each in taken(np.zeros(4, np.float32), right).largest] == [2.0, 1.0]
