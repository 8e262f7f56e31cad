"""Event files: both directions, and checksums as others compute them."""

import io
import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflens.core.crc32c import crc32c, masked
from difflens.training.history.events import (
    Damaged,
    Value,
    encoded,
    event_of,
    first_event,
    is_event_file,
    record,
    records,
    value_head,
)

FLOATS = st.floats(width=32, allow_nan=False)
tags = st.text(st.characters(exclude_categories=["Cs"]))
steps = st.integers(-(2**63), 2**63 - 1)


@given(st.floats(allow_nan=False), steps, st.lists(st.tuples(tags, FLOATS)))
def test_an_event_comes_back(wall_time, step, values):
    parts = [value_head(tag) + struct.pack("<f", value) for tag, value in values]
    data = encoded(wall_time, step, parts)

    assert event_of(data) == (wall_time, step, [Value(*each) for each in values], 0)


@given(st.floats(allow_nan=False), steps, st.lists(st.tuples(tags, FLOATS), max_size=4))
def test_the_real_protocol_buffers_read_the_same(wall_time, step, values):
    proto = pytest.importorskip("tensorboard.compat.proto.event_pb2", exc_type=ImportError)
    parts = [value_head(tag) + struct.pack("<f", value) for tag, value in values]
    found = proto.Event.FromString(encoded(wall_time, step, parts))

    assert (found.wall_time, found.step) == (wall_time, step)
    assert [(each.tag, each.simple_value) for each in found.summary.value] == values
    assert proto.Event.FromString(first_event(3.0)).file_version == "brain.Event:2"


@given(st.binary(max_size=200))
def test_any_bytes_are_an_event_or_damage(data):
    with suppress(Damaged):
        assert event_of(data).others >= 0


@given(st.lists(st.binary(max_size=50)))
def test_records_come_back(parts):
    whole = b"".join(map(record, parts))

    assert list(records(io.BytesIO(whole), len(whole))) == parts


@given(st.binary(max_size=20_000))
def test_the_checksum_is_that_of_the_plain_definition(data):
    state = 0xFFFFFFFF
    for byte in data[:2000]:
        state ^= byte
        for _ in range(8):
            state = state >> 1 ^ (0x82F63B78 if state & 1 else 0)

    assert crc32c(data[:2000]) == state ^ 0xFFFFFFFF
    assert crc32c(data) == crc32c(data[7:], crc32c(data[:7]))


def test_many_lanes_give_the_sum_of_one_byte_after_the_other():
    data = bytes(range(256)) * 100
    state = 0
    for at in range(0, len(data), 100):
        state = crc32c(data[at : at + 100], state)

    assert crc32c(data) == state
    assert masked(crc32c(b"123456789")) == ((0xE3069283 >> 15 | 0xE3069283 << 17) + 0xA282EAD8) % (
        1 << 32
    )


def test_an_event_file_is_known_by_its_first_record():
    assert is_event_file(record(first_event(1.0)))
    assert not is_event_file(record(b"something else"))
    assert not is_event_file(b"x" * 100)
