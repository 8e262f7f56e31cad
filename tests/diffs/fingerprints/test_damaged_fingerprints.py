"""Damaged and hostile fingerprints: an error of one line, or the very same fingerprint."""

import json
import struct
import time
import tracemalloc
import zlib

import numpy as np
import pytest
from hostile.fuzz import mutants
from hostile.watch import WATCH
from models.small import arrays, tensor, write

from difflens.core.errors import DifflensError, LimitExceeded
from difflens.core.escape import visible
from difflens.diffs.fingerprints.file import read_fingerprint, to_bytes
from difflens.diffs.fingerprints.recognise import is_fingerprint
from difflens.diffs.fingerprints.sides import fingerprint_of, open_side
from difflens.diffs.fingerprints.summary import parse_summary, summarise


@pytest.fixture
def good(tmp_path):
    values = np.random.default_rng(0).standard_normal((40, 60))
    model = arrays(a=values, b=values[0]) | {
        "c": tensor(values > 0, "BOOL"),
        "packed": ("F6_E2M3", (4,), b"abc"),
        "none": ("F32", (0, 3), b""),
    }
    path = write(tmp_path / "m.safetensors", model)
    return to_bytes(fingerprint_of(open_side(path), 1, None))


def rewritten(good, change):
    """Change the index of a fingerprint, and make its lengths and its checksum fit again."""
    start = 8 + int.from_bytes(good[:8], "little")
    header = json.loads(good[8:start])
    length = header["index"]["data_offsets"][1]
    index = json.loads(good[start : start + length])
    index = change(index) or index
    data = json.dumps(index).encode()
    data += b" " * (-len(data) % 8)
    moved = len(data) - length
    header["index"] = {"dtype": "U8", "shape": [len(data)], "data_offsets": [0, len(data)]}
    for name in ("sketches", "checksum"):
        header[name]["data_offsets"] = [each + moved for each in header[name]["data_offsets"]]
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    body = struct.pack("<Q", len(text)) + text + data + good[start + length : -4]
    return body + struct.pack("<I", zlib.crc32(body))


def refusal(tmp_path, data, limits=None):
    path = tmp_path / "bad.fingerprint"
    path.write_bytes(data)
    with pytest.raises(DifflensError) as caught:
        read_fingerprint(path, limits)
    reason = str(caught.value)
    assert visible(reason) == reason
    assert len(reason) < 500
    return reason


def test_a_rewritten_fingerprint_can_be_read(tmp_path, good):
    path = tmp_path / "same.fingerprint"
    path.write_bytes(rewritten(good, lambda _index: None))

    assert set(read_fingerprint(path).tensors) == {"a", "b", "c", "packed", "none"}


def set_in(field, value, at=0):
    def change(index):
        index["tensors"][at][field] = value

    return change


