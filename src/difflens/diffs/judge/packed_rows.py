"""The rows of a report, packed: some 15 to 350 bytes each instead of 1,200.

A million tensors have a million rows, and most renderers look at one row at a time. Complete pages
are encoded and compressed; a page is unpacked where somebody reads it. Reports of ordinary models
do not fill a page: their rows are a plain tuple.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, cast, overload

import msgspec

from difflens.core.records import Row

_PAGE = 512  # rows

Page = bytes | tuple[Row, ...]


class PackedRows(Sequence[Row]):
    """Rows in the order they were added; equal to a tuple of the same rows."""

    def __init__(self) -> None:
        """Begin without rows."""
        self._pages: list[Page] = []
        self._last: list[Row] = []  # not yet a page

    def append(self, row: Row) -> None:
        """Add a row."""
        self._last.append(row)
        if len(self._last) == _PAGE:
            self._pages.append(_pack(tuple(self._last)))
            self._last.clear()

    def as_tuple(self) -> tuple[Row, ...]:
        """Return a plain tuple if the rows are few; else these rows, which behave as one."""
        return cast("tuple[Row, ...]", self) if self._pages else tuple(self._last)

    def __iter__(self) -> Iterator[Row]:
        """Yield every row; one page at a time is unpacked."""
        yield from chain.from_iterable(map(_unpack, self._pages))
        yield from self._last

    def __len__(self) -> int:
        """Count the rows."""
        return len(self._pages) * _PAGE + len(self._last)

    @overload
    def __getitem__(self, place: int) -> Row: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Row, ...]: ...
    def __getitem__(self, place: int | slice) -> Row | tuple[Row, ...]:
        """Return one row, or a tuple of several."""
        if isinstance(place, slice):
            return tuple(self[at] for at in range(*place.indices(len(self))))
        page, at = divmod(range(len(self))[place], _PAGE)
        return (_unpack(self._pages[page]) if page < len(self._pages) else self._last)[at]

    def __eq__(self, other: object) -> bool:
        """Compare row by row with another sequence."""
        if not isinstance(other, Sequence) or len(other) != len(self):
            return NotImplemented if not isinstance(other, Sequence) else False
        return all(map(Row.__eq__, self, other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Say how many there are."""
        return f"<{len(self)} rows>"


def _pack(rows: tuple[Row, ...]) -> Page:
    """Pack a page; leave it as it is if its rows would come back otherwise."""
    from zlib import compress

    if any(row.further for row in rows):  # plain data that may hold tuples
        return rows
    try:
        return compress(msgspec.msgpack.encode(rows), 1)
    except (TypeError, UnicodeEncodeError, OverflowError):  # such as a name with a lone surrogate
        return rows


def _unpack(page: Page) -> Sequence[Row]:
    if isinstance(page, tuple):
        return page
    from zlib import decompress

    rows: list[Row] = _DECODER.decode(decompress(page))
    return rows


_DECODER: Any = msgspec.msgpack.Decoder(list[Row])
