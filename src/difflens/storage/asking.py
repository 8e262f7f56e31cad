"""One question to a server: redirects, expired signatures, and what its refusals mean.

What may pass is asked again: a busy server, a lost connection, an answer that was cut. Everything
else is one error in plain words, which never holds more of an address than its host.
"""

from __future__ import annotations

import random
import re
import socket
import ssl
from http.client import HTTPException, HTTPMessage, HTTPResponse
from typing import NoReturn

from difflens.core.errors import UnreadableFile
from difflens.core.escape import visible

from .connections import CONNECTIONS, STALL_SECONDS, RefusedHost
from .interruption import INTERRUPTION
from .links import Link, Route

ATTEMPTS = 6  # without a byte of progress
LONGEST_WAIT = 30.0  # seconds, whatever the server asks for
FIRST_WAIT = 0.2
_MOST_REDIRECTS = 5
_MOST_ERROR = 1 << 16  # bytes of an error's text that are read
_BUSY = frozenset({408, 425, 429, 500, 502, 503, 504})
_BUSY_CODES = frozenset({"SlowDown", "RequestTimeout", "InternalError"})
_MOVED = frozenset({301, 302, 303, 307, 308})
_DENIED = frozenset({401, 403})
_GONE = frozenset({404, 410})
_CODE = re.compile(rb"<Code>([A-Za-z0-9]{1,60})</Code>")
_PLAIN = re.compile(r"[A-Za-z0-9-]{1,60}")
_REASONS = {
    "NoSuchBucket": "no such bucket",
    "RepoNotFound": "no such model on the hub, or it is private and you are not logged in",
    "RevisionNotFound": "no such revision on the hub",
    "GatedRepo": "its owner asks everybody to agree to terms first, on its page on the hub",
}


class PassingFailure(Exception):
    """The question failed in a way that may pass."""

    def __init__(self, reason: str, wait: float = 0.0, *, at_once: bool = False) -> None:
        """Say what failed, and how long the server wants us to wait."""
        super().__init__(reason)
        self.reason = reason
        self.wait = wait
        self.at_once = at_once


