"""Small files elsewhere are asked for once a minute; small ranges of large ones come together."""

import pytest
from storage.servers.files import Link, serve_files

from difflens.core.addresses import ALLOW_HTTP, locate
from difflens.core.errors import UnknownName
from difflens.storage import places, small

DATA = bytes(range(256)) * 20_000


@pytest.fixture
def server(folder, monkeypatch):
    monkeypatch.setenv(ALLOW_HTTP, "1")
    (folder / "config.json").write_bytes(b'{"a": 1}')
    (folder / "large.bin").write_bytes(DATA)
    with serve_files(folder) as running:
        places.forget()
        yield running
        places.forget()


def asked(server):
    return [each["target"] for each in server.ask("requests")]


def test_a_small_file_is_asked_for_once_until_it_is_forgotten(server, folder):
    config = locate(f"{server.url}/config.json")

    for _ in range(3):
        file = places.open_small(config, {"rank": 3})
        assert file.read(0, file.size) == b'{"a": 1}'
        assert file.limit("rank") == 3
        file.close()
    assert asked(server) == ["/config.json"]

    (folder / "config.json").write_bytes(b'{"a": 22}')
    places.forget()
    file = places.open_small(config)
    buffer = bytearray(4)
    assert file.read_into(5, memoryview(buffer)) == 4
    assert buffer == b" 22}"
    file.confirm()
    with pytest.raises(UnknownName):
        file.limit("nothing")


def test_a_large_file_is_read_by_range(server, monkeypatch):
    monkeypatch.setattr(small, "_LARGEST", 1000)

    file = places.open_small(locate(f"{server.url}/large.bin"))

    assert file.size == len(DATA)
    assert server.ask("counts")["bytes"] < len(DATA)


def test_what_was_read_longest_ago_is_let_go(server, monkeypatch):
    monkeypatch.setattr(small, "_MOST_BYTES", 10)
    for name in ("config.json", "large.bin", "config.json"):
        places.open_small(locate(f"{server.url}/{name}"))

    assert [each for each in asked(server) if "config" in each] == ["/config.json"] * 2


def test_ranges_far_apart_are_fetched_at_the_same_time(server):
    file = places.open_file(locate(f"{server.url}/large.bin"))
    starts = range(400_000, len(DATA) - 400_000, 300_000)
    server.ask("reset")

    places.gather(file, [(start, start + 500) for start in starts])
    found = [file.read(start, start + 500) for start in starts]

    assert found == [DATA[start : start + 500] for start in starts]
    counts = server.ask("counts")
    assert counts["requests"] == len(starts)
    assert counts["bytes"] == 500 * len(starts)


def test_ranges_near_each_other_come_in_one_request(server):
    file = places.open_file(locate(f"{server.url}/large.bin"))
    server.ask("reset")

    places.gather(file, [(start, start + 500) for start in range(400_000, 450_000, 5000)])
    assert file.read(445_000, 445_500) == DATA[445_000:445_500]
    places.gather(file, [(400_000, 400_500), (420_000, 420_100)])
    assert server.ask("counts")["requests"] == 1


def test_who_reads_on_and_on_gets_more_each_time(folder, monkeypatch):
    monkeypatch.setenv(ALLOW_HTTP, "1")
    (folder / "long.bin").write_bytes(DATA * 2)
    with serve_files(folder, Link()) as server:
        file = places.open_file(locate(f"{server.url}/long.bin"))
        size = 8_000_000
        read = b"".join(file.read(start, start + 1000) for start in range(0, size, 1000))
        requests = server.ask("counts")["requests"]

    assert read == (DATA * 2)[:size]
    assert requests <= 8
