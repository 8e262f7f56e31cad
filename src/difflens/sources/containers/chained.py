"""Compressed members in a row, as `cat a.gz b.gz` makes them: one stream when unpacked."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import NoReturn, Protocol

from ...errors import CorruptFile, LimitExceeded
from ...escape import visible
from ...protocols import ModelFile
from .stream import damage

_STEP = 1 << 16


class Coder(Protocol):
    """What the decompressors of Python's bz2, lzma and zstd have in common."""

    @property
    def eof(self) -> bool:
        """Has the member ended?"""

    @property
    def needs_input(self) -> bool:
        """Is all that was handed in used up?"""

    @property
    def unused_data(self) -> bytes:
        """What follows the member's end."""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """Give at most so many bytes."""


class Gzip:
    """zlib's decompressor in the manner of the others; it can be copied as well."""

    def __init__(self) -> None:
        """Begin a member; zlib reads its header and checks its end."""
        self._coder = zlib.decompressobj(16 + zlib.MAX_WBITS)

    @property
    def eof(self) -> bool:
        """Has the member ended?"""
        return self._coder.eof

    @property
    def needs_input(self) -> bool:
        """Is all that was handed in used up?"""
        return not self._coder.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        """What follows the member's end."""
        return self._coder.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """Give at most so many bytes."""
        return self._coder.decompress(self._coder.unconsumed_tail + data, max_length)

    def copy(self) -> Gzip:
        """Give a second one in the same state."""
        other = Gzip()
        other._coder = self._coder.copy()
        return other


class Chained:
    """A cursor over members in a row; keeps to the limits while it unpacks."""

    def __init__(
        self,
        packed: ModelFile,
        make: Callable[[], Coder],
        about: str,
        errors: tuple[type[Exception], ...],
    ) -> None:
        """Begin at the first byte; `errors` are what the decompressor raises on damage."""
        self._packed = packed
        self._make = make
        self._about = about
        self._errors = errors
        self._coder = make()
        self._at = 0
        self._given = 0
        self._limits = packed.limit("compressed_bytes"), packed.limit("compressed_ratio")

    def more(self, wanted: int) -> bytes:
        """Give the next bytes; at the end of a member go on with the one behind it."""
        parts = []
        while wanted:
            data = b""
            if self._coder.eof:
                data = self._coder.unused_data or self._next()
                if not data:
                    break
                self._coder = self._make()
            elif self._coder.needs_input:
                data = self._next()
            part = self._step(data, wanted)
            wanted -= len(part)
            parts.append(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def copy(self) -> Chained | None:
        """Give a second cursor at this place, if the decompressor can be copied."""
        copied = getattr(self._coder, "copy", None)
        if copied is None:
            return None
        other = object.__new__(Chained)
        other.__dict__.update(self.__dict__)
        other._coder = copied()
        return other

    def _next(self) -> bytes:
        stop = min(self._at + _STEP, self._packed.size)
        data = self._packed.read(self._at, stop)
        self._at = stop
        return data

    def _step(self, data: bytes, wanted: int) -> bytes:
        try:
            part = self._coder.decompress(data, wanted)
        except self._errors as error:
            self._fail(damage(error))
        if not part and not data and not self._coder.eof and self._at == self._packed.size:
            self._fail("ends before its data does")
        self._given += len(part)
        most, ratio = self._limits
        if self._given > most and self._given > ratio * self._at:
            reason = f"{self._about} unpacks to more than {ratio} times its size"
            hint = "raise it with --limit compressed_ratio=N if you trust the file"
            raise LimitExceeded(visible(str(self._packed.path)), reason, hint=hint)
        return part

    def _fail(self, what: str) -> NoReturn:
        where = visible(str(self._packed.path))
        hint = "the download may be incomplete" if what.startswith("ends") else ""
        raise CorruptFile(where, f"{self._about} {what}", hint=hint)
