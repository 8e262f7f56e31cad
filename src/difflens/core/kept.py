"""Records of results that are stored: checked when created, to JSON and back, numbers finite.

A caller may pass numpy numbers, lists, datetimes or dicts; a record holds plain data. Every error
is a `SnapshotError` that names the field.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from itertools import pairwise
from math import inf, isfinite, isnan
from numbers import Integral, Real
from operator import is_
from sys import float_info
from typing import Any, ClassVar, Literal, Self, TypeVar

import msgspec

from .errors import InvalidConfig, SnapshotError
from .findings import Missing
from .record import Record

# A number as it was logged: one that is not finite is stored as a word.
NotFinite = Literal["NaN", "Infinity", "-Infinity"]
Number = int | float | NotFinite

LONGEST_KEY = 255  # characters of a name or version: every database can index these
LARGEST_COUNT = 2**64 - 1

KeptT = TypeVar("KeptT", bound="Kept")


class Kept(Record, frozen=True, kw_only=True):
    """The base of records that are stored: checks, JSON, and an HTML table for notebooks."""

    as_logged: ClassVar[frozenset[str]] = (
        frozenset()
    )  # fields that may hold words for non-finite numbers
    says_why: ClassVar[tuple[str, str] | None] = (
        None  # `needs` and `why` for a null without a reason
    )

    def __post_init__(self) -> None:
        """Convert all fields to plain data, and refuse values that cannot be true."""
        for field in self.__struct_fields__:
            value = getattr(self, field)
            converted = to_plain(field, value, as_logged=field in self.as_logged)
            if converted is not value:
                msgspec.structs.force_setattr(self, field, converted)
        if self.says_why:
            self._explain(*self.says_why)

    def _explain(self, needs: str, why: str) -> None:
        """Add a reason for every null, and remove reasons of fields that are known."""
        reasons: tuple[Missing, ...] = getattr(self, "missing", ())
        valid = [each for each in reasons if getattr(self, each.field, None) is None]
        added = [Missing(field, needs, why) for field in self.unexplained()]
        if added or len(valid) < len(reasons):
            msgspec.structs.force_setattr(self, "missing", (*valid, *added))

    def unexplained(self) -> list[str]:
        """List the fields that are null without a reason in `missing`."""
        explained = {each.field for each in getattr(self, "missing", ())}
        return [
            field
            for field in self.__struct_fields__
            if getattr(self, field) is None and field not in explained
        ]

    def to_json(self) -> bytes:
        """Return the record as JSON."""
        return msgspec.json.encode(self)

    def _repr_html_(self) -> str:
        """Return a table of the fields for a notebook; nested ones open on a click."""
        return _as_html(self.to_dict())

    @classmethod
    def from_json(cls, data: bytes | str) -> Self:
        """Read a record from JSON; ignore unknown fields."""
        try:
            return msgspec.json.decode(data, type=cls)
        except msgspec.MsgspecError as error:
            raise SnapshotError(f"not a {cls.__name__}: {error}") from error

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read a record from dicts and lists; ignore unknown fields."""
        return made(cls, data)


class Settings(Kept, frozen=True, kw_only=True):
    """The base of settings: checked like stored records; errors are `InvalidConfig`."""

    def __post_init__(self) -> None:
        """Refuse invalid settings."""
        try:
            super().__post_init__()
            self._checked()
        except SnapshotError as error:
            raise InvalidConfig(error.reason, hint=error.hint) from None

    def _checked(self) -> None:
        """Check what the types do not express."""


def _as_html(value: Any) -> str:
    from html import escape

    if isinstance(value, (list, tuple)):
        value = dict(enumerate(value))
    if not isinstance(value, dict):
        return escape("unknown" if value is None else str(value))
    rows = "".join(
        f"<tr><th>{escape(str(key))}</th><td>{_folded(part)}</td></tr>"
        for key, part in value.items()
    )
    return f"<table>{rows}</table>"


def _folded(part: Any) -> str:
    if not isinstance(part, (dict, list, tuple)) or not part:
        return _as_html(part) if part not in ({}, [], ()) else "none"
    return f"<details><summary>{len(part)}</summary>{_as_html(part)}</details>"


def made(kind: type[KeptT], data: Any) -> KeptT:
    """Return a record of the kind: the argument, or one read from dicts and lists."""
    if isinstance(data, kind):
        return data
    try:
        return msgspec.convert(to_plain(kind.__name__, data, as_logged=True), kind)
    except msgspec.ValidationError as error:
        raise SnapshotError(f"not a {kind.__name__}: {error}") from error


