"""Downloads addresses in parallel and looks at nothing: what the link and the client allow.

Usage: raw_download.py URL... Parts of 8 MiB over 16 connections, each into a buffer of its own.
"""

from __future__ import annotations

import http.client
import ssl
import sys
from collections import deque
from contextlib import suppress
from threading import Thread
from urllib.parse import SplitResult, urlsplit

CONNECTIONS = 16
PART = 8 << 20

Parts = deque[tuple[str, int, int]]


def main() -> None:
    """Fetch every byte of every address."""
    places = [urlsplit(each) for each in sys.argv[1:]]
    parts: Parts = deque()
    for place in places:
        size = _size(place)
        for start in range(0, size, PART):
            parts.append((place.path, start, min(start + PART, size)))
    expected, received = sum(stop - start for _, start, stop in parts), [0] * CONNECTIONS
    threads = [
        Thread(target=_fetch, args=(places[0], parts, received, number))
        for number in range(CONNECTIONS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if sum(received) != expected:
        sys.exit(f"{sum(received)} bytes came, not {expected}")


def _connect(place: SplitResult) -> http.client.HTTPConnection:
    host = place.hostname or ""
    if place.scheme == "https":
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(host, place.port, context=context)
    return http.client.HTTPConnection(host, place.port)


def _size(place: SplitResult) -> int:
    connection = _connect(place)
    connection.request("HEAD", place.path)
    size = int(connection.getresponse().headers["Content-Length"])
    connection.close()
    return size


def _fetch(place: SplitResult, parts: Parts, received: list[int], number: int) -> None:
    """Fetch parts until none is left."""
    connection, buffer = _connect(place), memoryview(bytearray(PART))
    with suppress(IndexError):
        while True:
            path, start, stop = parts.popleft()
            connection.request("GET", path, headers={"Range": f"bytes={start}-{stop - 1}"})
            answer = connection.getresponse()
            while count := answer.readinto(buffer):
                received[number] += count
    connection.close()


if __name__ == "__main__":
    main()
