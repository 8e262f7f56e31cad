"""A range server for a folder, HTTP or HTTPS, with a simulated link: made to be measured against.

It runs as a program (see process.py): the client that is measured has its own interpreter lock.
Bytes go from the page cache to the socket by `sendfile`, so that it takes as little of the
processors as a server can; TLS needs one copy, into a buffer that each connection keeps.
"""

from __future__ import annotations

import argparse
import os
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import formatdate
from http import HTTPStatus
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from storage.servers.process import Server, serve_commands

_PIECE = 1 << 19  # bytes sent at once: 7 ms at 80 MB/s
_TLS_PIECE = 1 << 18
_IN_FLIGHT_SECONDS = 0.05  # a sender this late has lost the time: a link does not catch up


class Link(NamedTuple):
    """What a request and a connection are held back by."""

    latency_seconds: float = 0.0  # before the first byte of an answer
    bytes_per_second: float = 0.0  # of each connection; 0 is unlimited


UNLIMITED = Link()


class Span(NamedTuple):
    """A part of a file."""

    path: Path
    start: int
    stop: int


class Request(NamedTuple):
    """What a client asked for; names of headers are in lower case."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes = b""

    @property
    def path(self) -> str:
        """The path, decoded, without a query."""
        return unquote(urlsplit(self.target).path)

    @property
    def query(self) -> str:
        """What stands behind the question mark."""
        return urlsplit(self.target).query


@dataclass
class Response:
    """What is answered. The pauses, and `cut`, are for faults."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | Span = b""
    cut: int | None = None  # bytes of the body after which the connection is closed
    stall: tuple[int, float] | None = None  # after so many bytes of the body, wait so long
    head_pause: float = 0.0  # in the middle of the headers

    @property
    def length(self) -> int:
        """The bytes of the body."""
        return len(self.body) if isinstance(self.body, bytes) else self.body.stop - self.body.start


class Log:
    """What was asked for and sent, of all connections."""

    def __init__(self) -> None:
        """Begin at zero."""
        self._lock = threading.Lock()
        self.open = 0
        self.reset()

    def reset(self) -> None:
        """Forget everything but the connections that are open."""
        with self._lock:
            self.bytes = self.connections = 0
            self.most_open = self.open
            self.requests: list[dict[str, Any]] = []

    def add(self, request: Request, status: int) -> None:
        """Note one request and the status of its answer."""
        with self._lock:
            noted = {"method": request.method, "target": request.target}
            self.requests.append({**noted, "headers": request.headers, "status": status})

    def add_bytes(self, count: int) -> None:
        """Note bytes of a body."""
        with self._lock:
            self.bytes += count

    def opened(self, change: int) -> None:
        """Note that a connection opened (1) or closed (-1)."""
        with self._lock:
            self.connections += change > 0
            self.open += change
            self.most_open = max(self.most_open, self.open)

    def counts(self) -> dict[str, int]:
        """Sum up: requests, bytes of bodies, connections, the most at one time."""
        with self._lock:
            return {"requests": len(self.requests), "bytes": self.bytes,
                    "connections": self.connections, "most_open": self.most_open}  # fmt: skip


