"""Records that are kept: checked when they are made, JSON both ways, numbers always finite.

What a user hands in may be numpy numbers, lists, datetimes or plain maps; what a record holds is
plain. Every refusal is a `SnapshotError` that names the field.
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
from .records import Missing, Record

# A number a user may have logged as it came: one that is not finite is kept as its word.
NotFinite = Literal["NaN", "Infinity", "-Infinity"]
Number = int | float | NotFinite

LONGEST_KEY = 255  # characters of a name or version: what every database can index
LARGEST_COUNT = 2**64 - 1

KeptT = TypeVar("KeptT", bound="Kept")


class Kept(Record, frozen=True, kw_only=True):
    """What every record of models and their versions can do, beside being a record."""

    as_logged: ClassVar[frozenset[str]] = frozenset()  # fields that may hold words for non-finite
    says_why: ClassVar[tuple[str, str] | None] = None  # needs, why: of a null that has no reason

    def __post_init__(self) -> None:
        """Turn what was handed in into plain data and refuse what cannot be a fact."""
        for field in self.__struct_fields__:
            given = getattr(self, field)
            made = plain(field, given, as_logged=field in self.as_logged)
            if made is not given:
                msgspec.structs.force_setattr(self, field, made)
        if self.says_why:
            self._explain(*self.says_why)

    def _explain(self, needs: str, why: str) -> None:
        """Give every null its reason, and no reason to what is known."""
        found: tuple[Missing, ...] = getattr(self, "missing", ())
        kept = [each for each in found if getattr(self, each.field, None) is None]
        added = [Missing(field, needs, why) for field in self.unexplained()]
        if added or len(kept) < len(found):
            msgspec.structs.force_setattr(self, "missing", (*kept, *added))

    def unexplained(self) -> list[str]:
        """Name the fields that are null without a reason in `missing`."""
        told = {each.field for each in getattr(self, "missing", ())}
        return [
            field
            for field in self.__struct_fields__
            if getattr(self, field) is None and field not in told
        ]

    def to_json(self) -> bytes:
        """Give it as JSON."""
        return msgspec.json.encode(self)

    def _repr_html_(self) -> str:
        """Show it in a notebook: a table of its fields; what is nested opens on a click."""
        return _as_html(self.to_dict())

    @classmethod
    def from_json(cls, data: bytes | str) -> Self:
        """Read it from JSON; fields that are not known are left out."""
        try:
            return msgspec.json.decode(data, type=cls)
        except msgspec.MsgspecError as error:
            raise SnapshotError(f"no {cls.__name__}: {error}") from error

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read it from plain maps and lists; fields that are not known are left out."""
        return made(cls, data)


class Settings(Kept, frozen=True, kw_only=True):
    """What somebody chose: checked like all that is kept, and refused as `InvalidConfig`."""

    def __post_init__(self) -> None:
        """Refuse what has no meaning."""
        try:
            super().__post_init__()
            self._checked()
        except SnapshotError as error:
            raise InvalidConfig(error.reason, hint=error.hint) from None

    def _checked(self) -> None:
        """Check what the types do not say."""


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
    """Give a record of the kind: the one handed in, or one read from plain maps and lists."""
    if isinstance(data, kind):
        return data
    try:
        return msgspec.convert(plain(kind.__name__, data, as_logged=True), kind)
    except msgspec.ValidationError as error:
        raise SnapshotError(f"no {kind.__name__}: {error}") from error


def plain(field: str, value: Any, *, as_logged: bool = False) -> Any:
    """Give the same as plain data; what needs no change is given back itself."""
    kind = type(value)
    if kind is bool or kind is int or value is None:
        return value
    if kind is str:
        return value if value.isascii() else text(field, value)
    if kind is float:
        return _float(field, value, as_logged)
    if isinstance(value, Mapping):
        return {_key(field, key): plain(f"{field}.{key}", each, as_logged=as_logged)
                for key, each in value.items()}  # fmt: skip
    if isinstance(value, (list, tuple)):
        return _tuple(field, value, as_logged)
    return _plain_number(field, value, as_logged)


