"""HDF5 types in our names (what is not known exactly is not guessed), and attributes as text."""

from collections.abc import Iterable
from itertools import count, takewhile
from math import prod
from typing import Any, NamedTuple

from .wire import say

_INTEGER, _FLOAT, _OPAQUE, _COMPOUND, _ENUM, _COMPLEX = 0, 1, 5, 6, 8, 11
KINDS = (
    "integer",
    "float",
    "time",
    "string",
    "bit field",
    "opaque",
    "compound",
    "reference",
    "enumeration",
    "variable length",
    "array",
    "complex",
)

# Bytes, (sign, exponent, its bits, mantissa, its bits), bias: nothing else is that float.
_FLOATS = {
    (2, (15, 10, 5, 0, 10), 15): "F16",
    (2, (15, 7, 8, 0, 7), 127): "BF16",
    (4, (31, 23, 8, 0, 23), 127): "F32",
    (8, (63, 52, 11, 0, 52), 1023): "F64",
}
_PAIRS = ((b"r", b"i"), (b"real", b"imag"))  # h5py's complex numbers, MATLAB's


class Coding(NamedTuple):
    """Our dtype, bytes of an element, width to swap, an axis more, what it is stored as."""

    dtype: str
    item: int
    swap: int = 0
    more: tuple[int, ...] = ()
    stored: str | None = None


def coding(kind: Any, note: str = "") -> Coding | None:
    """Say how a type stores numbers; None if it stores none that we know.

    `note` is the dtype a writer put beside the dataset: Keras keeps bfloat16 as two opaque bytes.
    """
    number, size = kind.get_class(), kind.get_size()
    if number in (_INTEGER, _FLOAT):
        return _number(kind, number, size)
    if number == _OPAQUE:
        return Coding("BF16", 2) if (size, note) == (2, "bfloat16") else None
    if number == _ENUM:
        return Coding("BOOL", 1) if size == 1 and _is_bool(kind) else None
    return _complex(kind, number, size) if number in (_COMPOUND, _COMPLEX) else None


def _number(kind: Any, number: int, size: int) -> Coding | None:
    """Name the integer or float type; None for one with padding bits."""
    if kind.get_precision() != 8 * size or kind.get_offset():
        return None
    if number == _INTEGER:
        dtype = f"{'I' if kind.get_sign() else 'U'}{8 * size}" if size in (1, 2, 4, 8) else None
    else:
        dtype = _FLOATS.get((size, tuple(kind.get_fields()), kind.get_ebias()))
    order = kind.get_order()
    if dtype is None or order not in (0, 1):
        return None
    if order == 0 or size == 1:
        return Coding(dtype, size)
    return Coding(dtype, size, size, (), f"{dtype} big-endian")


def _is_bool(kind: Any) -> bool:
    """Is this the enumeration h5py writes for booleans?"""
    if kind.get_nmembers() != 2:
        return False
    members = {kind.get_member_name(i): kind.get_member_value(i) for i in range(2)}
    return members == {b"FALSE": 0, b"TRUE": 1}


def _complex(kind: Any, number: int, size: int) -> Coding | None:
    """Say how complex numbers are stored; two F64 make one wider than any dtype of ours."""
    if number == _COMPLEX:
        parts = [kind.get_super()] * 2
    elif kind.get_nmembers() != 2:
        return None
    else:
        names = tuple(kind.get_member_name(i) for i in range(2))
        places = [kind.get_member_offset(i) for i in range(2)]
        if names not in _PAIRS or places != [0, size // 2]:
            return None
        parts = [kind.get_member_type(i) for i in range(2)]
    if any(part.get_class() != _FLOAT for part in parts):
        return None
    part, other = (coding(each) for each in parts)
    if part is None or part != other or 2 * part.item != size:
        return None
    big = " big-endian" if part.swap else ""
    if part.dtype == "F32":
        return Coding("C64", 8, part.swap, (), f"C64{big}" if big else None)
    return Coding("F64", 16, part.swap, (2,), f"complex128{big}") if part.dtype == "F64" else None


LONGEST, _LONGEST_OF_ALL = 1 << 20, 8 << 20  # characters handed on; the parent shows far fewer
_LARGEST = 256 << 20
_MOST = 1_000_000
_MOST_NAMED, _LONGEST_NAME = 1000, 1000
_PLAIN = (0, 1, 3, 8, 9)  # integers, floats, strings, enumerations, strings of variable length


def read_attribute(thing: Any, name: str) -> str | list[str]:
    """Return an attribute as text, or as texts where it is a list of them."""
    import h5py

    attribute = thing.attrs.get_id(name)
    kind = attribute.get_type().get_class()
    size = prod(attribute.shape or ()) * attribute.get_type().get_size()
    if size > _LARGEST:
        return f"({size} bytes, not shown)"
    found = thing.attrs[name] if kind in _PLAIN else None
    if isinstance(found, h5py.Empty):
        return ""
    shape = getattr(found, "shape", ())
    if found is None or len(shape) > 1 or (shape and shape[0] > _MOST) or _is_odd(found):
        return f"({KINDS[kind]}{f' of shape {shape}' if shape else ''}, not shown)"
    return [as_text(each) for each in found] if shape else as_text(found)


def gather_attributes(groups: Iterable[Any]) -> dict[str, tuple[str, int]]:
    """Return all attributes of some groups: the beginning of each, and how long it is."""
    found: dict[str, tuple[str, int]] = {}
    left = _LONGEST_OF_ALL
    for group in groups:
        for name in list(group.attrs.keys())[:_MOST_NAMED]:
            each = read_attribute(group, name)
            whole = each if isinstance(each, str) else ", ".join(each[:_MOST_NAMED])
            kept = whole[: min(LONGEST, left)]
            left -= len(kept)
            found.setdefault(as_text(name)[:_LONGEST_NAME], (kept, len(whole)))
            say(at_work=len(found))
    return found


def read_text(thing: Any, name: str) -> str:
    """Return an attribute that should be one short word; nothing if there is none."""
    found = read_attribute(thing, name) if name in thing.attrs else ""
    return found if isinstance(found, str) else ""


def read_texts(thing: Any, name: str) -> list[str]:
    """Return a list of names; Keras splits a list too long for one attribute into several."""
    numbered = takewhile(lambda part: part in thing.attrs, (f"{name}{i}" for i in count()))
    parts = [name] if name in thing.attrs else list(numbered)
    found = [read_attribute(thing, part) for part in parts]
    return [each for part in found if isinstance(part, list) for each in part]


def as_text(found: Any) -> str:
    """Return a scalar as text that any channel can carry."""
    if isinstance(found, bytes):
        found = found.decode("utf-8", "surrogateescape")
    return str(found).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _is_odd(found: Any) -> bool:
    """Is it a list of lists, or of references?"""
    return getattr(found, "dtype", None) is not None and not (
        found.dtype.kind in "biufSU" or all(isinstance(each, str | bytes) for each in found.flat)
    )
