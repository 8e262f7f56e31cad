import random
import threading
import zlib

import pytest

from difflens.core.errors import CorruptFile
from difflens.models.containers import blocks, inner_files
from difflens.models.containers.blocks import Turns
from difflens.models.containers.inner_files import Inflated
from difflens.storage.local import File

DATA = random.Random(1).randbytes(1000) * 500


def raw(data: bytes) -> bytes:
    coder = zlib.compressobj(wbits=-15)
    return coder.compress(data) + coder.flush()


@pytest.fixture
def inflated(tmp_path, monkeypatch):
    """Return a deflated file, unpacked in small blocks, with states kept every few of them."""
    monkeypatch.setattr(inner_files, "BLOCK", 1000)
    monkeypatch.setattr(inner_files, "_WINDOW", 5)
    monkeypatch.setattr(blocks, "MOST_BYTES", 20_000)
    monkeypatch.setattr(inner_files, "_EVERY", 4)
    monkeypatch.setattr(inner_files, "_MOST_STATES", 8)
    path = tmp_path / "packed"

    def make(packed: bytes = raw(DATA), size: int = len(DATA), crc: int = zlib.crc32(DATA)):
        path.write_bytes(packed)
        return Inflated(File(path), size, crc, "member 'x'")

    return make


def test_any_range_in_any_order_is_right(inflated):
    opened, chance = inflated(), random.Random(2)
    for _ in range(300):
        start = chance.randrange(len(DATA))
        stop = min(len(DATA), start + chance.randrange(5000))
        assert DATA[start:stop] == opened.read(start, stop)
    opened.close()


def test_states_are_thinned_and_going_back_begins_at_the_nearest(inflated):
    opened = inflated()
    opened.read(len(DATA) - 1, len(DATA))

    assert 0 < len(opened._states) <= 8
    begun = []
    opened._begin = lambda: begun.append(1)
    assert opened.read(300_000, 300_010) == DATA[300_000:300_010]
    assert begun == []
    opened.close()


def test_memory_is_given_back_at_the_end_and_on_close(inflated):
    opened = inflated()
    opened.read(0, len(DATA))

    assert opened._cursor is None
    assert sum(map(len, blocks.BLOCKS._blocks.values())) <= 20 * 1000
    opened.close()
    assert not [key for key in blocks.BLOCKS._blocks if key[0] == opened._serial]


def test_threads_at_distant_places_do_not_begin_it_anew_again_and_again(inflated):
    opened, begun, wrong = inflated(), [], []
    begin = opened._begin
    opened._begin = lambda: (begun.append(1), begin())[1]

    def read(first: int) -> None:
        wrong.extend(
            start
            for start in range(first, first + 60_000, 500)
            if opened.read(start, start + 500) != DATA[start : start + 500]
        )

    threads = [threading.Thread(target=read, args=(60_000 * n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert wrong == []
    assert len(begun) < 20
    opened.close()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"size": len(DATA) - 1}, "goes on after"),
        ({"size": len(DATA) + 1}, "ends at byte"),
        ({"crc": 1}, "checksum"),
        ({"packed": raw(DATA) + b"x"}, "followed by 1 bytes"),
        ({"packed": raw(DATA)[:-1]}, "ends before"),
        ({"packed": b"\xff" * 100}, "damaged"),
        ({"packed": b""}, "ends before"),
    ],
)
def test_a_promise_that_does_not_hold_is_told_at_the_end(inflated, change, said):
    opened = inflated(**change)

    with pytest.raises(CorruptFile, match=said):
        opened.finish()
    opened.close()


def test_an_error_leaves_nothing_half_done(inflated):
    opened = inflated(crc=1)

    for _ in range(2):
        with pytest.raises(CorruptFile):
            opened.finish()
        assert opened.read(0, 100) == DATA[:100]
    opened.close()


def test_who_reads_alone_never_waits():
    turns = Turns(lambda: 1)
    with turns.lock:
        for place in (0, 100, 5, 1000):
            turns.at(place)
            turns.wait(place)

    assert turns._readers == {threading.get_ident(): (1000, pytest.approx(0, abs=1e12))}