def _plain_number(field: str, value: Any, as_logged: bool) -> Any:
    """Turn arrays and numbers of other libraries into those of Python; leave the rest."""
    if hasattr(value, "tolist"):
        return plain(field, value.tolist(), as_logged=as_logged)
    if isinstance(value, Integral):
        return int(value)
    return _float(field, float(value), as_logged) if isinstance(value, Real) else value


def _tuple(field: str, value: list[Any] | tuple[Any, ...], as_logged: bool) -> tuple[Any, ...]:
    items = tuple(plain(field, each, as_logged=as_logged) for each in value)
    if isinstance(value, tuple) and all(map(is_, items, value)):
        return value
    return items


def _key(field: str, key: object) -> str:
    if not isinstance(key, str):
        raise SnapshotError(f"{field} has the key {key!r}; keys are text")
    return key


def _float(field: str, value: float, as_logged: bool) -> Number:
    if isfinite(value):
        return value
    if as_logged:
        return "NaN" if isnan(value) else "Infinity" if value == inf else "-Infinity"
    raise SnapshotError(
        f"{field} is {value}; it must be a finite number", hint="leave it out where it is not known"
    )


def timestamp(field: str, value: object) -> str:
    """Give a moment as UTC in RFC 3339; refuse one without a time zone."""
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
        raise SnapshotError(f"{field} is {value!s}, which no UTC time can say") from None


def now() -> str:
    """Give this moment as UTC in RFC 3339."""
    return timestamp("now", datetime.now(UTC))


def key_part(field: str, value: object, without: str = "") -> None:
    """Refuse a name or version that no store could hold or no command could say."""
    if not isinstance(value, str) or not value.strip():
        raise SnapshotError(f"{field} is empty" if value in ("", None) or isinstance(value, str)
                            else f"{field} is {value!r}, not text")  # fmt: skip
    if len(value) > LONGEST_KEY:
        raise SnapshotError(f"{field} has {len(value)} characters, {LONGEST_KEY} are allowed")
    if not value.isprintable():
        raise SnapshotError(f"{field} is {value!a}; it must be printable")
    for letter in without:
        if letter in value:
            raise SnapshotError(f"{field} is {value!r}; {letter!r} parts a name from its version")


def text(field: str, value: object) -> str:
    """Give it back; refuse what is not text, or text that cannot be written down as UTF-8."""
    if not isinstance(value, str):
        raise SnapshotError(f"{field} is {value!r}, not text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise SnapshotError(f"{field} is {value!a}, which is no Unicode text") from None
    return value


def number(
    field: str, value: object, least: float = -inf, most: float = inf, unit: str = ""
) -> None:
    """Refuse what is not a number within the bounds; None is not known, and fine."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise SnapshotError(f"{field} is {value!r}, not a number")
    if abs(value) > float_info.max:
        raise SnapshotError(f"{field} is too large for a number of 64 bits")
    if not least <= value <= most:
        wanted = f"at least {least:g}" if most == inf else f"between {least:g} and {most:g}"
        raise SnapshotError(f"{field} is {value!r}{unit}; it must be {wanted}")


def count(field: str, value: object, least: int = 0) -> None:
    """Refuse what is not a whole number from `least` on; None is not known, and fine."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int):
        raise SnapshotError(f"{field} is {value!r}, not a whole number")
    if not least <= value <= LARGEST_COUNT:
        raise SnapshotError(f"{field} is {value}; it must lie between {least} and {LARGEST_COUNT}")


def ascending(named: Iterable[tuple[str, float | None]]) -> None:
    """Refuse numbers that do not ascend; those not known are passed over."""
    known = [(name, value) for name, value in named if value is not None]
    for (before, low), (after, high) in pairwise(known):
        if low > high:
            raise SnapshotError(f"{before} is {low}, above {after}, which is {high}")


def one_of(field: str, value: object, known: Iterable[object]) -> None:
    """Refuse a word that is none of those known."""
    words = list(known)
    if value not in words:
        raise SnapshotError(f"{field} is {value!r}; it is one of {', '.join(map(str, words))}")