class FileServer:
    """Serves a folder; a subclass answers otherwise."""

    def __init__(self, folder: Path, link: Link, context: ssl.SSLContext | None) -> None:
        """Listen on a free port of 127.0.0.1."""
        self.folder, self.link, self.log = folder.resolve(), link, Log()
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)

    @property
    def about(self) -> dict[str, Any]:
        """What the test is told."""
        scheme = "https" if self._context else "http"
        return {"port": self._listener.getsockname()[1], "scheme": scheme}

    @property
    def commands(self) -> dict[str, Any]:
        """What the test may ask for."""
        return {
            "counts": self.log.counts,
            "requests": lambda: self.log.requests,
            "reset": self.log.reset,
            "link": self.change_link,
            "cpu_seconds": time.process_time,
        }

    def change_link(self, latency_seconds: float = 0.0, bytes_per_second: float = 0.0) -> None:
        """Hold back what is asked for from now on."""
        self.link = Link(latency_seconds, bytes_per_second)

    def start(self) -> None:
        """Accept connections in the background, each with a thread of its own."""
        threading.stack_size(1 << 18)
        threading.Thread(target=self._accept, daemon=True).start()

    def answer(self, request: Request) -> Response:
        """Return what the folder has at this path."""
        return answer_file(self.folder, request)

    def _accept(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        self.log.opened(1)
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._context:
                connection = self._context.wrap_socket(connection, server_side=True)
            for request in _requests(connection):
                if not self._respond(connection, request):
                    return
        except (OSError, ValueError):
            pass  # the client has gone, or does not speak HTTP
        finally:
            self.log.opened(-1)
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def _respond(self, connection: socket.socket, request: Request) -> bool:
        """Answer one request; return whether the connection goes on."""
        began = time.monotonic()
        response = self.answer(request)
        self.log.add(request, response.status)
        _sleep_until(began + self.link.latency_seconds)
        head = _head(response)
        if response.head_pause:
            connection.sendall(head[:20])
            time.sleep(response.head_pause)
            head = head[20:]
        connection.sendall(head)
        if request.method != "HEAD":
            self._send_body(connection, response)
        closes = response.headers.get("Connection") or request.headers.get("connection", "")
        return response.cut is None and closes.lower() != "close"

    def _send_body(self, connection: socket.socket, response: Response) -> None:
        """Send a body at the rate of the link."""
        stop = response.length if response.cut is None else min(response.cut, response.length)
        stall_at, stall_seconds = response.stall or (-1, 0.0)
        body, due, sent = response.body, time.monotonic(), 0
        with body.path.open("rb", buffering=0) if isinstance(body, Span) else BytesIO(body) as file:
            while sent < stop:
                if sent == stall_at:
                    time.sleep(stall_seconds)
                count = min(_PIECE, (stall_at if sent < stall_at < stop else stop) - sent)
                self.log.add_bytes(count)  # before the client can have seen them
                if rate := self.link.bytes_per_second:
                    due = max(due + count / rate, time.monotonic() - _IN_FLIGHT_SECONDS)
                    _sleep_until(due)
                if isinstance(body, bytes):
                    connection.sendall(body[sent : sent + count])
                else:
                    _send_span(connection, file.fileno(), body.start + sent, count)
                sent += count


def answer_file(folder: Path, request: Request) -> Response:
    """Answer GET and HEAD of a file: conditions, one range, a strong ETag."""
    if request.method not in ("GET", "HEAD"):
        return Response(405, {"Allow": "GET, HEAD"})
    path = (folder / request.path.lstrip("/")).resolve()
    if not path.is_relative_to(folder) or not path.is_file():
        return Response(404, {"Content-Type": "text/plain"}, b"not found\n")
    found = path.stat()
    etag = f'"{found.st_ino:x}-{found.st_mtime_ns:x}-{found.st_size:x}"'
    headers = {"ETag": etag, "Last-Modified": formatdate(found.st_mtime, usegmt=True)}
    return answer_bytes(request, headers, Span(path, 0, found.st_size))


def answer_bytes(request: Request, headers: Mapping[str, str], whole: Span) -> Response:
    """Answer for a file whose headers are known, ETag among them."""
    headers = {"Accept-Ranges": "bytes", "Content-Type": "application/octet-stream", **headers}
    wanted = request.headers.get("if-match")
    if wanted is not None and wanted != "*" and headers["ETag"] not in _tags(wanted):
        return Response(412, {"ETag": headers["ETag"]})
    if headers["ETag"] in _tags(request.headers.get("if-none-match", "")):
        return Response(304, {"ETag": headers["ETag"]})
    asked = request.headers.get("range", "")
    if request.headers.get("if-range", headers["ETag"]) != headers["ETag"]:
        asked = ""
    size = whole.stop
    bounds = _bounds(asked, size)
    if bounds is None:
        return Response(200, headers, whole)
    start, stop = bounds
    if start >= size or start >= stop:
        return Response(416, {"Content-Range": f"bytes */{size}"})
    headers["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
    return Response(206, headers, Span(whole.path, start, stop))


def _tags(header: str) -> list[str]:
    return [each.strip() for each in header.split(",")]


def _bounds(header: str, size: int) -> tuple[int, int] | None:
    """Return start and stop of a single range; None where the whole file is meant."""
    unit, _, text = header.partition("=")
    first, dash, last = text.partition("-")
    if unit != "bytes" or not dash or not (first + last).isdecimal():
        return None
    if not first:
        return max(0, size - int(last)), size
    return int(first), min(size, int(last) + 1) if last else size


def _requests(connection: socket.socket) -> Iterator[Request]:
    """Read requests until the client closes."""
    data = b""
    while True:
        while (end := data.find(b"\r\n\r\n") + 4) < 4:
            data += _receive(connection, data)
        lines = data[:end].decode("latin-1").rstrip().split("\r\n")
        method, target, _ = lines[0].split(" ", 2)
        pairs = (line.partition(":") for line in lines[1:])
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        stop = end + int(headers.get("content-length", 0))
        while len(data) < stop:
            data += _receive(connection, data)
        yield Request(method, target, headers, data[end:stop])
        data = data[stop:]


def _receive(connection: socket.socket, before: bytes) -> bytes:
    """Receive more of a request that is not too long."""
    more = connection.recv(1 << 16)
    if not more or len(before) > 1 << 20:
        raise ConnectionError("the client has gone, or sends too much")
    return more


def _head(response: Response) -> bytes:
    headers = {"Date": formatdate(usegmt=True), **response.headers}
    bodiless = response.status in (204, 304)
    if not bodiless and "Transfer-Encoding" not in headers and headers.get("Content-Length") != "":
        headers.setdefault("Content-Length", str(response.length))
    lines = [f"{name}: {value}" for name, value in headers.items() if value]
    reason = HTTPStatus(response.status).phrase
    text = "\r\n".join([f"HTTP/1.1 {response.status} {reason}", *lines, "", ""])
    return text.encode("latin-1")


def _send_span(connection: socket.socket, file: int, start: int, count: int) -> None:
    """Send a part of a file: without a copy where there is no TLS."""
    stop, tls = start + count, isinstance(connection, ssl.SSLSocket)
    buffer = memoryview(bytearray(min(count, _TLS_PIECE) if tls else 0))
    while start < stop:
        if tls:
            sent = os.preadv(file, [buffer[: stop - start]], start)
            connection.sendall(buffer[:sent])
        else:
            sent = os.sendfile(connection.fileno(), file, start, stop - start)
        if sent == 0:
            raise OSError("the file became shorter")
        start += sent


def _sleep_until(moment: float) -> None:
    while (left := moment - time.monotonic()) > 0:
        time.sleep(left)


def options(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Read the words every server of files is started with."""
    parser.add_argument("folder", type=Path)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds")
    parser.add_argument("--rate", type=float, default=0.0, help="bytes per second and connection")
    parser.add_argument("--certificate", type=Path, help="with its key: HTTPS")
    return parser.parse_args()


def context_from(certificate: Path | None) -> ssl.SSLContext | None:
    """Read a certificate with its key, if one was named."""
    if certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def serve_files(
    folder: Path, link: Link = UNLIMITED, *, certificate: Path | None = None, program: str = "files"
) -> Server:
    """Start a server of a folder; `ask("counts")` says what it sent."""
    words: list[str | Path] = [folder, "--latency", str(link.latency_seconds)]
    words += ["--rate", str(link.bytes_per_second)]
    words += ["--certificate", certificate] if certificate else []
    return Server(program, *words)


def main() -> None:
    """Serve until the input closes."""
    words = options(argparse.ArgumentParser(description=__doc__))
    link = Link(words.latency, words.rate)
    server = FileServer(words.folder, link, context_from(words.certificate))
    server.start()
    serve_commands(server.about, server.commands)


if __name__ == "__main__":
    main()