class _Denied(Exception):
    """The server does not accept who we are."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Question:
    """What a server is asked, until it is answered; its kinds differ in what they read."""

    def __init__(self, where: str) -> None:
        """Remember what the file is called in errors."""
        self.where = where
        self.progress = 0  # bytes read, also by answers that were cut
        self.is_answered = False
        self._renewed = False

    def headers(self) -> dict[str, str]:
        """Return what is asked for."""
        raise NotImplementedError

    def read(self, response: HTTPResponse) -> None:
        """Read an answer with status 200 or 206."""
        raise NotImplementedError

    def refuse_gone(self, reason: str) -> NoReturn:
        """Raise: the server knows no such file."""
        self.refuse(reason)

    def refuse_status(self, status: int, shown: str) -> None:
        """Raise for any other status."""
        del status
        self.refuse(f"the server answered {shown}")

    def refuse(self, reason: str, error: Exception | None = None, hint: str = "") -> NoReturn:
        """Raise an error that names the file."""
        raise UnreadableFile(self.where, reason, hint=hint) from error

    def ask(self, route: Route) -> None:
        """Ask until there is an answer, or no hope of one."""
        since = INTERRUPTION.count
        attempt = 0
        while not self.is_answered:
            INTERRUPTION.check(since)
            before = self.progress
            try:
                self._ask_once(route)
            except PassingFailure as failure:
                INTERRUPTION.check(since)
                attempt = 1 if self.progress > before else attempt + 1
                if attempt >= ATTEMPTS:
                    self.refuse(failure.reason, failure)
                if not failure.at_once:
                    INTERRUPTION.wait(failure.wait or _pause(attempt), since)

    def _ask_once(self, route: Route) -> None:
        link = first = route.link()
        for _ in range(_MOST_REDIRECTS + 1):
            try:
                onward = self._send(link)
            except RefusedHost as error:
                self.refuse("it is redirected to an address that may not be asked", error)
            except _Denied as denied:
                self._renew(route, first, denied)
                return
            if onward is None:
                if link is not first:
                    route.settle(link)
                return
            link = onward
        self.refuse(f"it is redirected more than {_MOST_REDIRECTS} times")

    def _renew(self, route: Route, stale: Link, denied: _Denied) -> None:
        """Take a new signature, once: the old one may have expired."""
        if self._renewed or route.link(stale) == stale:
            self.refuse(denied.reason)
        self._renewed = True

    def _send(self, link: Link) -> Link | None:
        """Send the question; return where it is redirected, None once it was answered."""
        headers = {"User-Agent": "difflens", "Accept-Encoding": "identity", **self.headers()}
        try:
            with CONNECTIONS.connection(link.host) as (connection, again):
                try:
                    connection.request("GET", link.target, headers={**headers, **link.headers})
                    response = connection.getresponse()
                except (HTTPException, OSError) as error:
                    # A server may close what is idle just as it is used again.
                    raise PassingFailure(_failure(error), at_once=again) from error
                try:
                    return self._receive(link, response)
                finally:
                    if not response.isclosed():  # it has more to say, so nothing can follow it
                        connection.close()
                        response.close()
        except socket.gaierror as error:
            if error.errno == socket.EAI_NONAME:
                self.refuse(f"no server is called {visible(link.host.name)}", error)
            raise PassingFailure("the name of the server could not be looked up") from error
        except ssl.SSLCertVerificationError as error:
            reason = f"the server's certificate is not trusted: {visible(error.verify_message)}"
            self.refuse(reason, error)
        except (HTTPException, OSError) as error:
            raise PassingFailure(_failure(error)) from error

    def _receive(self, link: Link, response: HTTPResponse) -> Link | None:
        status = response.status
        if status in (200, 206):
            self.read(response)
            return None
        text = response.read(_MOST_ERROR)
        if status in _MOVED and response.headers.get("Location"):
            return link.follow(response.headers["Location"])
        self._handle_refusal(status, response.headers, text)
        return None

    def _handle_refusal(self, status: int, headers: HTTPMessage, text: bytes) -> None:
        code = _error_code(headers, text)
        shown = f"{status} {code}" if code else str(status)
        region = headers.get("x-amz-bucket-region", "")
        if status in _BUSY or code in _BUSY_CODES:
            raise PassingFailure(f"the server answered {shown}, again and again", _wait(headers))
        if status in (301, 400) and _PLAIN.fullmatch(region):
            self.refuse("the bucket lies in another region", hint=f"set AWS_REGION={region}")
        reason = _REASONS.get(code)
        if status in _DENIED or code == "ExpiredToken":
            raise _Denied(reason or f"the server denies access: {shown}")
        if status in _GONE:
            self.refuse_gone(reason or "no such file")
        self.refuse_status(status, shown)


def _error_code(headers: HTTPMessage, text: bytes) -> str:
    """Return the word by which the server names its refusal; empty if it has none."""
    code = headers.get("X-Error-Code", "")
    if _PLAIN.fullmatch(code):
        return str(code)
    match = _CODE.search(text)
    return match[1].decode() if match else ""


def _wait(headers: HTTPMessage) -> float:
    text = str(headers.get("Retry-After", ""))
    return min(float(text), LONGEST_WAIT) if text.isascii() and text.isdigit() else 0.0


def _pause(attempt: int) -> float:
    return FIRST_WAIT * 2 ** (attempt - 1) * random.uniform(0.75, 1.25)  # noqa: S311


def _failure(error: Exception) -> str:
    """Say in plain words why a question failed; never what was asked for."""
    if isinstance(error, TimeoutError):
        return f"the server did not answer for {STALL_SECONDS:g} seconds, again and again"
    if isinstance(error, ssl.SSLError):
        return "the encrypted connection failed"
    if isinstance(error, OSError) and error.strerror:
        return f"no connection to the server: {error.strerror.lower()}"
    return "the server's answer broke off, again and again"
