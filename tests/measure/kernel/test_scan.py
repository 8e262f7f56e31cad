"""Laws of the kernel, whichever is at work: compiled and NumPy answer alike, to the last bit."""

import contextlib
import gc
import itertools
import resource
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanes import examples
from measure.kernel.agreement import (
    LEVELS,
    differences,
    disagreements,
    figures,
    level,
    random_buffer,
    scanned,
)
from strategies import BITS, DTYPES, REAL, decode, encode, mixed_pairs, pairs

from difflens.measure.kernel import layout, reference

FAST = ("F64", "F32", "F16", "BF16", "I8", "F8_E4M3", "I64", "C64")
LOST = ("nan", "positive_infinite", "negative_infinite")


def load(module: str) -> Any:
    return pytest.importorskip(
        module, reason="the compiled kernel is not built", exc_type=ImportError
    )


@pytest.fixture(scope="module")
def compiled() -> Any:
    return load("difflens.measure.kernel._scan")


@pytest.fixture(
    scope="module",
    params=["difflens.measure.kernel.reference", "difflens.measure.kernel._scan"],
    ids=["numpy", "compiled"],
)
def kernel(request) -> Any:
    return load(request.param)


# Agreement


@pytest.mark.parametrize("dtype", DTYPES)
@given(data=st.data(), epsilon=st.sampled_from([0.0, 1e-3, 1.0]))
@examples(100)
def test_compiled_and_numpy_agree_on_any_bits(compiled, dtype, data, epsilon):
    left, right = data.draw(pairs(dtype))

    expected = scanned(reference, left, right, dtype, epsilon=epsilon)
    assert differences(expected, scanned(compiled, left, right, dtype, epsilon=epsilon)) == {}


@given(pair=mixed_pairs(), epsilon=st.sampled_from([0.0, 1e-3, 1.0]))
@examples(600)
def test_compiled_and_numpy_agree_across_dtypes(compiled, pair, epsilon):
    expected = scanned(reference, *pair, epsilon=epsilon)
    assert differences(expected, scanned(compiled, *pair, epsilon=epsilon)) == {}


@pytest.mark.parametrize("kind", ["bits", "numbers"])
@pytest.mark.parametrize("name", LEVELS)
def test_every_level_agrees_on_every_dtype_against_every_other_over_several_blocks(name, kind):
    kernel = level(name) or pytest.skip(f"no {name} here")
    rng = np.random.default_rng(20)
    for dtypes in itertools.chain(zip(DTYPES, DTYPES, strict=True), itertools.product(REAL, REAL)):
        for n in (2, 62, 2050, 9000) if len(set(dtypes)) == 1 else (2060,):
            sides = [random_buffer(rng, dtype, n, kind) for dtype in dtypes]
            expected = scanned(reference, *sides, *dtypes)
            assert differences(expected, scanned(kernel, *sides, *dtypes)) == {}, (dtypes, n)


BLOCKS = (512, 1024, 2048, 4096, 8192, 16384, 65536)


