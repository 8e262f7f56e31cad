"""One range of bytes over HTTP: asked for, checked, and asked for again where it was cut.

The only place with retries, redirects, expired signatures and the comparison of versions: object
stores, the hub and web servers are all read through it.
"""

from __future__ import annotations

import random
import re
import socket
import ssl
import threading
from http.client import HTTPConnection, HTTPException, HTTPMessage, HTTPResponse
from typing import NamedTuple, NoReturn

from difflens.core.errors import ChangedWhileReading, UnreadableFile
from difflens.core.escape import for_terminal, visible

from .connections import CONNECTIONS, STALL_SECONDS, RefusedHost
from .links import Link, Route

ATTEMPTS = 6  # without a byte of progress
LONGEST_WAIT = 30.0  # seconds, whatever the server asks for
_FIRST_WAIT = 0.2
_MOST_REDIRECTS = 5
_MOST_ERROR = 1 << 16  # bytes of an error's text that are read
_BUSY = frozenset({408, 425, 429, 500, 502, 503, 504})
_MOVED = frozenset({301, 302, 303, 307, 308})
_DENIED = frozenset({401, 403})
_CONTENT_RANGE = re.compile(r"bytes (\d{1,19})-(\d{1,19})/(\d{1,19})")
_CODE = re.compile(rb"<Code>([A-Za-z0-9]{1,60})</Code>")


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


class Interrupted(Exception):
    """The program is ending; nobody waits for these bytes."""


