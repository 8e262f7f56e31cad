"""The element types of tensors, named as safetensors names them."""

from .errors import UnknownName

# Bits of one element. F4 and F6 are packed: their tensors must fill whole bytes.
BITS: dict[str, int] = {
    "BOOL": 8,
    "U8": 8,
    "I8": 8,
    "U16": 16,
    "I16": 16,
    "U32": 32,
    "I32": 32,
    "U64": 64,
    "I64": 64,
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "F8_E4M3": 8,
    "F8_E5M2": 8,
    "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8,
    "F8_E8M0": 8,
    "F16": 16,
    "BF16": 16,
    "F32": 32,
    "F64": 64,
    "C64": 64,
}

# Of each float type: the least exponent of a normal number, and the bits of the mantissa. The unit
# in the last place of x is 2^(max(exponent of x, least) - bits).
ROUNDING: dict[str, tuple[int, int]] = {
    "F64": (-1022, 52),
    "F32": (-126, 23),
    "F16": (-14, 10),
    "BF16": (-126, 7),
    "F8_E4M3": (-6, 3),
    "F8_E5M2": (-14, 2),
    "F8_E4M3FNUZ": (-7, 3),
    "F8_E5M2FNUZ": (-15, 2),
    "F8_E8M0": (-127, 0),
    "F4": (0, 1),
}

# By the names of NumPy, which PyTorch, JAX and ml_dtypes use as well.
BY_NUMPY_NAME: dict[str, str] = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "uint16": "U16",
    "int16": "I16",
    "uint32": "U32",
    "int32": "I32",
    "uint64": "U64",
    "int64": "I64",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
    "complex64": "C64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2fnuz": "F8_E5M2FNUZ",
    "float8_e8m0fnu": "F8_E8M0",
}

# Only their size is known: writers pack six-bit floats in several ways, so bytes are compared.
OPAQUE = frozenset({"F6_E2M3", "F6_E3M2"})

FLOATS = frozenset(name for name in BITS if name[0] == "F" or name in {"BF16", "C64"})


def bits(dtype: str) -> int:
    """Return the number of bits per element.

    >>> bits("BF16")
    16
    """
    try:
        return BITS[dtype]
    except KeyError:
        raise UnknownName("dtype", dtype, BITS) from None
