"""Files elsewhere, read from servers on loopback; hypothesis chooses what is read."""

import gc
import http.server
import json
import os
import pickle
import re
import struct
import threading
import time
import weakref
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import difflens
from difflens.core.addresses import ALLOW_HTTP, locate
from difflens.core.errors import ChangedWhileReading, UnreadableFile
from difflens.core.protocols import Extent
from difflens.storage import places
from difflens.storage.blocks import BLOCKS
from difflens.storage.read_ahead import read_ahead
from difflens.storage.segments import Window

DATA = os.urandom(3_000_000)


class Ranges(http.server.BaseHTTPRequestHandler):
    """A server of files that counts what it is asked for."""

    protocol_version = "HTTP/1.1"
    files: ClassVar[dict[str, bytes]] = {}
    asked: ClassVar[Counter[str]] = Counter()
    sent: ClassVar[list[int]] = [0]
    etag = '"1"'

    def do_GET(self):
        data = self.files.get(self.path)
        self.asked[self.path] += 1
        if data is None:
            self.answer(404, b"")
        elif self.headers.get("If-Match", self.etag) != self.etag:
            self.answer(412, b"")
        elif match := re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", "")):
            first, last = int(match[1]), min(int(match[2]), len(data) - 1)
            if first >= len(data):
                self.answer(416, b"")
            else:
                shown = {"Content-Range": f"bytes {first}-{last}/{len(data)}"}
                self.answer(206, data[first : last + 1], shown)
        else:
            self.answer(200, data)

    def answer(self, status, body, headers=None):
        self.send_response(status)
        for name, value in {"ETag": self.etag, **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.sent[0] += len(body)
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server(monkeypatch):
    handler = type(
        "Handler", (Ranges,), {"files": {"/m/a.bin": DATA}, "asked": Counter(), "sent": [0]}
    )
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setenv(ALLOW_HTTP, "1")
        handler.url = f"http://127.0.0.1:{running.server_port}"
        places.forget()
        yield handler
        places.forget()
        running.shutdown()
        thread.join()


def opened(server, path="/m/a.bin"):
    return places.open_file(locate(server.url + path))


def test_one_request_brings_the_size_and_the_beginning(server):
    file = opened(server)

    assert file.size == len(DATA)
    assert file.read(0, 100_000) == DATA[:100_000]
    assert server.asked.total() == 1


def test_an_empty_file_is_opened(server):
    server.files["/empty"] = b""

    assert opened(server, "/empty").size == 0


def test_a_file_that_is_not_there_is_one_line(server):
    with pytest.raises(UnreadableFile, match="no such file"):
        opened(server, "/none")
    assert not places.is_file(locate(f"{server.url}/none"))
    assert places.is_file(locate(f"{server.url}/m/a.bin"))


def test_a_file_that_was_only_looked_for_is_opened_without_a_second_request(server):
    address = locate(f"{server.url}/m/a.bin")

    assert places.is_file(address)
    assert places.is_file(address)
    assert places.open_file(address).size == len(DATA)
    assert server.asked.total() == 1
    assert not places.is_file(address.parent / "none")
    assert not places.is_file(address.parent / "none")
    assert server.asked.total() == 2


def test_small_parts_near_each_other_come_in_one_request(server):
    file = opened(server)

    for start in range(1_000_000, 1_100_000, 5000):
        assert file.read(start, start + 30) == DATA[start : start + 30]
    assert server.asked.total() == 2


def test_the_directory_at_the_end_of_a_zip_comes_in_one_request(server):
    file = opened(server)
    for start in (len(DATA) - 22, len(DATA) - 100, len(DATA) - 200_000):
        assert file.read(start, start + 20) == DATA[start : start + 20]
    assert server.asked.total() == 2


def test_a_file_that_changed_is_an_error(server):
    file = opened(server)
    server.etag = '"2"'

    with pytest.raises(ChangedWhileReading):
        file.read(1_000_000, 1_200_000)


def test_a_pickled_file_is_opened_without_a_request(server):
    file = pickle.loads(pickle.dumps(opened(server)))  # noqa: S301

    assert file.read(5, 2_000_000) == DATA[5:2_000_000]
    assert server.asked.total() == 2


def test_a_file_that_is_closed_is_not_read(server):
    file = opened(server)
    file.close()
    with pytest.raises(UnreadableFile, match="closed"):
        file.read(0, 1)


spans = st.tuples(st.integers(0, len(DATA)), st.integers(0, 400_000)).map(
    lambda span: (span[0], min(span[0] + span[1], len(DATA)))
)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(reads=st.lists(spans, max_size=12), ahead=st.booleans(), budget=st.integers(1, 2_000_000))
def test_whatever_is_read_in_whatever_order_is_what_the_file_has(server, reads, ahead, budget):
    file = opened(server)
    items = read_ahead(reads, lambda span: [Extent(file, *span)], budget) if ahead else reads

    for start, stop in items:
        middle = (start + stop) // 2
        assert file.read(start, middle) + file.read(middle, stop) == DATA[start:stop]
    file.close()


def test_what_was_announced_is_asked_for_once_and_in_few_requests(server):
    file = opened(server)
    items = [(start, start + 10_000) for start in range(200_000, 2_700_000, 10_000)]

    for start, stop in read_ahead(items, lambda span: [Extent(file, *span)]):
        assert file.read(start, stop) == DATA[start:stop]
    assert server.asked.total() == 2


def test_a_series_that_is_given_up_leaves_nothing_behind(server):
    file = opened(server)
    items = read_ahead([(0, 1_000_000), (1_000_000, 2_000_000)], lambda span: [Extent(file, *span)])

    next(items)
    items.close()

    assert file.segments._live == []
    assert file.read(500_000, 600_000) == DATA[500_000:600_000]


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(reads=st.lists(spans, min_size=1, max_size=30), budget=st.integers(1, 2_000_000))
def test_threads_that_read_later_than_the_series_ends_find_their_bytes(server, reads, budget):
    file = opened(server)
    work = list(read_ahead(reads, lambda span: [Extent(file, *span)], budget))

    with ThreadPoolExecutor(4) as pool:
        for (start, stop), data in zip(
            work, pool.map(lambda span: file.read(*span), work), strict=True
        ):
            assert data == DATA[start:stop]
    assert work == reads
    assert file.segments._live == []
    file.close()


def test_what_is_fetched_ahead_stays_within_its_budget(server, monkeypatch):
    monkeypatch.setattr("difflens.storage.segments.PIECE", 100_000)
    most = [0]
    allocate = Window.allocate

    def watch(self, size):
        memory = allocate(self, size)
        most[0] = max(most[0], self._here)
        return memory

    monkeypatch.setattr(Window, "allocate", watch)
    file = opened(server)
    spans = [(start, start + 50_000) for start in range(200_000, 2_700_000, 50_000)]
    items = read_ahead(spans, lambda span: [Extent(file, *span)], 300_000)

    for start, stop in list(items):  # taken all at once
        assert file.read(start, stop) == DATA[start:stop]
    assert most[0] <= 300_000 + 100_000
    assert server.asked.total() == 26


def test_what_two_tasks_read_is_fetched_once(server):
    file = opened(server)
    spans = [(200_000, 900_000), (500_000, 1_200_000), (200_000, 900_000)]

    for start, stop in read_ahead(spans, lambda span: [Extent(file, *span)]):
        assert file.read(start, stop) == DATA[start:stop]
    assert server.asked.total() == 2
    assert file.segments._live == []


def test_what_was_begun_is_fetched_before_it_is_read(server):
    file = opened(server)
    file.begin(200_000, 900_000)
    until = time.monotonic() + 5
    while server.asked.total() < 2 and time.monotonic() < until:
        time.sleep(0.01)

    assert server.asked.total() == 2
    assert file.read(200_000, 900_000) == DATA[200_000:900_000]
    assert server.asked.total() == 2
    assert file.segments._live == []


def test_what_came_with_the_beginning_is_not_fetched_again(server):
    file = opened(server)
    for start, stop in read_ahead([(8, len(DATA))], lambda span: [Extent(file, *span)]):
        assert file.read(start, stop) == DATA[start:stop]

    assert server.sent[0] == len(DATA)


def test_a_file_that_nobody_closes_leaves_none_of_its_bytes_behind(server):
    file = opened(server)
    file.read(1_000_000, 1_000_001)
    number = file._number
    assert BLOCKS.end(number, 5) == 128 * 1024
    gc.disable()
    try:
        del file
        assert BLOCKS.end(number, 5) == 5
    finally:
        gc.enable()


def test_the_memory_of_a_series_is_freed_with_its_last_byte(server):
    file = opened(server)
    items = read_ahead([(200_000, 2_700_000)], lambda span: [Extent(file, *span)])
    window = weakref.ref(items._window)
    for start, stop in items:
        file.read(start, stop)
    gc.disable()
    try:
        del items
        assert window() is None
    finally:
        gc.enable()


def test_a_diff_fetches_ahead_each_byte_once_and_in_few_requests(server):
    header = json.dumps(
        {"w": {"dtype": "F32", "shape": [3_000_000], "data_offsets": [0, 12_000_000]}}
    )
    head = struct.pack("<Q", len(header)) + header.encode()
    data = os.urandom(6_000_000) + bytes(6_000_000)
    server.files["/a.safetensors"] = head + data
    server.files["/b.safetensors"] = head + data[:-4] + b"\0\0\x80?"

    report = difflens.diff(f"{server.url}/a.safetensors", f"{server.url}/b.safetensors")

    assert report["w"].max_abs == 1.0
    assert server.asked["/a.safetensors"] == server.asked["/b.safetensors"] == 3
    assert server.sent[0] == sum(map(len, server.files.values())) - len(DATA)
