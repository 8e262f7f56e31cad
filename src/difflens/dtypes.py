"""The element types of tensors, named as safetensors names them."""

from .errors import UnknownName

# Bits of one element. F4 and F6 are packed: their tensors must fill whole bytes.
BITS: dict[str, int] = {
    "BOOL": 8, "U8": 8, "I8": 8, "U16": 16, "I16": 16, "U32": 32, "I32": 32, "U64": 64, "I64": 64,
    "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
    "F8_E4M3": 8, "F8_E5M2": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "F8_E8M0": 8,
    "F16": 16, "BF16": 16, "F32": 32, "F64": 64, "C64": 64,
}  # fmt: skip

# Known by size, not by value: writers pack six-bit floats in several ways, so bytes are compared.
OPAQUE = frozenset({"F6_E2M3", "F6_E3M2"})

FLOATS = frozenset(name for name in BITS if name[0] == "F" or name in {"BF16", "C64"})


def bits(dtype: str) -> int:
    """Say how many bits one element takes.

    >>> bits("BF16")
    16
    """
    try:
        return BITS[dtype]
    except KeyError:
        raise UnknownName("dtype", dtype, BITS) from None
