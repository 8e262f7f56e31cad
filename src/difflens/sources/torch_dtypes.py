"""The element types of torch: what each is called here, and how wide it is in the file."""

from __future__ import annotations

from typing import NamedTuple


class Encoding(NamedTuple):
    """How elements lie in a storage: `numpy` reads them, `dtype` is what they are given out as.

    `wide` elements of `dtype` are given out for one stored; `stored` names what is not as it lies.
    """

    dtype: str
    size: int
    numpy: str
    wide: int = 1
    stored: str | None = None


# Numbers come out as they lie in the file; complex ones of other widths as the next exact thing.
ENCODINGS: dict[str, Encoding] = {
    "bool": Encoding("BOOL", 1, "u1"), "uint8": Encoding("U8", 1, "u1"),
    "int8": Encoding("I8", 1, "u1"), "uint16": Encoding("U16", 2, "u2"),
    "int16": Encoding("I16", 2, "u2"), "uint32": Encoding("U32", 4, "u4"),
    "int32": Encoding("I32", 4, "u4"), "uint64": Encoding("U64", 8, "u8"),
    "int64": Encoding("I64", 8, "u8"), "float16": Encoding("F16", 2, "u2"),
    "bfloat16": Encoding("BF16", 2, "u2"), "float32": Encoding("F32", 4, "u4"),
    "float64": Encoding("F64", 8, "u8"), "float8_e4m3fn": Encoding("F8_E4M3", 1, "u1"),
    "float8_e5m2": Encoding("F8_E5M2", 1, "u1"),
    "float8_e4m3fnuz": Encoding("F8_E4M3FNUZ", 1, "u1"),
    "float8_e5m2fnuz": Encoding("F8_E5M2FNUZ", 1, "u1"),
    "float8_e8m0fnu": Encoding("F8_E8M0", 1, "u1"),
    "float4_e2m1fn_x2": Encoding("F4", 1, "u1", 2),
    "complex64": Encoding("C64", 8, "f4"),
    "complex32": Encoding("C64", 4, "f2", 1, "complex32"),
    "complex128": Encoding("F64", 16, "f8", 2, "complex128"),
    "qint8": Encoding("F32", 1, "i1", 1, "qint8"),
    "quint8": Encoding("F32", 1, "u1", 1, "quint8"),
    "qint32": Encoding("F32", 4, "i4", 1, "qint32"),
}  # fmt: skip

QUANTISED = frozenset({"qint8", "quint8", "qint32"})
COMPLEX = frozenset({"complex64", "complex32", "complex128"})

# The class of a storage names the type of its elements; an untyped one counts bytes.
STORAGES: dict[str, str] = {
    "FloatStorage": "float32", "DoubleStorage": "float64", "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16", "LongStorage": "int64", "IntStorage": "int32",
    "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8", "BoolStorage": "bool",
    "ComplexFloatStorage": "complex64", "ComplexDoubleStorage": "complex128",
    "QInt8Storage": "qint8", "QUInt8Storage": "quint8", "QInt32Storage": "qint32",
    "QUInt4x2Storage": "quint4x2", "QUInt2x4Storage": "quint2x4", "UntypedStorage": "uint8",
}  # fmt: skip

# Bytes of an element we cannot decode, so that the storage's size can still be checked.
SIZES: dict[str, int] = {"quint4x2": 1, "quint2x4": 1}

# Other names of the same types, as torch itself exports them.
_ALIASES = {
    "float": "float32", "double": "float64", "half": "float16", "long": "int64", "int": "int32",
    "short": "int16", "cfloat": "complex64", "cdouble": "complex128", "chalf": "complex32",
}  # fmt: skip


def dtype_name(name: str) -> str:
    """Give the one name of a torch dtype.

    >>> dtype_name("half")
    'float16'
    """
    return _ALIASES.get(name, name)


def size_of(dtype: str) -> int | None:
    """Give the bytes of one element, or None where the type is unknown."""
    encoding = ENCODINGS.get(dtype)
    return encoding.size if encoding else SIZES.get(dtype)
