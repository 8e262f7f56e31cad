"""Attributes as text: strings and numbers; what is neither is named, not shown."""

from collections.abc import Iterable
from itertools import count, takewhile
from math import prod
from typing import Any

from .coding import KINDS
from .wire import say

LONGEST, _LONGEST_OF_ALL = 1 << 20, 8 << 20  # characters handed on; the parent shows far fewer
_LARGEST = 256 << 20
_MOST = 1_000_000
_MOST_NAMED, _LONGEST_NAME = 1000, 1000
_PLAIN = (0, 1, 3, 8, 9)  # integers, floats, strings, enumerations, strings of variable length


def value(thing: Any, name: str) -> str | list[str]:
    """Give an attribute as text, or as texts where it is a list of them."""
    import h5py  # type: ignore[import-untyped]

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
    return [plain(each) for each in found] if shape else plain(found)


def gathered(groups: Iterable[Any]) -> dict[str, tuple[str, int]]:
    """Give all attributes of some groups: the beginning of each, and how long it is."""
    found: dict[str, tuple[str, int]] = {}
    left = _LONGEST_OF_ALL
    for group in groups:
        for name in list(group.attrs.keys())[:_MOST_NAMED]:
            each = value(group, name)
            whole = each if isinstance(each, str) else ", ".join(each[:_MOST_NAMED])
            kept = whole[: min(LONGEST, left)]
            left -= len(kept)
            found.setdefault(plain(name)[:_LONGEST_NAME], (kept, len(whole)))
            say(at_work=len(found))
    return found


def text(thing: Any, name: str) -> str:
    """Give an attribute that should be one short word; nothing where there is none."""
    found = value(thing, name) if name in thing.attrs else ""
    return found if isinstance(found, str) else ""


def texts(thing: Any, name: str) -> list[str]:
    """Give a list of names; Keras cuts one that is too long for an attribute into numbered ones."""
    numbered = takewhile(lambda part: part in thing.attrs, (f"{name}{i}" for i in count()))
    parts = [name] if name in thing.attrs else list(numbered)
    found = [value(thing, part) for part in parts]
    return [each for part in found if isinstance(part, list) for each in part]


def plain(found: Any) -> str:
    """Give a scalar as text that any channel can carry."""
    if isinstance(found, bytes):
        found = found.decode("utf-8", "surrogateescape")
    return str(found).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _is_odd(found: Any) -> bool:
    """Is it a list of lists, or of references?"""
    return getattr(found, "dtype", None) is not None and not (
        found.dtype.kind in "biufSU" or all(isinstance(each, str | bytes) for each in found.flat)
    )
