"""A journal of evaluations: each is on disk before it counts, and none is lost or repeated.

    {"journal": "difflens blame 1", "check": "..."}
    {"hybrid": "5f3a...", "fresh": true, "value": 0.91}

One line of JSON for each run of the check. A line that a killed run left incomplete is cut off.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections import defaultdict, deque
from math import isnan
from pathlib import Path
from typing import NamedTuple

from difflens.core.errors import BlameError, OutputError

_FORMAT = "difflens blame 1"
_START = b'{"journal": '  # a file that begins otherwise is never written to


class Reading(NamedTuple):
    """What one run of a check gave: 1 passed, 0 failed, or a number; None: it cannot be judged."""

    value: float | None
    is_fresh: bool = True


class Journal:
    """Readings by the hybrid they were taken of: those of earlier runs first."""

    def __init__(self, path: Path | None, check: str) -> None:
        """Read what is there; a journal of another check is refused."""
        self._path, self._file = path, -1
        self.earlier: dict[str, deque[Reading]] = defaultdict(deque)
        if path is None:
            return
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._read(path, check)
        except BlockingIOError:
            raise BlameError(path, "another run writes this journal") from None
        except OSError as error:
            raise OutputError((error.strerror or str(error)).lower(), where=str(path)) from error

    def _read(self, path: Path, check: str) -> None:
        data = path.read_bytes()
        if not data.startswith(_START[: len(data)]):
            raise BlameError(path, "it is not a journal of difflens blame")
        complete = data[: data.rfind(b"\n") + 1]
        lines = complete.splitlines()
        if not lines:
            os.ftruncate(self._file, 0)
            self._append({"journal": _FORMAT, "check": check})
            return
        try:
            head, *entries = map(json.loads, lines)
            is_ours = head["journal"] == _FORMAT
            other = head["check"] != check
            readings = [(each["hybrid"], _value(each["value"]), each["fresh"]) for each in entries]
        except (ValueError, KeyError, TypeError):
            raise BlameError(path, "it is not a journal of difflens blame") from None
        if not is_ours:
            raise BlameError(path, "it is the journal of another version")
        if other:
            raise BlameError(
                path,
                "it belongs to another check",
                hint="resume with the same command, or name another file",
            )
        os.ftruncate(self._file, len(complete))
        for key, value, fresh in readings:
            self.earlier[key].append(Reading(value, fresh))

    def add(self, key: str, reading: Reading) -> None:
        """Write a reading; it is on disk when this returns."""
        if self._file >= 0:
            value = "NaN" if reading.value is not None and isnan(reading.value) else reading.value
            self._append({"hybrid": key, "fresh": reading.is_fresh, "value": value})

    def _append(self, entry: dict[str, object]) -> None:
        data = memoryview((json.dumps(entry) + "\n").encode())
        while data:
            data = data[os.write(self._file, data) :]
        os.fsync(self._file)

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _value(stored: object) -> float | None:
    """Read a value; one that is no number is stored as a word."""
    if stored is None:
        return None
    if not isinstance(stored, (int, float, str)):
        raise TypeError
    return float(stored)
