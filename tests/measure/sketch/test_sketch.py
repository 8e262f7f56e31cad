"""The sketch: the same bits from C and NumPy, and estimates within their error, whatever moved."""

import struct

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflens.core.records import Stats, TensorInfo
from difflens.measure.sketch import BUCKETS, reference
from difflens.measure.sketch.estimate import (
    ERROR,
    add_elements,
    distance,
    estimate,
    finish,
    norm,
    sketched,
)

DTYPES = {
    "F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16,
    "I64": np.int64, "U64": np.uint64, "I32": np.int32, "U32": np.uint32, "I16": np.int16,
    "U16": np.uint16, "I8": np.int8, "U8": np.uint8, "F8_E4M3": ml_dtypes.float8_e4m3fn,
    "F8_E5M2": ml_dtypes.float8_e5m2,
}  # fmt: skip


def sums(data, dtype, first=0):
    out = bytearray(8 * BUCKETS)
    add_elements(memoryview(data), dtype, first, out)
    return out


def sketch(values, dtype="F32"):
    array = np.ascontiguousarray(values, DTYPES[dtype])
    info = TensorInfo("w", dtype, array.shape)
    total = np.frombuffer(sums(array.tobytes(), dtype), np.float64)
    return finish(total, sketched(info))


@pytest.mark.parametrize("form", ["F64", "F32", "F16", "BF16", "I64", "U64", "I32", "U32", "I16",
                                  "U16", "BYTES", "NIBBLES"])  # fmt: skip
@given(data=st.binary(max_size=5000), row=st.integers(0, 2**40))
def test_both_sketches_give_the_same_bits(form, data, row):
    compiled = pytest.importorskip("difflens.measure.sketch._sketch", reason="no compiler was here")
    data = data[: len(data) // 8 * 8] * 3
    table = {"BYTES": 256, "NIBBLES": 16}.get(form, 0)
    table = np.random.default_rng(0).standard_normal(table).tobytes()
    before = np.random.default_rng(1).standard_normal(BUCKETS).tobytes()
    one, other = bytearray(before), bytearray(before)

    with np.errstate(all="ignore"):
        compiled.add(data, form, row, table, one)
        reference.add(data, form, row, table, other)

    assert one == other


@pytest.mark.parametrize("add", ["compiled", "reference"])
@pytest.mark.parametrize(
    ("data", "form", "row", "table", "size"),
    [
        (b"abc", "F32", 0, b"", 8192),
        (b"abcd", "F8", 0, b"", 8192),
        (b"abcd", "F32", -1, b"", 8192),
        (b"abcd", "F32", 0, b"", 8191),
        (b"abcd", "F32", 0, bytes(8), 8192),
        (b"abcd", "BYTES", 0, bytes(8), 8192),
        (b"abcd", "NIBBLES", 0, b"", 8192),
    ],
)
def test_what_cannot_be_is_refused(add, data, form, row, table, size):  # noqa: PLR0917
    if add == "compiled":
        module = pytest.importorskip("difflens.measure.sketch._sketch", reason="no compiler")
    else:
        module = reference

    with pytest.raises(ValueError, match=r"."):
        module.add(data, form, row, table, bytearray(size))


@given(cut=st.integers(0, 6), dtype=st.sampled_from(sorted(DTYPES)))
def test_a_tensor_cut_at_a_row_has_the_sums_of_the_whole(cut, dtype):
    codes = np.random.default_rng(cut).integers(0, 256, 7000 * 8, np.uint8)
    data = codes.tobytes()[: 7000 * np.dtype(DTYPES[dtype]).itemsize]
    at = cut * BUCKETS
    width = np.dtype(DTYPES[dtype]).itemsize
    with np.errstate(all="ignore"):
        whole = sums(data, dtype)
        parts = sums(data[: at * width], dtype)
        add_elements(memoryview(data[at * width :]), dtype, at, parts)

    assert parts == whole


@given(st.integers(1, BUCKETS), st.integers(0, 1000))
def test_the_distance_of_small_tensors_is_the_real_one(count, seed):
    random = np.random.default_rng(seed)
    left, right = random.standard_normal((2, count)).astype(np.float32)

    known = distance(sketch(left), sketch(right))

    assert known.distance == pytest.approx(
        np.linalg.norm(right.astype(float) - left.astype(float)), rel=1e-6
    )


ROWS, COLUMNS = 96, 2048


def dense(random):
    return random.standard_normal((ROWS, COLUMNS))


def one_row(random):
    move = np.zeros((ROWS, COLUMNS))
    move[random.integers(ROWS)] = random.standard_normal(COLUMNS)
    return move


def one_column(random):
    move = np.zeros((ROWS, COLUMNS))
    move[:, random.integers(COLUMNS)] = 1
    return move


def some_columns(random):
    move = np.zeros((ROWS, COLUMNS))
    move[:, :64] = random.standard_normal(64)
    return move


def a_bias(random):
    return np.full((ROWS, COLUMNS), random.standard_normal())


def a_bias_per_row(random):
    return np.repeat(random.standard_normal((ROWS, 1)), COLUMNS, axis=1)


def a_block(random):
    move = np.zeros((ROWS, COLUMNS))
    move[16:48, 1024:1088] = random.standard_normal((32, 64))
    return move


def low_rank(random):
    return random.standard_normal((ROWS, 2)) @ random.standard_normal((2, COLUMNS))


def one_element(random):
    move = np.zeros((ROWS, COLUMNS))
    move[random.integers(ROWS), random.integers(COLUMNS)] = 1
    return move


def a_diagonal(random):
    move = np.zeros((ROWS, COLUMNS))
    np.fill_diagonal(move, random.standard_normal())
    return move


def stripes(random):
    move = np.zeros((ROWS, COLUMNS))
    move[:, :: random.choice([2, 32, 1024])] = 1
    return move


def alternating(random):
    return np.where(np.indices((ROWS, COLUMNS)).sum(axis=0) % 2, 1.0, -1.0) * random.uniform(1, 2)


MOVES = [dense, one_row, one_column, some_columns, a_bias, a_bias_per_row, a_block, low_rank,
         one_element, a_diagonal, stripes, alternating]  # fmt: skip


def errors_of(move, trials):
    """Estimate moves of tensors whose place in a larger one differs, and so their randomness."""
    random = np.random.default_rng(7)
    errors = []
    for trial in range(trials):
        moved = move(random).astype(np.float32)
        first = trial * 1_000_003 * BUCKETS
        known = np.frombuffer(sums(moved.tobytes(), "F32", first), np.float64)
        errors.append(np.linalg.norm(known) / np.linalg.norm(moved.astype(float)) - 1)
    return np.array(errors)


@pytest.mark.parametrize("move", MOVES, ids=lambda each: each.__name__)
def test_natural_changes_are_estimated_within_the_error(move):
    errors = errors_of(move, 150)

    assert np.sqrt(np.mean(errors**2)) < 1.25 * ERROR < 0.03
    assert np.abs(errors.mean()) < 0.25 * ERROR


def test_one_element_is_told_exactly():
    assert np.abs(errors_of(one_element, 20)).max() < 1e-12


def test_a_sketch_without_turning_rows_would_fail_where_this_one_does_not():
    """What the turning is for: columns of a width that is a multiple of the sums."""
    move = one_column(np.random.default_rng(0))
    plain = move.reshape(-1, BUCKETS).sum(axis=0)

    assert np.linalg.norm(plain) / np.linalg.norm(move) > 5


def test_the_sketch_is_linear():
    random = np.random.default_rng(3)
    left, right = random.standard_normal((2, 50_000))
    moved = [np.frombuffer(sums(each.tobytes(), "F64"), np.float64)
             for each in (left, right, right - left)]  # fmt: skip

    np.testing.assert_allclose(moved[1] - moved[0], moved[2], atol=1e-11)


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1.0, 1e30, 1e300])
def test_a_move_of_a_hundred_millionth_is_told_at_any_scale(scale):
    random = np.random.default_rng(5)
    values = random.standard_normal(100_000)
    left, right = values * scale, values * scale * (1 + 1e-8)
    stats = Stats(mean=float(values.mean() * scale), std=float(values.std() * scale))

    known = estimate(left.size, (stats, stats), sketch(left, "F64"), sketch(right, "F64"))

    assert known.relative_l2 == pytest.approx(1e-8, rel=0.1)


