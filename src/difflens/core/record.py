"""What every record can do: become plain data or a table, and say in one line what it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import msgspec

from .errors import DifflensError

_LONGEST_REPR = 160  # characters
_UNSET: tuple[Any, ...] = (None, "", (), [], {})


class Record(msgspec.Struct, frozen=True):
    """What every record can do."""

    table_field: ClassVar[str] = ""  # its items are the rows of `to_pandas`

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain dicts, lists, strings and numbers."""
        return msgspec.to_builtins(self, enc_hook=_as_tuple)

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame: a row per tensor, layer or finding, or one row in all.

        Fields of nested records are columns with a dot: `statistics.mean`.
        """
        records = getattr(self, self.table_field) if self.table_field else (self,)
        return data_frame(record.to_dict() for record in records)

    def __repr__(self) -> str:
        """Return one line with the fields that are set; counts stand for long and nested ones."""
        fields = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return short_repr(self, {name: value for name, value in fields if value not in _UNSET})


def _as_tuple(value: object) -> tuple[Any, ...]:
    """Convert a sequence that makes its items as they are asked for."""
    if isinstance(value, Sequence):
        return tuple(value)
    raise NotImplementedError(f"a {type(value).__name__} is no plain data")


def data_frame(rows: Iterable[dict[str, Any]]) -> Any:
    """Return a pandas DataFrame of rows of plain data."""
    try:
        import pandas as pd
    except ImportError as error:
        raise DifflensError("to_pandas needs pandas", hint="run: pip install pandas") from error
    return pd.json_normalize(list(rows))


def short_repr(record: object, fields: dict[str, Any]) -> str:
    """Write a record and some of its fields on one line."""
    shown = ", ".join(f"{name}={_short(value)}" for name, value in fields.items())
    if len(shown) > _LONGEST_REPR:
        shown = f"{shown[:_LONGEST_REPR]}…"
    return f"{type(record).__name__}({shown})"


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Record):
        return f"<{type(value).__name__}>"
    if isinstance(value, (tuple, list, dict)):
        is_long = len(value) > 4 or any(isinstance(each, (Record, tuple, dict)) for each in value)
        return f"<{len(value)} items>" if is_long else repr(value)
    return repr(value)
