import struct

import pytest
from hostile.wire import block, sealed, table, varint
from hypothesis import given
from hypothesis import strategies as st
from lanes import examples

from difflens.core.crc32c import crc32c
from difflens.core.errors import CorruptFile, LimitExceeded
from difflens.models.containers import sstable
from difflens.models.containers.sstable import Table
from difflens.storage.local import File


def entries(path, data: bytes) -> dict[bytes, bytes]:
    path.write_bytes(data)
    file = File(path)
    try:
        return dict(Table(file).entries())
    finally:
        file.close()


def test_entries_of_several_blocks_come_in_order(tmp_path):
    data = table(block({b"a": b"1", b"b": b""}), block({b"c": b"3" * 300}))

    assert entries(tmp_path / "t", data) == {b"a": b"1", b"b": b"", b"c": b"3" * 300}


def test_keys_share_their_beginnings(tmp_path):
    contents = bytes([0, 3, 1]) + b"abcX" + bytes([2, 1, 1]) + b"dY" + struct.pack("<II", 0, 1)

    assert entries(tmp_path / "t", table(sealed(contents))) == {b"abc": b"X", b"abd": b"Y"}


def test_a_packed_block_is_unpacked(tmp_path):
    plain = bytes([0, 1, 8]) + b"a" + b"xy" * 4 + struct.pack("<II", 0, 1)
    packed = varint(len(plain)) + bytes([5 << 2]) + plain[:6] + bytes([6 - 1 << 2 | 2, 2, 0])
    packed += bytes([7 << 2]) + plain[-8:]

    assert entries(tmp_path / "t", table(sealed(packed, 1))) == {b"a": b"xyxyxyxy"}


@pytest.mark.parametrize(
    ("blocks", "word"),
    [
        ([block({b"b": b"", b"a": b""})], "order"),
        ([block({b"a": b""}), block({b"a": b""})], "order"),
        ([sealed(b"", 0)], "whole keys"),
        ([sealed(struct.pack("<I", 2**31))], "whole keys"),
        ([sealed(bytes([9, 1, 1]) + b"ab" + struct.pack("<II", 0, 1))], "ends past"),
        ([sealed(bytes([0, 90, 1]) + b"ab" + struct.pack("<II", 0, 1))], "ends past"),
        ([sealed(b"abcd", 7)], "way 7"),
        ([sealed(varint(2**32) + b"\0x", 1)], "claim"),
        ([sealed(varint(5) + b"\x01\x09", 1)], "back"),
        ([sealed(varint(5) + b"\xf0", 1)], "literal"),
        ([sealed(varint(5) + b"\x00x", 1)], "unpacks to 1"),
        ([sealed(b"\xff" * 12, 1)], "length"),
    ],
)
def test_a_block_that_is_none_is_refused(blocks, word, tmp_path):
    with pytest.raises(CorruptFile, match=word):
        entries(tmp_path / "t", table(*blocks))


def test_a_block_over_the_limit_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "t"
    path.write_bytes(table(block({b"a": bytes(5000)})))
    with pytest.raises(LimitExceeded, match="the limit is 1000"):
        dict(Table(File(path, {"json_header": 1000})).entries())


def test_one_flipped_bit_anywhere_is_told_or_changes_nothing(tmp_path):
    good = table(block({b"a": b"1" * 9, b"b": b"2"}))
    plain = entries(tmp_path / "t", good)
    for place in range(8 * len(good)):
        data = bytearray(good)
        data[place // 8] ^= 1 << place % 8
        try:
            found = entries(tmp_path / "t", bytes(data))
        except (CorruptFile, LimitExceeded):
            continue
        assert plain == found


@pytest.mark.parametrize(
    ("data", "said"), [(b"", 0), (b"123456789", 0xE3069283), (bytes(32), 0x8A9136AA)]
)
def test_checksums_are_those_of_the_standard(data, said):
    assert said == crc32c(data)


@examples(50)
@given(st.integers(0, 40_000), st.integers(0, 40_000), st.integers(0, 2**32))
def test_a_checksum_of_parts_is_that_of_the_whole(first, second, seed):
    import random

    data = random.Random(seed).randbytes(first + second)
    state = 0xFFFFFFFF
    for byte in data[:100]:
        state ^= byte
        for _ in range(8):
            state = state >> 1 ^ (0x82F63B78 if state & 1 else 0)

    assert crc32c(data) == crc32c(data[first:], crc32c(data[:first]))
    assert state ^ 0xFFFFFFFF == crc32c(data[:100])


@examples(100)
@given(st.binary(max_size=300))
def test_any_bytes_unpack_or_are_refused(data):
    try:
        made = sstable.unpack(data)
    except sstable.Unpackable:
        return
    assert len(made) <= 32 * len(data)