def test_a_move_that_rounding_hides_is_said_to_be_below_it():
    random = np.random.default_rng(5)
    left = random.standard_normal(100_000)
    stats = Stats(mean=float(left.mean()), std=float(left.std()))

    known = estimate(
        left.size, (stats, stats), sketch(left, "F64"), sketch(left * (1 + 1e-12), "F64")
    )

    assert known.l2 is None
    assert known.relative_l2 is None
    assert 1e-10 < known.relative_smallest < 1e-7


def test_values_that_are_not_finite_are_left_out():
    values = np.random.default_rng(0).standard_normal(5000).astype(np.float32)
    odd = values.copy()
    odd[[3, 2000, 4999]] = np.nan, np.inf, -np.inf
    zeroed = np.where(np.isfinite(odd), odd, 0)

    assert sketch(odd) == sketch(zeroed)
    stats = Stats(mean=0.0, std=1.0, nan=1)
    assert estimate(5000, (stats, stats), sketch(odd), sketch(values)).is_unknown


def test_sums_that_overflow_make_no_sketch():
    assert sketch(np.full(BUCKETS * 40, 1.7e308), "F64") is None


@given(st.binary(min_size=4, max_size=4))
def test_a_number_stands_for_itself(code):
    (value,) = struct.unpack("<f", code)
    known = sketch(np.array([value]))

    assert distance(known, sketch(np.zeros(1))).distance == pytest.approx(
        abs(value) if np.isfinite(value) else 0.0, rel=1e-8
    )


def test_the_norm_comes_from_the_statistics():
    values = np.array([3.0, -4.0])
    stats = Stats(mean=float(values.mean()), std=float(values.std()))

    assert norm(stats, 2) == pytest.approx(5.0)