CHANGES = {
    "no such dtype": (set_in("dtype", "F128"), "no dtype is called"),
    "a dtype with a code": (set_in("dtype", "\x1b[31m"), "no dtype is called"),
    "a negative dimension": (set_in("shape", [-1, 60]), "its shape cannot be"),
    "a huge dimension": (set_in("shape", [2**63, 1]), "damaged"),
    "a product beyond a file": (set_in("shape", [2**62, 2**62]), "larger than any file"),
    "too many dimensions": (set_in("shape", [1] * 65), "its shape cannot be"),
    "another size": (set_in("shape", [3]), "its sketches do not fit"),
    "a short root": (set_in("root", "ab"), "its root is no hash"),
    "a root of other letters": (set_in("root", "g" * 64), "its root is no hash"),
    "a huge exponent": (set_in("exponent", 10**6), "exponent of its sketch"),
    "an exponent of text": (set_in("exponent", "1"), "its index"),
    "no statistics": (set_in("stats", None), "statistics do not fit"),
    "statistics of what has none": (set_in("stats", {"zeros": 1}, 3), "statistics do not fit"),
    "a sketch of what has none": (set_in("exponent", 1, 4), "statistics do not fit"),
    "more zeros than numbers": (set_in("stats", {"zeros": 10**9}), "statistics cannot be"),
    "a negative count": (set_in("stats", {"nan": -1}), "statistics cannot be"),
    "a negative deviation": (set_in("stats", {"std": -1.0}), "statistics cannot be"),
    "a minimum above the maximum": (set_in("stats", {"min": 2.0, "max": 1.0}), "cannot be"),
    "a name twice": (set_in("name", "b"), "it is named twice"),
    "a name that is a number": (set_in("name", 5), "its index"),
    "an unknown field": (set_in("hidden", 1), "its index"),
    "no tensors, but sketches": (lambda index: index | {"tensors": []}, "its sketches do not fit"),
    "a list": (lambda index: [index], "its index"),
    "a negative count of state": (lambda index: index | {"state": [-1, 0]}, "counts of state"),
    "a path that is a list": (lambda index: index | {"path": []}, "its index"),
    "metadata that nests": (lambda index: index | {"metadata": {"a": {}}}, "its index"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_an_index_that_contradicts_itself_is_refused(tmp_path, good, name):
    change, words = CHANGES[name]

    assert words in refusal(tmp_path, rewritten(good, change))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", "-Infinity"])
def test_numbers_that_are_none_are_refused(tmp_path, good, number):
    changed = rewritten(good, set_in("stats", {"mean": 12345.5}))
    data = changed.replace(b"12345.5", number.encode().rjust(7)[:7].ljust(7))

    assert "damaged" in refusal(tmp_path, data[:-4] + struct.pack("<I", zlib.crc32(data[:-4])))


@pytest.mark.parametrize(
    "count", [2_000, pytest.param(100_000, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_damaged_fingerprints_are_refused(tmp_path, good, count):
    path, refused = tmp_path / "bad.fingerprint", []
    for data in mutants(good, 1, count):
        path.write_bytes(data)
        try:
            read = to_bytes(read_fingerprint(path))
        except DifflensError as error:
            refused.append(str(error))
        else:
            assert read == good

    assert len(refused) > 0.75 * count
    assert refused == list(map(visible, refused))


def test_a_fingerprint_with_a_right_checksum_and_any_content_is_read_or_refused(tmp_path, good):
    path, refused = tmp_path / "bad.fingerprint", []
    for data in mutants(good, 2, 1500):
        path.write_bytes(data[:-4] + struct.pack("<I", zlib.crc32(data[:-4])))
        try:
            read_fingerprint(path)
        except DifflensError as error:
            refused.append(str(error))

    assert len(refused) > 700
    assert refused == list(map(visible, refused))


def test_a_fingerprint_cut_anywhere_is_refused(tmp_path, good):
    for length in range(0, len(good), 211):
        refusal(tmp_path, good[:length])


def test_any_flipped_bit_is_noticed(tmp_path, good):
    random = np.random.default_rng(0)
    for at in random.integers(0, len(good), 300):
        data = bytearray(good)
        data[at] ^= 1 << random.integers(8)
        refusal(tmp_path, bytes(data))


def test_lies_about_sizes_take_neither_memory_nor_time(tmp_path, good):
    lies = [
        struct.pack("<Q", 2**63) + good[8:],
        struct.pack("<Q", 99_999_999) + good[8:],
        rewritten(good, set_in("shape", [2**31, 2**28])),
    ]
    tracemalloc.start()
    began = time.monotonic()
    for data in lies:
        refusal(tmp_path, data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 20_000_000
    assert time.monotonic() - began < 5


def test_a_huge_file_of_holes_is_not_read_into_memory(tmp_path, good):
    path = tmp_path / "bad.fingerprint"
    path.write_bytes(good)
    with path.open("r+b") as file:
        file.truncate(10**12)
    tracemalloc.start()
    with pytest.raises(DifflensError):
        read_fingerprint(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 20_000_000


def test_a_large_index_needs_a_limit(tmp_path, good):
    path = tmp_path / "m.fingerprint"
    path.write_bytes(good)

    with pytest.raises(LimitExceeded, match="its index takes"):
        read_fingerprint(path, {"json_header": 100})


def test_reading_a_fingerprint_does_nothing_else(tmp_path, good):
    path = tmp_path / "m.fingerprint"
    path.write_bytes(good)
    WATCH.seen.clear()
    WATCH.listening = True
    try:
        read_fingerprint(path)
    finally:
        WATCH.listening = False

    assert WATCH.seen == []


def test_what_is_no_file_is_no_fingerprint(tmp_path):
    (tmp_path / "folder").mkdir()
    for each in (tmp_path, tmp_path / "folder", tmp_path / "absent", "", "a\0b", 5, None, {}):
        assert not is_fingerprint(each)


def test_a_damaged_summary_is_refused(tmp_path, good):
    path = tmp_path / "m.fingerprint"
    path.write_bytes(good)
    data = summarise(read_fingerprint(path)).to_bytes()

    assert parse_summary(data, "x").to_bytes() == data
    for length in range(0, len(data), 97):
        with pytest.raises(DifflensError, match="summary of a fingerprint is damaged"):
            parse_summary(data[:length], "x")
