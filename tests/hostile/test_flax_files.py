"""MessagePack that lies about lengths, nests without end, or says a name twice."""

import struct
import time

import msgpack
import numpy as np
import pytest
from hostile.survival import MANY, cut, damaged, survive
from models.formats.test_flax import chunked, extension, leaf

from difflens.core.errors import DifflensError
from difflens.models.formats import open_model

W = msgpack.packb({"w": leaf(np.arange(4, dtype="<f4"))})
ARRAY = W[3:]  # the extension alone, behind map and key


def tree(value: object) -> bytes:
    return msgpack.packb({"a": leaf(np.ones(1)), "w": value}, strict_types=True)


def pieces(**changes: object) -> bytes:
    return tree(chunked(np.arange(6.0), 4) | changes)


REFUSED = {
    "a map of 4 billion": (b"\xdf\xff\xff\xff\xff\xa1w" + ARRAY, "a map of 4294967295"),
    "a list of 4 billion": (b"\x82\xa1a" + ARRAY + b"\xa1w\xdd\xff\xff\xff\xff", "a list of"),
    "a text past the end": (b"\x82\xa1a" + ARRAY + b"\xa1w\xdb\xff\xff\xff\xff", "text of"),
    "bytes past the end": (b"\x82\xa1a" + ARRAY + b"\xa1w\xc6\xff\xff\xff\xff", "bytes of"),
    "an extension past the end": (
        b"\x82\xa1a" + ARRAY + b"\xa1w\xc9\xff\xff\xff\xff\x01",
        "extension of",
    ),
    "a byte that begins nothing": (b"\x82\xa1a" + ARRAY + b"\xa1w\xc1", "begins no value"),
    "a key twice": (b"\x82\xa1w" + ARRAY + b"\xa1w" + ARRAY, "stands twice"),
    "a key that is a float": (
        b"\x82\xa1w" + ARRAY + b"\xca\0\0\0\0" + ARRAY,
        "a key that is neither",
    ),
    "a text that is no UTF-8": (b"\x82\xa1w" + ARRAY + b"\xa1\xff" + ARRAY, "no UTF-8"),
    "nested 100,000 deep": (b"\x82\xa1a" + ARRAY + b"\xa1w" + b"\x91" * 100_000, "nested"),
    "maps nested 1,000 deep": (
        b"\x82\xa1a" + ARRAY + b"\xa1w" + b"\x81\xa1x" * 1000 + b"\xc0",
        "nested",
    ),
    "trailing bytes": (W + b"\0", "trailing bytes"),
    "two million values": (
        b"\x82\xa1a" + ARRAY + b"\xa1w\xdd" + struct.pack(">I", 2_000_000) + bytes(2_000_000),
        "more than 1000000 values",
    ),
    "too few bytes": (tree(extension("float32", (4,), bytes(12))), "takes 16 bytes, it has 12"),
    "too many bytes": (tree(extension("float32", (4,), bytes(20))), "takes 16 bytes, it has 20"),
    "a shape below zero": (tree(extension("float32", (-1,), b"")), "no list of shape"),
    "a shape of floats": (tree(extension("float32", (1.0,), bytes(4))), "no list of shape"),
    "a shape that overflows": (tree(extension("float32", (2**40, 2**40, 0), b"")), "overflows"),
    "rank 100": (tree(extension("float32", (1,) * 100, bytes(4))), "rank 100"),
    "an array of two": (
        tree(msgpack.ExtType(1, msgpack.packb([[1], "float32"]))),
        "no list of shape",
    ),
    "an array that is followed": (
        tree(msgpack.ExtType(1, msgpack.packb([[0], "int8", b""]) + b"\0")),
        "longer than",
    ),
    "chunks of several dtypes": (
        pieces(chunks={"0": leaf(np.ones(4)), "1": leaf(np.ones(2, "f4"))}),
        "several dtypes",
    ),
    "chunks out of order": (
        pieces(chunks={"1": leaf(np.ones(4)), "0": leaf(np.ones(2))}),
        "in chunks",
    ),
    "chunks too few": (pieces(chunks={"0": leaf(np.ones(4))}), "takes 48 bytes, it has 32"),
    "no chunks": (pieces(chunks={}), "in chunks"),
    "no shape": (pieces(shape=3), "in chunks"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_checkpoint_that_lies_is_refused_at_once(case, tmp_path):
    data, said = REFUSED[case]
    (tmp_path / "m.msgpack").write_bytes(data)
    began = time.monotonic()

    with pytest.raises(DifflensError, match=said):
        open_model(tmp_path / "m.msgpack", format="flax")
    assert time.monotonic() - began < 5


def good() -> bytes:
    return msgpack.packb(
        {
            "params": {"w": leaf(np.arange(6, dtype="<f4")), "b": leaf(np.ones(2, "<i2"))},
            "big": chunked(np.arange(5.0), 2),
            "step": 3,
        }
    )


def reference(data: bytes, found: dict[str, bytes]) -> bool:
    """Does the library find the same bytes in its extensions?"""
    seen: list[bytes] = []

    def note(code: int, body: bytes) -> None:
        if code in (1, 3):
            seen.append(bytes(msgpack.unpackb(body, raw=True)[2]))

    try:
        msgpack.unpackb(data, ext_hook=note, strict_map_key=False, raw=True)
    except ValueError as error:  # the library reads extension -1 as a time; to us it is opaque
        return "timestamp" in str(error)
    ours = b"".join(found.values())
    # What is left out (a dtype nobody knows) is in the file, and not in ours.
    return all(part in b"".join(seen) for part in found.values()) and len(ours) <= sum(
        map(len, seen)
    )


def test_a_checkpoint_cut_at_any_byte_is_refused(tmp_path):
    assert survive(cut(good()), tmp_path / "m.msgpack") == 0


def test_a_thousand_mutants_give_clean_errors_or_right_values(tmp_path):
    survive(damaged(good(), 1, 1000), tmp_path / "m.msgpack", reference)


@pytest.mark.slow
def test_thousands_of_mutants(tmp_path):
    survive(damaged(good(), 2, MANY), tmp_path / "m.msgpack", reference)
