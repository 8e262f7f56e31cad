"""Bytes from far away: each is fetched once, whatever asks for it and however often."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflens.core.protocols import Extent
from difflens.measure import held
from difflens.measure.chunks import Chunk, Side, scan_chunk
from difflens.measure.held import Kept, KeptEncoding, Windowed, hold_sides
from difflens.measure.values import Values
from difflens.models.opening import InMemory, MemorySource


class Counted:
    """An encoding that counts what is read of it."""

    def __init__(self, data: bytes) -> None:
        self.data, self.read = data, 0

    def read_into(self, start, buffer):
        self.read += len(buffer)
        buffer[:] = self.data[start : start + len(buffer)]
        return len(buffer)

    def extents(self, start, stop):
        return (Extent(None, start, stop),)


def side(values) -> tuple[Side, Counted]:
    array = np.asarray(values, np.float32)
    (info,) = MemorySource({"w": array}).tensors.values()
    counted = Counted(array.tobytes())
    return Side(counted, info), counted


@given(
    cuts=st.lists(st.tuples(st.integers(0, 999), st.integers(0, 999)), max_size=20),
    window=st.integers(1, 2000),
)
def test_a_window_shows_what_is_behind_it(cuts, window):
    data = bytes(at % 251 for at in range(1000))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(held, "_WINDOW", window)
        seen = Windowed(Counted(data), 1000)
        for first, last in map(sorted, cuts):
            buffer = bytearray(last - first)
            assert seen.read_into(first, memoryview(buffer)) == last - first
            assert buffer == data[first:last]


def test_what_is_held_is_read_once_by_several_measures():
    (left, one), (right, other) = side(range(1000)), side(range(1000, 2000))

    with hold_sides(left, right) as (before, after):
        for _ in range(3):
            assert Values(before).array().sum() == sum(range(1000))
            assert Values(after).array()[0] == 1000

    assert (one.read, other.read) == (4000, 4000)
    assert held.held.used == 0


def test_what_is_too_large_is_looked_at_through_a_window(monkeypatch):
    monkeypatch.setattr(held, "LIMIT", 100)
    before, counted = side(range(1000))

    with hold_sides(before, None) as (seen, nothing):
        assert Values(seen).array().sum() == sum(range(1000))
        assert isinstance(seen.encoding, Windowed)
    assert nothing is None
    assert counted.read == 4000


def test_what_is_kept_is_read_once_by_many_threads_and_announced_once():
    one, counted = side(range(1000))
    kept = one._replace(encoding=KeptEncoding("w", counted, 4000, Kept()))

    def look():
        assert Values(kept).array().sum() == sum(range(1000))

    threads = [threading.Thread(target=look) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert counted.read == 4000
    assert list(kept.encoding.extents(0, 10)) == [(None, 0, 4000)]
    assert list(kept.encoding.extents(10, 4000)) == []


@given(sizes=st.lists(st.integers(1, 60), min_size=1, max_size=30), asks=st.data())
def test_no_more_is_kept_than_there_is_room_for(sizes, asks):
    kept = Kept(limit=100)
    tensors = {at: Counted(bytes([at]) * size) for at, size in enumerate(sizes)}
    for at in asks.draw(st.lists(st.sampled_from(sorted(tensors)), max_size=50)):
        buffer = bytearray(sizes[at])
        kept.get(at, tensors[at], sizes[at]).read_into(0, memoryview(buffer))
        assert buffer == tensors[at].data
        assert kept._size == sum(sizes[each] for each in kept._tensors) <= 100


@given(
    values=st.lists(st.floats(-9, 9, width=32), min_size=1, max_size=200),
    places=st.lists(st.integers(0, 199), max_size=3),
    step=st.sampled_from([8192, 16384]),
)
def test_scanning_while_comparing_gives_the_state_of_scanning(values, places, step):
    left = np.tile(np.float32(values), 200)
    right = left.copy()
    right[[place % len(right) for place in places]] += 1
    sides = [Side.of(source, source.tensors["w"])
             for source in (MemorySource({"w": left}), MemorySource({"w": right}))]  # fmt: skip
    chunk = Chunk(*sides, 0, len(left), 0.0, True)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("difflens.measure.chunks.STEP", step)
        once = scan_chunk(chunk._replace(always=False, once=True))
        assert once == scan_chunk(chunk)
        assert scan_chunk(chunk._replace(always=False)) == (once if places else None)


def test_each_byte_of_a_chunk_is_read_once_where_a_late_one_differs():
    values = np.zeros(600_000, np.float32)
    (left, one), (right, other) = side(values), side(values)
    other.data = other.data[:-4] + np.float32(1).tobytes()
    chunk = Chunk(left, right, 0, 600_000, 0.0, False)

    scan_chunk(chunk._replace(once=True))
    assert (one.read, other.read) == (2_400_000, 2_400_000)

    scan_chunk(chunk)  # near at hand it is compared first, and read again
    assert one.read > 2 * 2_400_000


def test_an_array_in_memory_is_an_encoding():
    buffer = bytearray(4)
    assert InMemory("w", b"12345678").read_into(2, memoryview(buffer)) == 4
    assert buffer == b"3456"
