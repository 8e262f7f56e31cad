"""The twin against arithmetic with fractions, the formats' own definitions, and textbook truths."""

import math
import os
import subprocess
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanes import examples
from measure.kernel.agreement import disagreements, figures, scanned
from strategies import BITS, DTYPES, REAL, decode, encode, mixed_pairs, pairs

from difflens.measure.kernel import reference

# Exponent bits, mantissa bits, bias, and how the top codes are spent.
SMALL_FLOATS = {
    "F64": (11, 52, 1023, "ieee"), "F32": (8, 23, 127, "ieee"), "C64": (8, 23, 127, "ieee"),
    "F16": (5, 10, 15, "ieee"), "BF16": (8, 7, 127, "ieee"), "F8_E5M2": (5, 2, 15, "ieee"),
    "F8_E4M3": (4, 3, 7, "one nan"), "F4": (2, 1, 1, "finite"),
    "F8_E4M3FNUZ": (4, 3, 8, "fnuz"), "F8_E5M2FNUZ": (5, 2, 16, "fnuz"),
}  # fmt: skip
ULPS = {
    "F64": (-1022, 52), "F32": (-126, 23), "F16": (-14, 10), "BF16": (-126, 7),
    "F8_E4M3": (-6, 3), "F8_E5M2": (-14, 2), "F8_E4M3FNUZ": (-7, 3), "F8_E5M2FNUZ": (-15, 2),
    "F8_E8M0": (-127, 0), "F4": (0, 1),
}  # fmt: skip


def number(code: int, dtype: str) -> float:  # noqa: PLR0911 - one answer for each kind of code
    """Decode one element by the definition of its format."""
    bits = BITS[dtype]
    if dtype == "BOOL":
        return float(code != 0)
    if dtype[0] == "U":
        return float(code)
    if dtype[0] == "I":
        return float(code - (1 << bits) if code >> (bits - 1) else code)
    if dtype == "F8_E8M0":
        return math.nan if code == 255 else math.ldexp(1.0, code - 127)
    exponent_bits, mantissa_bits, bias, kind = SMALL_FLOATS[dtype]
    sign = -1.0 if code >> (bits - 1) else 1.0
    exponent = (code >> mantissa_bits) & ((1 << exponent_bits) - 1)
    mantissa = code & ((1 << mantissa_bits) - 1)
    if kind == "fnuz" and code == 1 << (bits - 1):
        return math.nan
    if kind == "one nan" and code & 0x7F == 0x7F:
        return math.nan
    if kind == "ieee" and exponent == (1 << exponent_bits) - 1:
        return math.nan if mantissa else sign * math.inf
    if exponent:
        mantissa |= 1 << mantissa_bits
    return math.copysign(math.ldexp(mantissa, max(exponent, 1) - bias - mantissa_bits), sign)


def codes(buffer: bytes, dtype: str) -> list[int]:
    if dtype == "F4":
        return [half for byte in buffer for half in (byte & 15, byte >> 4)]
    size = BITS[dtype] // 8
    return [int.from_bytes(buffer[i : i + size], "little") for i in range(0, len(buffer), size)]


