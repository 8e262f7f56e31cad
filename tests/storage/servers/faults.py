"""The range server with faults, switched on by path and by how often that path was asked for.

`server.ask("fault", kind="status", value=503, path="/a*", after=1, times=2)` answers the second
and third request for such a path with 503. Faults add up; `ask("clear")` removes them all.
"""

from __future__ import annotations

import argparse
import gzip
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from storage.servers.files import (
    FileServer,
    Link,
    Request,
    Response,
    Span,
    answer_file,
    context_from,
    options,
)
from storage.servers.process import serve_commands
from storage.servers.signed import is_valid, refuse_expired, sign

_LOGIN = b"<!doctype html><title>Log in</title><form><input name=password></form>\n"


@dataclass
class Fault:
    """What goes wrong, for which requests."""

    kind: str
    value: Any = None
    path: str = "*"
    after: int = 0  # requests of that path that are answered well first
    times: int | None = None  # then so many are not; None: all
    seen: int = 0

    def applies(self, request: Request) -> bool:
        """Count this request; does the fault fall on it?"""
        if not fnmatchcase(request.path, self.path):
            return False
        self.seen += 1
        number = self.seen - self.after
        return number > 0 and (self.times is None or number <= self.times)


class FaultyServer(FileServer):
    """Serves a folder, not always well."""

    faults: tuple[Fault, ...] = ()

    @property
    def commands(self) -> dict[str, Any]:
        """What the test may ask for."""
        return {**super().commands, "fault": self.add, "clear": self.clear, "sign": self.sign}

    def add(self, **values: Any) -> None:
        """Switch a fault on."""
        fault = Fault(**values)
        if fault.kind not in {*INSTEAD, *BEFORE, *AFTER}:
            raise ValueError(f"no fault is called {fault.kind}")
        self.faults += (fault,)

    def clear(self) -> None:
        """Switch all faults off."""
        self.faults = ()

    def sign(self, path: str, seconds: float) -> str:
        """Return a target that the fault `signed` accepts for so many seconds."""
        return sign(path, seconds)

    def answer_well(self, request: Request) -> Response:
        """Answer as if nothing were wrong."""
        return answer_file(self.folder, request)

    def answer(self, request: Request) -> Response:
        """Answer with what is wrong just now."""
        faults = [each for each in self.faults if each.applies(request)]
        for fault in faults:
            if instead := INSTEAD.get(fault.kind):
                refused = instead(request, fault.value)
                if refused:
                    return refused
        for fault in faults:
            if before := BEFORE.get(fault.kind):
                request = before(request, fault.value)
        response = self.answer_well(request)
        for fault in faults:
            if after := AFTER.get(fault.kind):
                after(response, fault.value)
        return response


def _status(_: Request, status: int | None) -> Response:
    return Response(status or 503, {"Content-Type": "text/plain"}, b"no\n")


def _too_many(_: Request, seconds: float | None) -> Response:
    return Response(429, {"Retry-After": str(seconds or 1)}, b"slow down\n")


def _redirect(request: Request, location: str) -> Response:
    return Response(302, {"Location": location.replace("{path}", request.path)})


def _login(_: Request, __: object) -> Response:
    return Response(200, {"Content-Type": "text/html; charset=utf-8"}, _LOGIN)


def _signed(request: Request, _: object) -> Response | None:
    if is_valid(request.target, request.path):
        return None
    return refuse_expired()


def _no_range(request: Request, _: object) -> Request:
    kept = {name: value for name, value in request.headers.items() if name != "range"}
    return request._replace(headers=kept)


def _no_conditions(request: Request, _: object) -> Request:
    kept = {name: value for name, value in request.headers.items() if not name.startswith("if-")}
    return request._replace(headers=kept)


def _replaced(request: Request, path: str) -> Request:
    return request._replace(target=path)


def _cut(response: Response, count: int | None) -> None:
    response.cut = response.length // 2 if count is None else count


def _stall(response: Response, seconds: float) -> None:
    response.stall = (response.length // 2, seconds)


def _slow_headers(response: Response, seconds: float) -> None:
    response.head_pause = seconds


def _content_range(response: Response, header: str) -> None:
    response.headers["Content-Range"] = header


def _shifted(response: Response, count: int | None) -> None:
    """Send other bytes than those asked for, and say so truly."""
    if isinstance(response.body, Span) and response.status == 206:
        path, start, stop = response.body
        start, stop = start + (count or 1), min(stop + (count or 1), path.stat().st_size)
        response.body = Span(path, start, stop)
        response.headers["Content-Range"] = f"bytes {start}-{stop - 1}/{path.stat().st_size}"


def _weak_etag(response: Response, _: object) -> None:
    response.headers["ETag"] = f"W/{response.headers['ETag']}"


def _no_etag(response: Response, _: object) -> None:
    response.headers.pop("ETag", None)


def _etag(response: Response, etag: str) -> None:
    response.headers["ETag"] = etag


def _no_length(response: Response, _: object) -> None:
    response.headers |= {"Content-Length": "", "Connection": "close"}


def _chunked(response: Response, _: object) -> None:
    body = _bytes(response)
    response.body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
    response.headers["Transfer-Encoding"] = "chunked"


def _gzip(response: Response, _: object) -> None:
    response.body = gzip.compress(_bytes(response))
    response.headers["Content-Encoding"] = "gzip"


def _bytes(response: Response) -> bytes:
    if isinstance(response.body, bytes):
        return response.body
    path, start, stop = response.body
    with path.open("rb") as file:
        file.seek(start)
        return file.read(stop - start)


# In place of the file; before the folder is asked; and made of a good answer.
INSTEAD: dict[str, Callable[[Request, Any], Response | None]] = {
    "status": _status,  # value: the status, 503 by default
    "too_many": _too_many,  # 429; value: seconds of Retry-After
    "redirect": _redirect,  # value: the location; {path} is the path asked for
    "login": _login,  # a page with status 200
    "signed": _signed,  # 403 unless the target is signed (ask "sign") and has not expired
}
BEFORE: dict[str, Callable[[Request, Any], Request]] = {
    "no_range": _no_range,  # 200 with the whole body
    "no_conditions": _no_conditions,  # If-Match is not looked at
    "replaced": _replaced,  # value: the path of the file that is there now
}
AFTER: dict[str, Callable[[Response, Any], None]] = {
    "cut": _cut,  # value: bytes after which the connection is closed; half by default
    "stall": _stall,  # value: seconds without a byte, in the middle of the body
    "slow_headers": _slow_headers,  # value: seconds
    "content_range": _content_range,  # value: the header, whatever the body is
    "shifted": _shifted,  # value: bytes by which the part sent lies behind the one asked for
    "weak_etag": _weak_etag,
    "no_etag": _no_etag,  # Last-Modified only
    "etag": _etag,  # value: the header
    "no_length": _no_length,  # the body ends where the connection does
    "chunked": _chunked,
    "gzip": _gzip,  # though nobody asked
}


def main() -> None:
    """Serve until the input closes."""
    words = options(argparse.ArgumentParser(description=__doc__))
    folder: Path = words.folder
    server = FaultyServer(folder, Link(words.latency, words.rate), context_from(words.certificate))
    server.start()
    serve_commands(server.about, server.commands)


if __name__ == "__main__":
    main()
