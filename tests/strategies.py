"""Hypothesis strategies: encoded tensors, and pairs of them that have something in common."""

from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

# Bits of the exponent and of the mantissa.
FLOATS = {
    "F64": (11, 52), "F32": (8, 23), "F16": (5, 10), "BF16": (8, 7), "C64": (8, 23),
    "F8_E4M3": (4, 3), "F8_E5M2": (5, 2), "F8_E4M3FNUZ": (4, 3), "F8_E5M2FNUZ": (5, 2),
    "F4": (2, 1),
}  # fmt: skip

# How NumPy holds one element; of C64, one part.
NUMPY: dict[str, Any] = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": ml_dtypes.bfloat16, "C64": "<f4",
    "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2,
    "F8_E4M3FNUZ": ml_dtypes.float8_e4m3fnuz, "F8_E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "F8_E8M0": ml_dtypes.float8_e8m0fnu, "F4": ml_dtypes.float4_e2m1fn,
    "I8": "<i1", "I16": "<i2", "I32": "<i4", "I64": "<i8",
    "U8": "<u1", "U16": "<u2", "U32": "<u4", "U64": "<u8", "BOOL": "<u1",
}  # fmt: skip

DTYPES = tuple(NUMPY)
REAL = tuple(dtype for dtype in DTYPES if dtype != "C64")  # may be compared across dtypes
BITS = {dtype: 4 if dtype == "F4" else 8 * np.dtype(NUMPY[dtype]).itemsize for dtype in DTYPES}

dtypes = st.sampled_from(DTYPES)
real_dtypes = st.sampled_from(REAL)


def pack(codes: list[int], dtype: str) -> bytes:
    """Lay encoded elements out as a tensor does: little-endian, F4 low half first."""
    if dtype == "F4":
        return bytes(low | high << 4 for low, high in zip(codes[::2], codes[1::2], strict=True))
    return b"".join(code.to_bytes(BITS[dtype] // 8, "little") for code in codes)


def encode(values: Any, dtype: str) -> bytes:
    """Round numbers to a dtype; integers take what fits, NaN becomes 0 there."""
    values = np.asarray(values, np.float64)
    if dtype == "BOOL":
        return (values > 0).astype("<u1").tobytes()
    if dtype[0] in "IU":
        limits = np.iinfo(NUMPY[dtype])
        whole = np.rint(np.nan_to_num(values)).clip(limits.min, limits.max // 4 * 3)
        return whole.astype(NUMPY[dtype]).tobytes()
    with np.errstate(all="ignore"):
        encoded = values.astype(NUMPY[dtype]).view(np.uint8)
    if dtype == "F4":
        return (encoded[::2] | encoded[1::2] << 4).tobytes()
    return encoded.tobytes()


def decode(encoded: bytes, dtype: str) -> Any:
    """Read encoded elements as ml_dtypes does."""
    raw = np.frombuffer(encoded, np.uint8)
    if dtype == "F4":
        raw = np.stack((raw & 15, raw >> 4), axis=-1).reshape(-1)
    if dtype == "BOOL":
        return (raw != 0).astype(np.float64)
    with np.errstate(all="ignore"):
        return raw.view(NUMPY[dtype]).astype(np.float64)


def specials(dtype: str) -> list[int]:
    """Name the codes where formats have their corners."""
    bits = BITS[dtype]
    sign = 1 << (bits - 1)
    positive = {0, 1, 2, 3, sign - 1, sign - 2}
    if dtype in FLOATS:
        exponent, mantissa = FLOATS[dtype]
        infinite = ((1 << exponent) - 1) << mantissa
        one = ((1 << (exponent - 1)) - 1) << mantissa
        quiet = infinite | 1 << (mantissa - 1)
        normal = 1 << mantissa
        positive |= {infinite, infinite - 1, infinite + 1, quiet, quiet | 1, one, one + 1}
        positive |= {normal, normal - 1, normal + 1}
    return sorted(positive | {code | sign for code in positive})


def codes(dtype: str) -> st.SearchStrategy[int]:
    """Draw encoded elements: corners, values about ±1, any bits at all."""
    bits = BITS[dtype]
    anything = st.integers(0, (1 << bits) - 1)
    if dtype not in FLOATS:
        near = st.integers(-9, 9).map(lambda value: value & ((1 << bits) - 1))
        return st.one_of(near, st.sampled_from(specials(dtype)), anything)
    exponent, mantissa = FLOATS[dtype]
    one = ((1 << (exponent - 1)) - 1) << mantissa
    octave = 1 << mantissa
    near = st.builds(
        lambda offset, sign: (one + offset) | sign << (bits - 1),
        st.integers(-octave, octave),
        st.integers(0, 1),
    )
    return st.one_of(near, near, st.sampled_from(specials(dtype)), anything)


def lengths(dtype: str, most: int = 24) -> st.SearchStrategy[int]:
    """Draw a number of elements that fills whole bytes and whole complex numbers."""
    step = 2 if dtype in {"F4", "C64"} else 1
    return st.integers(0, most // step).map(lambda n: n * step)


@st.composite
def buffers(draw: st.DrawFn, dtype: str, n: int) -> bytes:
    """Draw a tensor of n elements."""
    return pack(draw(st.lists(codes(dtype), min_size=n, max_size=n)), dtype)


@st.composite
def pairs(draw: st.DrawFn, dtype: str) -> tuple[bytes, bytes]:
    """Draw two tensors of one dtype: equal, with a few changes, or all changed."""
    n = draw(lengths(dtype))
    left = draw(st.lists(codes(dtype), min_size=n, max_size=n))
    kind = draw(st.sampled_from(["equal", "few changes", "all changed"]))
    right = list(left)
    if kind == "few changes" and n:
        for at in draw(st.lists(st.integers(0, n - 1), max_size=3)):
            right[at] = draw(codes(dtype))
    elif kind == "all changed":
        right = draw(st.lists(codes(dtype), min_size=n, max_size=n))
    return pack(left, dtype), pack(right, dtype)


@st.composite
def mixed_pairs(draw: st.DrawFn) -> tuple[bytes, bytes, str, str]:
    """Draw two tensors of two dtypes: the right rounded from the left, or unrelated."""
    left_dtype, right_dtype = draw(real_dtypes), draw(real_dtypes)
    n = draw(lengths("F4"))
    left = draw(buffers(left_dtype, n))
    if draw(st.booleans()):
        return left, encode(decode(left, left_dtype), right_dtype), left_dtype, right_dtype
    return left, draw(buffers(right_dtype, n)), left_dtype, right_dtype