def rounded(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def moments(values: list[float], powers: tuple[int, ...]) -> tuple[Fraction, list[Fraction]]:
    exact = [Fraction(value) for value in values]
    mean = sum(exact, Fraction()) / len(exact)
    return mean, [sum(((x - mean) ** power for x in exact), Fraction()) for power in powers]


def side(values: list[float]) -> dict[str, Any]:
    kept = [value for value in values if math.isfinite(value)]
    found = dict.fromkeys(("min", "max", "mean", "m2", "m3", "m4", "abs_sum"), 0.0)
    if kept:
        mean, (m2, m3, m4) = moments(kept, (2, 3, 4))
        found = {
            "min": min(kept), "max": max(kept), "mean": rounded(mean),
            "m2": rounded(m2), "m3": rounded(m3), "m4": rounded(m4),
            "abs_sum": rounded(sum((abs(Fraction(x)) for x in kept), Fraction())),
        }  # fmt: skip
    return {
        **found,
        "nan": sum(map(math.isnan, values)),
        "positive_infinite": values.count(math.inf),
        "negative_infinite": values.count(-math.inf),
        "zeros": values.count(0.0),
    }


def over_half_an_ulp(x: float, y: float, dtypes: tuple[str, str]) -> bool:
    smaller = min(abs(x), abs(y))
    exponent = math.frexp(smaller)[1] - 1 if smaller else -9999
    ulps = [
        Fraction(2) ** (max(exponent, ULPS[dtype][0]) - ULPS[dtype][1])
        for dtype in dtypes
        if dtype in ULPS
    ]
    distance = abs(y - x)
    return math.isinf(distance) or Fraction(distance) > max(ulps, default=Fraction()) / 2


def oracle(left: bytes, right: bytes, *dtypes: str, epsilon: float = 0.0) -> dict[str, Any]:
    """Measure one element at a time, with fractions."""
    left_codes, right_codes = codes(left, dtypes[0]), codes(right, dtypes[1])
    same = dtypes[0] == dtypes[1]
    xs = [number(code, dtypes[0]) for code in left_codes]
    ys = [number(code, dtypes[1]) for code in right_codes]
    seen: dict[str, Any] = {
        "count": len(xs),
        **{f"left_{name}": value for name, value in side(xs).items()},
        **{f"right_{name}": value for name, value in side(ys).items()},
        "left_odd": sum(code > 1 for code in left_codes) if dtypes[0] == "BOOL" else 0,
        "right_odd": sum(code > 1 for code in right_codes) if dtypes[1] == "BOOL" else 0,
    }
    tally = dict.fromkeys(
        ("bit_equal", "value_equal", "over_epsilon", "over_rounding", "sign_flips"), 0
    )
    distances = {}
    for i, (x, y, p, q) in enumerate(zip(xs, ys, left_codes, right_codes, strict=True)):
        wide = same and dtypes[0] in {"I64", "U64"}
        equal = p == q if wide else x == y
        alike = equal or (math.isnan(x) and math.isnan(y))
        signs = math.copysign(1, x) == math.copysign(1, y)
        both_finite = math.isfinite(x) and math.isfinite(y)
        tally["bit_equal"] += p == q if same else (equal and signs) or (alike and not equal)
        tally["value_equal"] += equal
        if both_finite:
            signed = (p ^ 1 << 63, q ^ 1 << 63) if dtypes[0] == "I64" else (p, q)
            distances[i] = float(abs(signed[1] - signed[0])) if wide else abs(y - x)
            tally["over_epsilon"] += distances[i] > epsilon
            tally["sign_flips"] += x != 0 and y != 0 and not signs
        else:
            tally["over_epsilon"] += not alike
        if same or not both_finite:
            tally["over_rounding"] += not alike
        else:
            tally["over_rounding"] += over_half_an_ulp(x, y, (dtypes[0], dtypes[1]))
    return seen | tally | paired([(xs[i], ys[i]) for i in distances], distances)


def paired(kept: list[tuple[float, float]], distances: dict[int, float]) -> dict[str, Any]:
    names = ("pair_left_mean", "pair_right_mean", "pair_left_m2", "pair_right_m2", "comoment")
    changes = dict.fromkeys((*names, "max_abs", "max_abs_at", "abs_sum", "square_sum"), 0.0)
    if not kept:
        return {"pairs": 0, **changes}
    left_mean, (left_m2,) = moments([x for x, _ in kept], (2,))
    right_mean, (right_m2,) = moments([y for _, y in kept], (2,))
    comoment = sum(
        ((Fraction(x) - left_mean) * (Fraction(y) - right_mean) for x, y in kept), Fraction()
    )
    figures = map(rounded, (left_mean, right_mean, left_m2, right_m2, comoment))
    changes |= dict(zip(names, figures, strict=True))
    largest = max(distances.values())
    if largest:
        changes["max_abs"] = largest
        changes["max_abs_at"] = min(i for i, distance in distances.items() if distance == largest)
    if math.isfinite(largest):
        changes["abs_sum"] = math.fsum(distances.values()) if largest < 1e300 else math.inf
        squares = (Fraction(distance) ** 2 for distance in distances.values())
        changes["square_sum"] = rounded(sum(squares, Fraction()))
    else:
        changes["abs_sum"] = changes["square_sum"] = math.inf
    return {"pairs": len(kept), **changes}


@pytest.mark.parametrize("dtype", DTYPES)
@given(data=st.data(), epsilon=st.sampled_from([0.0, 0.5, 1e-3, 100.0]))
@examples(60)
def test_every_figure_is_what_fractions_say(dtype, data, epsilon):
    left, right = data.draw(pairs(dtype))

    expected = oracle(left, right, dtype, dtype, epsilon=epsilon)
    actual = figures(scanned(reference, left, right, dtype, epsilon=epsilon))
    assert disagreements(expected, actual) == {}


@given(pair=mixed_pairs(), epsilon=st.sampled_from([0.0, 0.5, 1e-3, 100.0]))
@examples(600)
def test_every_figure_is_what_fractions_say_across_dtypes(pair, epsilon):
    expected = oracle(*pair, epsilon=epsilon)
    actual = figures(scanned(reference, *pair, epsilon=epsilon))
    assert disagreements(expected, actual) == {}


@pytest.mark.parametrize("dtype", [dtype for dtype in REAL if BITS[dtype] <= 16])
def test_every_code_decodes_as_its_format_defines_and_as_ml_dtypes_says(dtype):
    every = np.arange(1 << BITS[dtype], dtype="<u1" if BITS[dtype] <= 8 else "<u2")
    packed = every[::2] | every[1::2] << 4 if dtype == "F4" else every

    defined = np.array([number(int(code), dtype) for code in every])
    with np.errstate(invalid="ignore"):  # signalling NaNs
        decoded = reference._decode(reference._codes(packed.tobytes(), dtype), dtype)
    np.testing.assert_array_equal(defined, decoded)
    np.testing.assert_array_equal(decode(packed.tobytes(), dtype), decoded)
    nan = np.isnan(defined)
    np.testing.assert_array_equal(np.signbit(defined[~nan]), np.signbit(decoded[~nan]))


def relative_l2(seen: dict[str, Any]) -> float:
    norm = math.sqrt(seen["pair_left_m2"] + seen["pairs"] * seen["pair_left_mean"] ** 2)
    return math.sqrt(seen["square_sum"]) / norm


def cosine(seen: dict[str, Any]) -> float:
    n, left, right = seen["pairs"], seen["pair_left_mean"], seen["pair_right_mean"]
    norms = (seen["pair_left_m2"] + n * left**2) * (seen["pair_right_m2"] + n * right**2)
    return (seen["comoment"] + n * left * right) / math.sqrt(norms)


@pytest.fixture
def gaussian():
    return np.random.default_rng(1).normal(size=100_000)


def test_a_tensor_times_1_1_has_moved_by_a_tenth(gaussian):
    seen = figures(scanned(reference, gaussian.tobytes(), (1.1 * gaussian).tobytes(), "F64"))

    assert relative_l2(seen) == pytest.approx(0.1, rel=1e-12)
    assert cosine(seen) == pytest.approx(1.0, rel=1e-12)
    assert seen["sign_flips"] == 0


def test_a_negated_tensor_points_the_other_way(gaussian):
    seen = figures(scanned(reference, gaussian.tobytes(), (-gaussian).tobytes(), "F64"))

    assert cosine(seen) == pytest.approx(-1.0, rel=1e-12)
    assert seen["sign_flips"] == seen["count"]
    assert seen["left_mean"] == -seen["right_mean"]


def test_planted_changes_are_counted_and_the_largest_is_located(gaussian):
    changed = gaussian.copy()
    changed[[7, 70_001, 99_999]] += [1e-3, -9.0, 9.0 - 1e-9]
    seen = figures(scanned(reference, gaussian.tobytes(), changed.tobytes(), "F64", epsilon=0.5))

    assert seen["count"] - seen["value_equal"] == 3
    assert seen["over_epsilon"] == 2
    assert seen["max_abs_at"] == 70_001


def test_correlated_gaussians_flip_sign_as_the_arc_cosine_says(gaussian):
    other = np.random.default_rng(2).normal(size=gaussian.size)
    right = 0.9 * gaussian + math.sqrt(1 - 0.9**2) * other
    seen = figures(scanned(reference, gaussian.tobytes(), right.tobytes(), "F64"))

    assert seen["sign_flips"] / seen["count"] == pytest.approx(math.acos(0.9) / math.pi, abs=4e-3)


@pytest.mark.parametrize(("dtype", "floor"), [("BF16", 1.66e-3), ("F16", 2.08e-4)])
def test_rounding_to_storage_costs_the_known_floor_and_is_over_no_rounding(dtype, floor, gaussian):
    left = gaussian.astype("<f4")
    seen = figures(scanned(reference, left.tobytes(), encode(left, dtype), "F32", dtype))

    assert relative_l2(seen) == pytest.approx(floor, rel=0.01)
    assert seen["over_rounding"] == 0


def test_truncating_to_storage_is_over_rounding_where_it_took_the_farther_neighbour(gaussian):
    bits = gaussian.astype("<f4").view("<u4")
    truncated = (bits >> 16).astype("<u2").tobytes()
    seen = figures(scanned(reference, bits.tobytes(), truncated, "F32", "BF16"))

    assert seen["over_rounding"] == np.count_nonzero((bits & 0xFFFF) > 0x8000)


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e20, -7.7e-12])
def test_a_constant_has_no_variance_at_all(value):
    left = np.full(200_001, value).tobytes()
    seen = figures(scanned(reference, left, left, "F64"))

    assert seen["left_mean"] == value
    assert seen["left_m2"] == seen["left_m3"] == seen["left_m4"] == seen["comoment"] == 0


def test_known_law_has_known_moments():
    seen = figures(scanned(reference, bytes(range(256)), bytes(256), "U8"))

    assert seen["left_mean"] == 127.5
    assert seen["left_m2"] == 256 * (256**2 - 1) / 12
    assert seen["left_m3"] == 0
    assert seen["left_m4"] == pytest.approx(sum((i - 127.5) ** 4 for i in range(256)), rel=1e-15)


def test_numpy_can_be_asked_for():
    command = [sys.executable, "-c", "from difflens.measure.kernel import NAME; print(NAME)"]
    environment = {"DIFFLENS_KERNEL": "numpy", "PYTHONPATH": os.pathsep.join(sys.path)}
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)

    assert answer.stdout.strip() == "numpy"