class _Again(Exception):
    """The request failed in a way that may pass."""

    def __init__(self, reason: str, wait: float = 0.0, *, at_once: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.wait = wait
        self.at_once = at_once


class Interruption:
    """A switch that ends every transfer of this process, while the program leaves."""

    def __init__(self) -> None:
        """Begin with transfers allowed."""
        self._event = threading.Event()

    def raise_(self) -> None:
        """End all transfers."""
        self._event.set()
        CONNECTIONS.interrupt()

    def clear(self) -> None:
        """Allow transfers again."""
        self._event.clear()

    def check(self) -> None:
        """Raise if transfers have ended."""
        if self._event.is_set():
            raise Interrupted

    def wait(self, seconds: float) -> None:
        """Wait, unless transfers end."""
        if self._event.wait(seconds):
            raise Interrupted


INTERRUPTION = Interruption()


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
        return bytes(buffer[: self._fetch(0, buffer)])

    def read_into(self, start: int, buffer: memoryview) -> None:
        """Fill the buffer with the bytes from `start` on."""
        self._fetch(start, buffer)

    def _fetch(self, start: int, buffer: memoryview) -> int:
        request = _Request(self, start, buffer)
        attempt = 0
        while not request.is_done:
            INTERRUPTION.check()
            before = request.done
            try:
                request.send(self._route)
            except _Again as failure:
                attempt = 1 if request.done > before else attempt + 1
                if attempt >= ATTEMPTS:
                    raise UnreadableFile(self.where, failure.reason) from failure
                if not failure.at_once:
                    INTERRUPTION.wait(failure.wait or _pause(attempt))
        return request.done


class _Request:
    """One range that is being read; it goes on where an answer was cut."""

    def __init__(self, transfer: Transfer, start: int, buffer: memoryview) -> None:
        self.transfer = transfer
        self.start = start
        self.buffer = buffer
        self.done = 0
        self.is_done = not buffer
        self.renewed = False
        self.ranged = True

    def send(self, route: Route) -> None:
        """Ask once, following redirects."""
        link = first = route.link()
        for _ in range(_MOST_REDIRECTS + 1):
            try:
                onward = self._ask(link)
            except RefusedHost as error:
                self._refuse("it is redirected to an address that may not be asked", error)
            except _Denied as denied:
                self._renew(route, first, denied)
                return
            if onward is None:
                if link is not first:
                    route.settle(link)
                return
            link = onward
        self._refuse(f"it is redirected more than {_MOST_REDIRECTS} times")

    def _renew(self, route: Route, stale: Link, denied: _Denied) -> None:
        """Take a new signature, once: the old one may have expired."""
        if self.renewed:
            self._refuse(denied.reason)
        self.renewed = True
        if route.link(stale) == stale:
            self._refuse(denied.reason)

    def _ask(self, link: Link) -> Link | None:
        """Send one request; return where it is redirected, None once bytes were read."""
        try:
            with CONNECTIONS.connection(link.host) as (connection, again):
                try:
                    connection.request("GET", link.target, headers=self._headers(link))
                    response = connection.getresponse()
                except (HTTPException, OSError) as error:
                    INTERRUPTION.check()
                    # A server may close what is idle just as it is used again.
                    raise _Again(_failure(error), at_once=again) from error
                return self._answer(link, connection, response)
        except socket.gaierror as error:
            if error.errno == socket.EAI_NONAME:
                self._refuse(f"no server is called {visible(link.host.name)}", error)
            raise _Again("the name of the server could not be looked up") from error
        except ssl.SSLCertVerificationError as error:
            reason = f"the server's certificate is not trusted: {visible(error.verify_message)}"
            self._refuse(reason, error)
        except (HTTPException, OSError) as error:
            INTERRUPTION.check()
            raise _Again(_failure(error)) from error

    def _headers(self, link: Link) -> dict[str, str]:
        headers = {"User-Agent": "difflens", "Accept-Encoding": "identity"}
        if self.ranged:
            first, last = self.start + self.done, self.start + len(self.buffer) - 1
            headers["Range"] = f"bytes={first}-{last}"
        version = self.transfer.version
        if version is not None and version.is_exact:
            headers["If-Match"] = str(version.etag)
        return {**headers, **link.headers}

    def _answer(
        self, link: Link, connection: HTTPConnection, response: HTTPResponse
    ) -> Link | None:
        status = response.status
        if status == 206:
            self._read_body(connection, response)
            return None
        if status == 200:
            self._read_small_file(connection, response)
            return None
        text = response.read(_MOST_ERROR)
        if not response.isclosed():
            connection.close()
        if status in _MOVED:
            location = response.headers.get("Location")
            if location is None:
                self._refuse(f"the server answered {status} without saying where")
            return link.follow(location)
        self._handle_status(status, response.headers, text)
        return None

    def _handle_status(self, status: int, headers: HTTPMessage, text: bytes) -> None:
        code = _CODE.search(text)
        shown = f"{status} {code[1].decode()}" if code else str(status)
        if status in _BUSY or (code and code[1] in (b"SlowDown", b"RequestTimeout")):
            raise _Again(f"the server answered {shown}, again and again", _retry_after(headers))
        if status in _DENIED or (code and code[1] == b"ExpiredToken"):
            raise _Denied(f"the server denies access: {shown}")
        known = self.transfer.version
        if status == 412 and known:
            self._change("its ETag is another one")
        if status == 416:
            if known:
                self._change("it has fewer bytes now")
            self._ask_without_range()
        elif status in (404, 410):
            if known:
                self._change("no such file")
            self._refuse(
                "no such bucket" if code and code[1] == b"NoSuchBucket" else "no such file"
            )
        else:
            self._refuse(f"the server answered {shown}")

    def _ask_without_range(self) -> None:
        """Ask for all of it: only an empty file has no first bytes."""
        if not self.ranged:
            self._refuse("the server refuses to send its first bytes")
        self.ranged = False
        raise _Again("the server refuses to send its first bytes", at_once=True)

    def _read_body(self, connection: HTTPConnection, response: HTTPResponse) -> None:
        match = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
        if match is None:
            self._refuse("the server does not say which bytes it sent")
        first, last, size = map(int, match.groups())
        self._recognise(_version(size, response.headers))
        wanted = min(len(self.buffer), size - self.start)
        if (first, last) != (self.start + self.done, self.start + wanted - 1):
            self._refuse(f"the server sent bytes {first}-{last}, others were asked for")
        self._fill(connection, response, wanted)

    def _read_small_file(self, connection: HTTPConnection, response: HTTPResponse) -> None:
        """Accept all of a file where a part was asked for, if it is not longer than that part."""
        if "text/html" in response.headers.get("Content-Type", ""):
            reason = "the server sent a web page, not a file: it may want a login"
            self._refuse(reason)
        length = response.headers.get("Content-Length", "")
        if self.start or not length.isdigit() or int(length) > len(self.buffer):
            self._refuse("the server does not send parts of files, so it cannot be read here")
        self._recognise(_version(int(length), response.headers))
        self.done = 0
        self._fill(connection, response, int(length))

    def _fill(self, connection: HTTPConnection, response: HTTPResponse, wanted: int) -> None:
        encoding = response.headers.get("Content-Encoding", "identity")
        if encoding.lower() != "identity":
            self._refuse(f"the server sent it compressed ({for_terminal(encoding, 40)})")
        if response.length is not None and response.length != wanted - self.done:
            self._refuse(f"the server sends {response.length} bytes, not {wanted - self.done}")
        while self.done < wanted:
            count = response.readinto(self.buffer[self.done : wanted])
            if not count:
                raise _Again(f"the server ends its answers early, at byte {self.start + self.done}")
            self.done += count
        if not response.isclosed() and response.read(1):
            connection.close()  # it has more to say than was asked for
        self.is_done = True

    def _recognise(self, version: Version) -> None:
        known = self.transfer.version
        if known is None:
            if version.etag is None and version.modified is None:
                reason = "the server sends neither ETag nor Last-Modified"
                self._refuse(f"{reason}: a file that changes would not be noticed")
            self.transfer.version = version
        elif not known.matches(version):
            sizes = known.size != version.size
            self._change(
                f"it had {known.size} bytes, it has {version.size}"
                if sizes
                else "its ETag or its date is another one"
            )

    def _refuse(self, reason: str, error: Exception | None = None) -> NoReturn:
        raise UnreadableFile(self.transfer.where, reason) from error

    def _change(self, reason: str) -> NoReturn:
        raise ChangedWhileReading(self.transfer.where, reason)


class _Denied(Exception):
    """The server does not accept the signature."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def _version(size: int, headers: HTTPMessage) -> Version:
    return Version(size, headers.get("ETag"), headers.get("Last-Modified"))


def _retry_after(headers: HTTPMessage) -> float:
    text = str(headers.get("Retry-After", ""))
    return min(float(text), LONGEST_WAIT) if text.isascii() and text.isdigit() else 0.0


def _pause(attempt: int) -> float:
    return _FIRST_WAIT * 2 ** (attempt - 1) * random.uniform(0.75, 1.25)  # noqa: S311


def _failure(error: Exception) -> str:
    """Say in plain words why a request failed; never what was asked for."""
    if isinstance(error, TimeoutError):
        return f"the server did not answer for {STALL_SECONDS:g} seconds, again and again"
    if isinstance(error, ssl.SSLError):
        return "the encrypted connection failed"
    if isinstance(error, OSError) and error.strerror:
        return f"no connection to the server: {error.strerror.lower()}"
    return "the server's answer broke off, again and again"