@pytest.mark.parametrize("dtype", FAST)
@pytest.mark.parametrize("n", [*BLOCKS, 100_002])
def test_blocks_leave_no_seam(compiled, dtype, n):
    rng = np.random.default_rng(n)
    for length, broken in itertools.product((n - 1, n, n + 1), (False, True)):
        count = length - length % 2 if dtype == "C64" else length
        left = random_buffer(rng, dtype, count, "numbers")
        right = bytearray(left)
        for at in rng.integers(0, len(right), 5):
            right[at] ^= 1
        if broken and dtype in {"F64", "F32", "F16", "BF16", "F8_E4M3", "C64"}:
            with_nan = decode(left, dtype)
            with_nan[count // 3 : count // 3 + 40 : 7] = np.nan
            left = encode(with_nan, dtype)
        expected = scanned(reference, left, right, dtype, epsilon=0.01)
        actual = scanned(compiled, left, right, dtype, epsilon=0.01)
        assert differences(expected, actual) == {}, (length, broken)


# Formats


@pytest.mark.parametrize("dtype", [dtype for dtype in REAL if BITS[dtype] <= 16])
def test_every_code_stands_for_the_number_ml_dtypes_reads(kernel, dtype):
    every = np.arange(1 << BITS[dtype], dtype="<u1" if BITS[dtype] <= 8 else "<u2")
    codes = (every[::2] | every[1::2] << 4 if dtype == "F4" else every).tobytes()
    numbers = decode(codes, dtype)
    seen = figures(scanned(kernel, codes, numbers.tobytes(), dtype, "F64"))

    assert seen["bit_equal"] == seen["count"] == len(numbers)
    assert seen["value_equal"] == np.count_nonzero(~np.isnan(numbers))
    assert seen["over_epsilon"] == seen["over_rounding"] == 0
    assert seen["left_nan"] == seen["right_nan"] == np.count_nonzero(np.isnan(numbers))
    assert seen["left_positive_infinite"] == np.count_nonzero(numbers == np.inf)
    assert seen["left_zeros"] == np.count_nonzero(numbers == 0)
    assert seen["left_min"] == numbers[np.isfinite(numbers)].min()
    assert seen["left_max"] == numbers[np.isfinite(numbers)].max()


def test_odd_truth_is_truth_and_is_counted(kernel):
    seen = figures(scanned(kernel, bytes([0, 1, 2, 255]), bytes([0, 1, 1, 0]), "BOOL"))

    assert (seen["left_odd"], seen["right_odd"]) == (2, 0)
    assert (seen["bit_equal"], seen["value_equal"]) == (2, 3)
    assert (seen["left_mean"], seen["left_max"]) == (0.75, 1.0)


def test_the_low_half_of_a_byte_of_f4_comes_first(kernel):
    seen = figures(scanned(kernel, b"\x02\x20", b"\x02\x00", "F4"))  # 1 0 0 1 and 1 0 0 0

    assert seen["max_abs_at"] == 3
    assert (seen["count"], seen["bit_equal"]) == (4, 3)


def test_complex_numbers_are_counted_by_parts(kernel):
    left = np.array([1 + 2j, 3 - 4j], "<c8")
    seen = figures(scanned(kernel, left.tobytes(), left.conj().tobytes(), "C64"))

    assert (seen["count"], seen["bit_equal"], seen["sign_flips"]) == (4, 2, 2)
    assert (seen["max_abs"], seen["max_abs_at"]) == (8.0, 3)


@pytest.mark.parametrize(
    ("dtype", "left", "right", "distance"),
    [
        ("I64", 2**53, 2**53 + 1, 1.0),
        ("I64", 2**63 - 1, 2**63 - 2, 1.0),
        ("I64", -(2**63), 2**63 - 1, float(2**64 - 1)),
        ("I64", -(2**63), -(2**63) + 1, 1.0),
        ("U64", 2**64 - 1, 2**64 - 2, 1.0),
        ("U64", 0, 2**64 - 1, float(2**64 - 1)),
        ("U64", 2**63, 2**63 - 1, 1.0),
    ],
)
def test_wide_integers_are_subtracted_before_they_are_rounded(kernel, dtype, left, right, distance):
    form = "<i8" if dtype == "I64" else "<u8"
    sides = [np.array([7, value, 7], form).tobytes() for value in (left, right)]
    seen = figures(scanned(kernel, *sides, dtype))

    assert (seen["max_abs"], seen["max_abs_at"]) == (distance, 1)
    assert seen["value_equal"] == seen["bit_equal"] == 2
    assert seen["over_epsilon"] == seen["over_rounding"] == 1


def test_zeros_of_both_signs_are_equal_in_value_and_not_in_bits(kernel):
    zeros = [np.array([sign * 0.0], "<f4").tobytes() for sign in (1, -1)]
    seen = figures(scanned(kernel, *zeros, "F32"))
    across = figures(scanned(kernel, zeros[0], np.array([-0.0]).tobytes(), "F32", "F64"))

    assert (seen["bit_equal"], seen["value_equal"], seen["sign_flips"]) == (0, 1, 0)
    assert (across["bit_equal"], across["value_equal"], across["over_rounding"]) == (0, 1, 0)
    packed = bytes(scanned(kernel, zeros[1], zeros[1], "F32"))
    assert np.signbit([figures(packed)["left_min"], figures(packed)["left_max"]]).sum() == 0


def test_nan_is_like_nan_only_and_infinity_like_its_own_sign(kernel):
    nan, inf = np.nan, np.inf
    left = np.array([nan, nan, inf, inf, -inf, 1.0, 0.0], "<f2")
    right = np.array([nan, 1.0, inf, -inf, nan, inf, 0.0], "<f2")
    right.view("<u2")[0] ^= 1  # another payload
    seen = figures(scanned(kernel, left.tobytes(), right.tobytes(), "F16", epsilon=1e9))

    assert (seen["bit_equal"], seen["value_equal"], seen["pairs"]) == (2, 2, 1)
    assert seen["over_epsilon"] == seen["over_rounding"] == 4
    assert [seen[f"left_{name}"] for name in LOST] == [2, 2, 1]


def test_a_side_without_finite_values_has_no_figures(kernel):
    left = np.array([np.nan, np.inf, -np.inf] * 700, "<f4").tobytes()
    right = np.array([2.0, 2.0, 5.0] * 700, "<f4").tobytes()
    seen = figures(scanned(kernel, left, right, "F32"))

    assert not any(seen[f"left_{name}"] for name in ("min", "max", "mean", "m2", "m3", "m4"))
    assert (seen["right_min"], seen["right_max"], seen["right_mean"]) == (2.0, 5.0, 3.0)
    assert (seen["pairs"], seen["max_abs"], seen["comoment"]) == (0, 0.0, 0.0)


@pytest.mark.parametrize("partner", [np.inf, np.nan])
def test_a_value_whose_partner_is_not_finite_weighs_nothing_in_the_pairs(kernel, partner):
    left = np.array([1.0, 1.0, 1.0, 0.0, 3e38], "<f4")
    right = np.array([1.0, 1.0, 0.0, 0.0, partner], "<f4")
    seen = figures(scanned(kernel, left.tobytes(), right.tobytes(), "F32"))

    assert seen["pair_left_mean"] == pytest.approx(0.75, rel=1e-12)
    assert seen["pair_left_m2"] == pytest.approx(0.75, rel=1e-12)
    assert seen["comoment"] == pytest.approx(0.5, rel=1e-12)


@pytest.mark.parametrize("place", [0, 5, 9_000, 19_999])
def test_nor_does_it_in_the_blocks_that_follow(kernel, place):
    rng = np.random.default_rng(10)
    left = rng.normal(1.0, 1.0, 20_000).astype("<f4")
    right = left + rng.normal(size=left.size).astype("<f4")
    left[place], right[place] = 3e38, np.nan
    seen = figures(scanned(kernel, left.tobytes(), right.tobytes(), "F32"))

    expected = long_summary(np.delete(left, place), np.delete(right, place))
    paired = [index for index in range(9) if index not in {0, 4}]  # the left side has the outlier
    np.testing.assert_allclose(
        np.array(summary(seen))[paired], np.array(expected, float)[paired], rtol=1e-10
    )


@pytest.mark.parametrize("alone", [1.0, 0.999], ids=["always", "mostly"])
def test_a_side_keeps_its_digits_where_the_other_is_not_finite(kernel, alone):
    rng = np.random.default_rng(11)
    right = 1e8 + rng.normal(size=20_000)
    left = np.where(rng.random(right.size) < alone, np.nan, rng.normal(size=right.size))
    seen = figures(scanned(kernel, left.tobytes(), right.tobytes(), "F64"))

    exact = np.asarray(right, np.longdouble)
    deviation = exact - exact.mean()
    assert seen["right_mean"] == pytest.approx(float(exact.mean()), rel=1e-12)
    assert seen["right_m2"] == pytest.approx(float((deviation**2).sum()), rel=1e-7)
    assert seen["right_m4"] == pytest.approx(float((deviation**4).sum()), rel=1e-6)


# Laws


@pytest.mark.parametrize("dtype", DTYPES)
def test_nothing_adds_nothing(kernel, dtype):
    assert not any(scanned(kernel, b"", b"", dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@given(data=st.data())
@examples(25)
def test_a_state_that_saw_nothing_changes_nothing_bit_for_bit(kernel, dtype, data):
    state = scanned(kernel, *data.draw(pairs(dtype)), dtype)
    after, before = bytearray(state), bytearray(len(state))
    kernel.merge(after, bytes(len(state)))
    kernel.merge(before, bytes(state))
    kernel.scan(b"", b"", dtype, dtype, 0.0, after)

    assert after == state
    assert before == state


def cut(buffer: bytes, dtype: str, places: list[int]) -> list[memoryview]:
    step = 8 if dtype == "C64" else max(BITS[dtype] // 8, 1)
    units = len(buffer) // step
    marks = [0, *sorted(place % (units + 1) * step for place in places), len(buffer)]
    return [memoryview(buffer)[start:stop] for start, stop in itertools.pairwise(marks)]


def in_pieces(kernel: Any, pieces: list[Any], dtype: str, *, merged: bool) -> dict[str, Any]:
    whole = bytearray(layout.STATE.size)
    for left, right in pieces:
        if merged:
            kernel.merge(whole, scanned(kernel, left, right, dtype, epsilon=0.5))
        else:
            kernel.scan(left, right, dtype, dtype, 0.5, whole)
    return figures(whole)


@pytest.mark.parametrize("merged", [False, True], ids=["continued", "merged"])
@pytest.mark.parametrize("dtype", DTYPES)
@given(data=st.data(), places=st.lists(st.integers(0, 1000), max_size=6))
@examples(40)
def test_any_cut_gives_the_figures_of_the_whole(kernel, dtype, merged, data, places):
    left, right = data.draw(pairs(dtype))
    pieces = list(zip(cut(left, dtype, places), cut(right, dtype, places), strict=True))

    whole = figures(scanned(kernel, left, right, dtype, epsilon=0.5))
    assert disagreements(whole, in_pieces(kernel, pieces, dtype, merged=merged)) == {}


@pytest.mark.parametrize("merged", [False, True], ids=["continued", "merged"])
@pytest.mark.parametrize("kind", ["bits", "numbers"])
@pytest.mark.parametrize("dtype", FAST)
def test_any_cut_of_a_large_tensor_gives_the_figures_of_the_whole(kernel, dtype, kind, merged):
    rng = np.random.default_rng(3)
    left, right = (random_buffer(rng, dtype, 30_000, kind) for _ in range(2))
    places = [int(place) for place in rng.integers(0, 30_000, 9)]
    pieces = list(zip(cut(left, dtype, places), cut(right, dtype, places), strict=True))

    whole = figures(scanned(kernel, left, right, dtype, epsilon=0.5))
    assert disagreements(whole, in_pieces(kernel, pieces, dtype, merged=merged)) == {}


def test_the_first_of_equal_changes_is_the_one_located(kernel):
    left = np.zeros(20_000, "<f4")
    right = left.copy()
    right[[9_000, 9_001, 19_000]] = [3.0, -3.0, 3.0]
    state = scanned(kernel, left.tobytes(), right.tobytes(), "F32")
    merged = scanned(kernel, bytes(400), bytes(400), "F32")
    kernel.merge(merged, state)
    kernel.merge(merged, state)

    assert figures(state)["max_abs_at"] == 9_000
    assert figures(merged)["max_abs_at"] == 9_100


def mirrored(seen: dict[str, Any]) -> dict[str, Any]:
    other = {"left": "right", "right": "left"}
    swapped = {name: "_".join(other.get(word, word) for word in name.split("_")) for name in seen}
    return {name: seen[swapped[name]] for name in seen}


@given(pair=mixed_pairs())
@examples(200)
def test_swapping_the_sides_swaps_the_figures(kernel, pair):
    left, right, left_dtype, right_dtype = pair
    there = figures(scanned(kernel, left, right, left_dtype, right_dtype, epsilon=0.5))
    back = figures(scanned(kernel, right, left, right_dtype, left_dtype, epsilon=0.5))

    assert disagreements(there, mirrored(back)) == {}


@pytest.mark.parametrize("dtype", DTYPES)
@given(data=st.data())
@examples(25)
def test_a_tensor_is_like_itself(kernel, dtype, data):
    left, _ = data.draw(pairs(dtype))
    seen = figures(scanned(kernel, left, left, dtype))

    assert seen["bit_equal"] == seen["count"]
    assert seen["value_equal"] == seen["count"] - seen["left_nan"]
    moved = ("over_epsilon", "over_rounding", "sign_flips", "max_abs", "abs_sum", "square_sum")
    assert not any(seen[name] for name in (*moved, "max_abs_at"))
    assert disagreements(seen, mirrored(seen)) == {}


@pytest.mark.parametrize("dtype", DTYPES)
def test_buffers_may_start_anywhere_and_are_left_as_they_were(kernel, dtype):
    rng = np.random.default_rng(4)
    left, right = (random_buffer(rng, dtype, 2_052, "bits") for _ in range(2))
    expected = scanned(kernel, left, right, dtype)
    for left_offset, right_offset in itertools.product((0, 1, 3), (0, 1, 7)):
        shifted_left = bytearray(b"\xff" * left_offset + left)
        shifted_right = bytearray(b"\xff" * right_offset + right)
        views = memoryview(shifted_left)[left_offset:], memoryview(shifted_right)[right_offset:]
        actual = scanned(kernel, *views, dtype)

        assert expected == actual
        assert shifted_left[left_offset:] == left
        assert shifted_right[right_offset:] == right


def test_the_same_scan_gives_the_same_bits_from_any_thread(kernel):
    rng = np.random.default_rng(5)
    left, right = (random_buffer(rng, "BF16", 200_000, "numbers") for _ in range(2))
    expected = scanned(kernel, left, right, "BF16")
    with ThreadPoolExecutor(4) as pool:
        states = list(pool.map(lambda _: scanned(kernel, left, right, "BF16"), range(8)))

    assert all(state == expected for state in states)


def test_same_bytes_says_whether_bytes_are_the_same(kernel):
    assert kernel.same_bytes(b"", bytearray())
    assert kernel.same_bytes(b"abc", memoryview(b"xabc")[1:])
    assert not kernel.same_bytes(b"abc", b"abd")
    assert not kernel.same_bytes(b"abc", b"abcd")
    assert not kernel.same_bytes(b"", b"\x00")


# Precision


def summary(seen: dict[str, Any]) -> list[float]:
    """Mean, standard deviation and norm of both sides, and the cosine between them."""
    n = seen["pairs"]
    means = [seen["pair_left_mean"], seen["pair_right_mean"]]
    powers = [seen["pair_left_m2"], seen["pair_right_m2"]]
    norms = [np.sqrt(m2 + n * mean**2) for m2, mean in zip(powers, means, strict=True)]
    cosine = (seen["comoment"] + n * means[0] * means[1]) / (norms[0] * norms[1])
    spreads = [np.sqrt(seen[f"{side}_m2"] / n) for side in ("left", "right")]
    return [seen["left_mean"], seen["right_mean"], *means, *spreads, *norms, cosine]


def long_summary(left: Any, right: Any) -> list[float]:
    sides = [np.asarray(side, np.longdouble) for side in (left, right)]
    means = [side.mean() for side in sides]
    norms = [np.sqrt((side * side).sum()) for side in sides]
    spreads = [side.std() for side in sides]
    return [*means, *means, *spreads, *norms, (sides[0] * sides[1]).sum() / norms[0] / norms[1]]


@pytest.mark.parametrize("dtype", ["F64", "F32", "F16", "BF16", "F8_E4M3", "I32"])
def test_well_scaled_data_keeps_ten_digits(kernel, dtype):
    rng = np.random.default_rng(6)
    scale = 1000.0 if dtype == "I32" else 1.0
    left = encode(scale * rng.normal(0.3, 1.0, 300_001), dtype)
    right = encode(decode(left, dtype) + scale * rng.normal(0.1, 0.5, 300_001), dtype)
    seen = figures(scanned(kernel, left, right, dtype))

    expected = long_summary(decode(left, dtype), decode(right, dtype))
    np.testing.assert_allclose(summary(seen), np.array(expected, float), rtol=1e-10)


@pytest.mark.parametrize("centre", [1e8, -1e8, 1e9])
def test_noise_on_a_large_offset_keeps_seven_digits(kernel, centre):
    rng = np.random.default_rng(7)
    left, right = (centre + rng.normal(size=300_001) for _ in range(2))
    seen = figures(scanned(kernel, left.tobytes(), right.tobytes(), "F64"))

    expected = np.array(long_summary(left, right), float)
    np.testing.assert_allclose(summary(seen), expected, rtol=1e-7)
    exact = np.asarray(left, np.longdouble)
    kurtosis = float(((exact - exact.mean()) ** 4).mean() / exact.var() ** 2)
    assert seen["left_m4"] * seen["count"] / seen["left_m2"] ** 2 == pytest.approx(kurtosis, 1e-6)


@pytest.mark.parametrize("place", [0, 1, 511, 8191, 8192, 999_999])
def test_one_outlier_spoils_no_figure(kernel, place):
    rng = np.random.default_rng(8)
    left = rng.normal(1.0, 1.0, 1_000_000).astype("<f4")
    right = (left * np.float32(1.5)).astype("<f4")
    left[place] = 1e20
    seen = figures(scanned(kernel, left.tobytes(), right.tobytes(), "F32"))

    expected = np.array(long_summary(left, right), float)
    np.testing.assert_allclose(summary(seen)[:-1], expected[:-1], rtol=1e-10)
    assert summary(seen)[-1] == pytest.approx(expected[-1], rel=1e-7)
    assert (seen["max_abs_at"], seen["left_max"]) == (place, float(np.float32(1e20)))


def test_levels_far_apart_keep_seven_digits(kernel):
    rng = np.random.default_rng(9)
    left = np.concatenate([1e8 + rng.normal(size=9_000), rng.normal(size=90_000)])
    right = left + rng.normal(size=left.size)
    seen = figures(scanned(kernel, left.tobytes(), right.tobytes(), "F64"))

    expected = np.array(long_summary(left, right), float)
    np.testing.assert_allclose(summary(seen), expected, rtol=1e-7)


def test_a_wide_format_does_not_lose_its_smallest_numbers(kernel):
    left = np.array([5e-324, 1e-310, -2e-320], "<f8")
    seen = figures(scanned(kernel, left.tobytes(), np.zeros(3).tobytes(), "F64"))

    assert (seen["left_min"], seen["left_max"], seen["max_abs"]) == (-2e-320, 1e-310, 1e-310)
    assert (seen["left_zeros"], seen["value_equal"], seen["over_epsilon"]) == (0, 0, 3)


def test_numbers_too_far_apart_to_subtract_are_infinitely_far(kernel):
    left, right = np.array([1.0, 1.7e308]), np.array([1.0, -1.7e308])
    seen = figures(scanned(kernel, left.tobytes(), right.tobytes(), "F64", epsilon=1.0))

    assert (seen["max_abs"], seen["max_abs_at"]) == (np.inf, 1)
    assert (seen["pairs"], seen["over_epsilon"], seen["sign_flips"]) == (2, 1, 1)
    assert (seen["left_max"], seen["right_min"]) == (1.7e308, -1.7e308)


# Refusals


@pytest.mark.parametrize(
    ("left", "right", "dtypes"),
    [
        pytest.param(b"abcd", b"abc", ("U8", "U8"), id="fewer elements"),
        pytest.param(b"abc", b"abc", ("F16", "F16"), id="half an element"),
        pytest.param(b"abcd", b"abcde", ("F32", "F32"), id="half an element right"),
        pytest.param(bytes(12), bytes(12), ("C64", "C64"), id="half a complex number"),
        pytest.param(b"abcd", b"abcd", ("F32", "F16"), id="as many bytes, fewer elements"),
        pytest.param(b"abc", b"abc", ("F6_E2M3", "F6_E2M3"), id="opaque"),
        pytest.param(b"abc", b"abc", ("U8", "F6_E3M2"), id="opaque right"),
        pytest.param(b"abcd", b"abcd", ("F33", "F33"), id="unknown"),
        pytest.param(b"", b"", ("f32", "f32"), id="unknown and empty"),
        pytest.param(bytes(8), bytes(8), ("C64", "F32"), id="complex and real"),
        pytest.param(bytes(8), bytes(8), ("I32", "C64"), id="real and complex"),
    ],
)
def test_what_cannot_be_compared_is_refused_and_the_state_kept(kernel, left, right, dtypes):
    state = scanned(kernel, b"ab", b"ac", "U8")
    before = bytes(state)
    with pytest.raises(ValueError, match=r"\w"):
        kernel.scan(left, right, *dtypes, 0.0, state)

    assert before == state


@pytest.mark.parametrize("size", [0, layout.STATE.size - 1, layout.STATE.size + 8])
def test_a_state_of_another_size_is_refused(kernel, size):
    with pytest.raises(ValueError, match=str(layout.STATE.size)):
        kernel.scan(b"a", b"b", "U8", "U8", 0.0, bytearray(size))
    with pytest.raises(ValueError, match=str(layout.STATE.size)):
        kernel.merge(bytearray(size), bytes(layout.STATE.size))
    with pytest.raises(ValueError, match=str(layout.STATE.size)):
        kernel.merge(bytearray(layout.STATE.size), bytes(size))


def test_a_state_that_cannot_be_written_is_refused(kernel):
    with pytest.raises((TypeError, BufferError)):
        kernel.scan(b"a", b"b", "U8", "U8", 0.0, bytes(layout.STATE.size))


# Memory


@pytest.mark.long
def test_ten_thousand_scans_leak_nothing(kernel):
    left, right, state = bytearray(b"abcd" * 8), bytes(32), bytearray(layout.STATE.size)

    def scan_often(times: int) -> None:
        for time in range(times):
            kernel.scan(left, right, "F32", "F32", 0.0, state)
            if time % 10:
                continue
            kernel.merge(state, bytes(layout.STATE.size))
            kernel.same_bytes(left, right)
            with contextlib.suppress(ValueError):
                kernel.scan(left, right, "F32", "F16", 0.0, state)

    scan_often(100)
    references = [sys.getrefcount(thing) for thing in (left, right, state)]
    tracemalloc.start()
    gc.collect()
    before, peak = tracemalloc.get_traced_memory()[0], resource.getrusage(resource.RUSAGE_SELF)
    scan_often(10_000)
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak.ru_maxrss

    assert references == [sys.getrefcount(thing) for thing in (left, right, state)]
    assert grown < 20_000
    assert resident < 20_000  # kilobytes on Linux; a leak of one state each would be 3,000
    left.append(0)  # no buffer is still held
