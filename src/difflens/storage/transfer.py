"""Ranges of one file over HTTP: each in the version that was opened, and all of it or an error.

Object stores, the hub and web servers are all read through here.
"""

from __future__ import annotations

import re
from http.client import HTTPMessage, HTTPResponse
from typing import NamedTuple, NoReturn

from difflens.core.errors import ChangedWhileReading
from difflens.core.escape import for_terminal, visible

from .asking import PassingFailure, Question
from .links import Route

_MOST_WITHOUT_RANGES = 8 * 1024**2  # a file this small is read from a server that has no ranges
_CONTENT_RANGE = re.compile(r"bytes (\d{1,19})-(\d{1,19})/(\d{1,19})")


class Version(NamedTuple):
    """What tells one content of a file from another."""

    size: int
    etag: str | None
    modified: str | None

    @property
    def is_exact(self) -> bool:
        """Does the ETag change with every byte?"""
        return bool(self.etag) and not str(self.etag).startswith("W/")

    def matches(self, other: Version) -> bool:
        """Is it the same content, as far as the server says?"""
        if self.is_exact or other.is_exact:
            return (self.size, self.etag) == (other.size, other.etag)
        return self == other


class Transfer:
    """Reads ranges of one file; `version` is None until the first answer has named it."""

    def __init__(self, where: object, route: Route, version: Version | None = None) -> None:
        """Remember what the file is called in errors, and how it is reached."""
        self.where = visible(str(where))
        self.version = version
        self._route = route

    def open(self, most: int) -> bytes:
        """Read the beginning of the file and learn its version, in one request."""
        buffer = memoryview(bytearray(most))
        return bytes(buffer[: self._ask(0, buffer)])

    def read_into(self, start: int, buffer: memoryview) -> None:
        """Fill the buffer with the bytes from `start` on."""
        self._ask(start, buffer)

    def _ask(self, start: int, buffer: memoryview) -> int:
        question = _Range(self, start, buffer)
        question.ask(self._route)
        return question.done

    def recognise(self, version: Version) -> None:
        """Compare the version of an answer with the one that was opened."""
        known = self.version
        if known is None:
            self.version = version
        elif known.size != version.size:
            self.refuse_change(f"it had {known.size} bytes, it has {version.size}")
        elif not known.matches(version):
            self.refuse_change("its ETag or its date is another one")

    def refuse_change(self, reason: str) -> NoReturn:
        """Raise: it is not the file that was opened."""
        raise ChangedWhileReading(self.where, reason)


class _Range(Question):
    """One range that is being read; after a cut it goes on where the answer ended."""

    def __init__(self, transfer: Transfer, start: int, buffer: memoryview) -> None:
        super().__init__(transfer.where)
        self.transfer = transfer
        self.start = start
        self.buffer = buffer
        self.done = 0
        self.is_answered = not buffer
        self.is_ranged = True

    def headers(self) -> dict[str, str]:
        """Ask for what is missing, of the version that was opened."""
        headers = {}
        if self.is_ranged:
            first, last = self.start + self.done, self.start + len(self.buffer) - 1
            headers["Range"] = f"bytes={first}-{last}"
        version = self.transfer.version
        if version is not None and version.is_exact:
            headers["If-Match"] = str(version.etag)
        return headers

    def refuse_gone(self, reason: str) -> NoReturn:
        """Raise: it was never there, or it is gone now."""
        if self.transfer.version is not None:
            self.transfer.refuse_change(reason)
        self.refuse(reason)

    def refuse_status(self, status: int, shown: str) -> None:
        """Raise, unless asking for all of an empty file may help."""
        known = self.transfer.version
        if known is not None and status == 412:
            self.transfer.refuse_change("its ETag is another one")
        if known is not None and status == 416:
            self.transfer.refuse_change("it has fewer bytes now")
        if status != 416 or not self.is_ranged:
            self.refuse(f"the server answered {shown}")
        self.is_ranged = False  # an empty file has no first bytes
        raise PassingFailure(f"the server answered {shown}", at_once=True)

    def read(self, response: HTTPResponse) -> None:
        """Read the bytes of an answer, after checking that they are those that were asked for."""
        encoding = response.headers.get("Content-Encoding", "identity")
        if encoding.lower() != "identity":
            self.refuse(f"the server sent it compressed ({for_terminal(encoding, 40)})")
        if response.status == 200:
            self._read_all(response)
        else:
            self._read_part(response)

    def _read_part(self, response: HTTPResponse) -> None:
        match = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
        if match is None:
            self.refuse("the server does not say which bytes it sent")
        first, last, size = map(int, match.groups())
        self._recognise(size, response.headers)
        if size == 0:  # whatever range that is
            self.is_answered = True
            return
        wanted = min(len(self.buffer), size - self.start)
        if (first, last) != (self.start + self.done, self.start + wanted - 1):
            self.refuse(f"the server sent bytes {first}-{last}, others were asked for")
        if response.length is not None and response.length != wanted - self.done:
            self.refuse(f"the server sends {response.length} bytes, not {wanted - self.done}")
        while self.done < wanted:
            count = response.readinto(self.buffer[self.done : wanted])
            if not count:
                at = self.start + self.done
                raise PassingFailure(f"the server's answers break off, the last at byte {at}")
            self.done += count
            self.progress += count
        if not response.isclosed():
            response.read(1)  # the mark at the end of a chunked answer
        self.is_answered = True

    def _read_all(self, response: HTTPResponse) -> None:
        """Cut the range out of a whole file, from a server that has no ranges."""
        if "text/html" in response.headers.get("Content-Type", ""):
            self.refuse("the server sent a web page, not a file: it may want a login")
        size = response.length
        if size is None or size > _MOST_WITHOUT_RANGES:
            self.refuse("the server does not send parts of files, so it cannot be read here")
        self._recognise(size, response.headers)
        content = response.read()
        if len(content) != size:
            raise PassingFailure("the server's answers break off")
        self.done = max(min(len(self.buffer), size - self.start), 0)
        self.buffer[: self.done] = content[self.start : self.start + self.done]
        self.is_answered = True

    def _recognise(self, size: int, headers: HTTPMessage) -> None:
        version = Version(size, headers.get("ETag"), headers.get("Last-Modified"))
        if version.etag is None and version.modified is None:
            reason = "the server sends neither ETag nor Last-Modified"
            self.refuse(f"{reason}: a file that changes would not be noticed")
        self.transfer.recognise(version)
