"""A range of a file, as a file."""

from __future__ import annotations

from ...protocols import ModelFile


class Part:
    """Bytes [start, start + size) of another file; the other file stays its owner's to close."""

    def __init__(self, whole: ModelFile, start: int, size: int) -> None:
        """Take a range that was checked to lie within the file."""
        self.path = whole.path
        self.size = size
        self._whole = whole
        self._start = start

    def read(self, start: int, stop: int) -> bytes:
        """Give bytes [start, stop) of the part."""
        return self._whole.read(self._start + start, self._start + min(stop, self.size))

    def read_into(self, start: int, buffer: memoryview) -> int:
        """Fill the buffer from byte `start` of the part on."""
        return self._whole.read_into(self._start + start, buffer[: max(0, self.size - start)])

    def limit(self, name: str) -> int:
        """Give a limit by name."""
        return self._whole.limit(name)

    def confirm(self) -> None:
        """Raise `ChangedWhileReading` if the whole file is not the one that was opened."""
        self._whole.confirm()

    def close(self) -> None:
        """Leave the whole file open: others may read other parts of it."""
