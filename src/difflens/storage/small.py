"""Small remote files, such as a config: read completely at once, and remembered for a minute.

Several readers open the same ones, one after another: each would ask the server again.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Hashable, Mapping

from difflens.core.addresses import Address
from difflens.core.limits import limit_of
from difflens.core.protocols import ModelFile

from .remote import open_file

_LARGEST = 32 * 1024**2  # bytes; larger files are read by range
_MOST_BYTES = 64 * 1024**2  # of all that are remembered
_SECONDS = 60.0


class SmallFile:
    """A file that is in memory."""

    def __init__(
        self, path: Address, data: bytes, content_key: Hashable, limits: Mapping[str, int]
    ) -> None:
        """Store its bytes."""
        self.path = path
        self.data = data
        self.size = len(data)
        self.content_key = content_key
        self._limits = limits

    def read(self, start: int, stop: int) -> bytes:
        """Return bytes [start, stop)."""
        return self.data[start:stop]

    def read_into(self, start: int, buffer: memoryview) -> int:
        """Copy bytes from `start` on."""
        part = self.data[start : start + len(buffer)]
        buffer[: len(part)] = part
        return len(part)

    def limit(self, name: str) -> int:
        """Return a limit by name, with the value of the user if there is one."""
        return limit_of(self._limits, name)

    def confirm(self) -> None:
        """It was read at once: there is nothing to ask."""

    def close(self) -> None:
        """It stays in memory for whoever opens it next."""


class SmallFiles:
    """The files that were read lately; those read longest ago go first."""

    def __init__(self) -> None:
        """Begin with none."""
        self._lock = threading.Lock()
        self._files: OrderedDict[Address, tuple[float, SmallFile]] = OrderedDict()

    def open(self, address: Address, limits: Mapping[str, int] | None) -> ModelFile:
        """Return the file, from memory if it was read less than a minute ago."""
        with self._lock:
            since, known = self._files.get(address, (0.0, None))
        if known is not None and time.monotonic() - since < _SECONDS:
            return SmallFile(address, known.data, known.content_key, limits or {})
        file = open_file(address, limits)
        if file.size > _LARGEST:
            return file
        try:
            small = SmallFile(address, file.read(0, file.size), file.content_key, limits or {})
        finally:
            file.close()
        with self._lock:
            self._files[address] = time.monotonic(), small
            self._files.move_to_end(address)
            while sum(each.size for _, each in self._files.values()) > _MOST_BYTES:
                self._files.popitem(last=False)
        return small

    def forget(self) -> None:
        """Let go of all."""
        with self._lock:
            self._files.clear()


SMALL_FILES = SmallFiles()