def to_plain(field: str, value: Any, *, as_logged: bool = False) -> Any:
    """Convert a value to plain data; return a value that needs no change itself."""
    kind = type(value)
    if kind is bool or kind is int or value is None:
        return value
    if kind is str:
        return value if value.isascii() else text(field, value)
    if kind is float:
        return _float(field, value, as_logged)
    if isinstance(value, Mapping):
        return {
            _key(field, key): to_plain(f"{field}.{key}", each, as_logged=as_logged)
            for key, each in value.items()
        }
    if isinstance(value, (list, tuple)):
        return _tuple(field, value, as_logged)
    return _plain_number(field, value, as_logged)


def _plain_number(field: str, value: Any, as_logged: bool) -> Any:
    """Convert arrays and numbers of other libraries to those of Python; leave other values."""
    if hasattr(value, "tolist"):
        return to_plain(field, value.tolist(), as_logged=as_logged)
    if isinstance(value, Integral):
        return int(value)
    return _float(field, float(value), as_logged) if isinstance(value, Real) else value


def _tuple(field: str, value: list[Any] | tuple[Any, ...], as_logged: bool) -> tuple[Any, ...]:
    items = tuple(to_plain(field, each, as_logged=as_logged) for each in value)
    if isinstance(value, tuple) and all(map(is_, items, value)):
        return value
    return items


def _key(field: str, key: object) -> str:
    if not isinstance(key, str):
        raise SnapshotError(f"{field} has the key {key!r}; keys must be text")
    return key


def _float(field: str, value: float, as_logged: bool) -> Number:
    if isfinite(value):
        return value
    if as_logged:
        return "NaN" if isnan(value) else "Infinity" if value == inf else "-Infinity"
    raise SnapshotError(
        f"{field} is {value}; it must be a finite number", hint="leave it out if it is not known"
    )


def timestamp(field: str, value: object) -> str:
    """Return a time as UTC in RFC 3339; refuse one without a time zone."""
    moment = value
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            moment = None
    if not isinstance(moment, datetime):
        raise SnapshotError(f"{field} is {value!r}, not a time in RFC 3339")
    if moment.tzinfo is None:
        raise SnapshotError(f"{field} is {value!s}, which has no time zone", hint="add Z for UTC")
    try:
        return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    except OverflowError:
        raise SnapshotError(f"{field} is {value!s}, which is out of range for UTC") from None


def now() -> str:
    """Return the current time as UTC in RFC 3339."""
    return timestamp("now", datetime.now(UTC))


def key_part(field: str, value: object, without: str = "") -> None:
    """Refuse a name or version that a store or a command line cannot hold."""
    if not isinstance(value, str) or not value.strip():
        is_empty = value is None or isinstance(value, str)
        raise SnapshotError(f"{field} is empty" if is_empty else f"{field} is {value!r}, not text")
    if len(value) > LONGEST_KEY:
        raise SnapshotError(f"{field} has {len(value)} characters, {LONGEST_KEY} are allowed")
    if not value.isprintable():
        raise SnapshotError(f"{field} is {value!a}; it must be printable")
    for letter in without:
        if letter in value:
            raise SnapshotError(
                f"{field} is {value!r}; {letter!r} separates a name from its version"
            )


def text(field: str, value: object) -> str:
    """Return a text; refuse what is not text, or cannot be written as UTF-8."""
    if not isinstance(value, str):
        raise SnapshotError(f"{field} is {value!r}, not text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise SnapshotError(f"{field} is {value!a}, which is not valid Unicode") from None
    return value


def number(
    field: str, value: object, least: float = -inf, most: float = inf, unit: str = ""
) -> None:
    """Refuse what is not a number within the bounds; None is unknown, and accepted."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise SnapshotError(f"{field} is {value!r}, not a number")
    if abs(value) > float_info.max:
        raise SnapshotError(f"{field} is too large for a number of 64 bits")
    if not least <= value <= most:
        bounds = f"at least {least:g}" if most == inf else f"between {least:g} and {most:g}"
        raise SnapshotError(f"{field} is {value!r}{unit}; it must be {bounds}")


def count(field: str, value: object, least: int = 0) -> None:
    """Refuse what is not a whole number of at least `least`; None is unknown, and accepted."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int):
        raise SnapshotError(f"{field} is {value!r}, not a whole number")
    if not least <= value <= LARGEST_COUNT:
        raise SnapshotError(f"{field} is {value}; it must lie between {least} and {LARGEST_COUNT}")


def ascending(named: Iterable[tuple[str, float | None]]) -> None:
    """Refuse numbers that are not in ascending order; None is ignored."""
    known = [(name, value) for name, value in named if value is not None]
    for (before, low), (after, high) in pairwise(known):
        if low > high:
            raise SnapshotError(f"{before} is {low}, above {after}, which is {high}")


def one_of(field: str, value: object, known: Iterable[object]) -> None:
    """Refuse a value that is not in the list."""
    words = list(known)
    if value not in words:
        raise SnapshotError(f"{field} is {value!r}; it must be one of {', '.join(map(str, words))}")
