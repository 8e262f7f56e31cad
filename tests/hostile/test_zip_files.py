"""P15 to P18 and N07 of the security specification: zips that could be read in two ways."""

import io
import struct
import zipfile

import numpy as np
import pytest
from hostile.survival import MANY, cut, damaged, survive

from difflens.core.errors import DifflensError
from difflens.models.formats import open_model


def good() -> bytearray:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as written:
        for name, value in {"a.npy": 1.0, "b.npy": 2.0}.items():
            data = io.BytesIO()
            np.save(data, np.full(3, value))
            written.writestr(name, data.getvalue(), zipfile.ZIP_DEFLATED)
    return bytearray(packed.getvalue())


def entry(data: bytearray, which: int = 0) -> int:
    """Find an entry of the directory."""
    place = -1
    for _ in range(which + 1):
        place = data.index(b"PK\x01\x02", place + 1)
    return place


def both(offset_local: int, offset_entry: int, value: bytes):
    """Change the local header and the directory alike."""

    def change(data: bytearray) -> bytearray:
        data[offset_local : offset_local + len(value)] = value
        at = entry(data) + offset_entry
        data[at : at + len(value)] = value
        return data

    return change


def local(offset: int, value: bytes):
    def change(data: bytearray) -> bytearray:
        data[offset : offset + len(value)] = value
        return data

    return change


def central(offset: int, value: bytes, which: int = 0):
    def change(data: bytearray) -> bytearray:
        at = entry(data, which) + offset
        data[at : at + len(value)] = value
        return data

    return change


def ending(offset: int, value: bytes):
    def change(data: bytearray) -> bytearray:
        at = data.index(b"PK\x05\x06") + offset
        data[at : at + len(value)] = value
        return data

    return change


def second_end(data: bytearray) -> bytearray:
    hidden = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 0, 0, 0, len(data), 0)
    data[-2:] = struct.pack("<H", len(hidden))
    return data + hidden


def one_header_twice(data: bytearray) -> bytearray:
    """Let both entries lie over the first local header."""
    second = entry(data, 1)
    data[second + 10 : second + 30] = data[entry(data) + 10 : entry(data) + 30]
    data[second + 42 : second + 46] = bytes(4)
    return data


def quoted(data: bytearray) -> bytearray:
    """Let the first member's data cover the second's local header."""
    at = entry(data)
    larger = struct.pack("<L", struct.unpack_from("<L", data, 18)[0] + 40)
    data[at + 20 : at + 24] = data[18:22] = larger
    return data


def named(name: bytes):
    def build(data: bytearray) -> bytes:
        del data
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as written:
            info = zipfile.ZipInfo("x" * len(name))
            written.writestr(info, b"")
        return packed.getvalue().replace(b"x" * len(name), name)

    return build


def twice(data: bytearray) -> bytes:
    return bytes(data).replace(b"b.npy", b"a.npy")


def wide_contradiction(data: bytearray) -> bytearray:
    """Put a zip64 field into an entry that needs none, with another size."""
    at = entry(data)
    name = data[at + 28]
    field = struct.pack("<2H2Q", 1, 16, 999, 999)
    data[at + 30 : at + 32] = struct.pack("<H", len(field))
    data[at + 46 + name : at + 46 + name] = field
    end = data.index(b"PK\x05\x06")
    size = struct.unpack_from("<L", data, end + 12)[0]
    data[end + 12 : end + 16] = struct.pack("<L", size + len(field))
    return data


def lying_descriptor(data: bytearray) -> bytearray:
    """Say that a descriptor follows the data where none does."""
    return both(6, 8, b"\x08\x00")(data)


CASES = {
    "P15 two entries over one local header": (one_header_twice, "overlaps|twice"),
    "P15 quoted overlap": (quoted, "overlaps"),
    "P15 local name is another": (local(30, b"z"), "another name"),
    "P15 local size is another": (local(22, b"\xff"), "local header says"),
    "P15 local stored size is another": (local(18, b"\xff"), "local header says"),
    "P15 a descriptor that is not there": (lying_descriptor, "descriptor"),
    "P15 zip64 fields contradict": (wide_contradiction, "contradict"),
    "P15 a size that needs zip64, and no zip64": (central(24, b"\xff" * 4), "zip64"),
    "P16 encrypted": (both(6, 8, b"\x01\x00"), "encrypted"),
    "P16 flag 0x20": (both(6, 8, b"\x20\x00"), "patch"),
    "P16 flag 0x40": (both(6, 8, b"\x40\x00"), "encrypted"),
    "P16 flag 0x2000": (both(6, 8, b"\x00\x20"), "encrypted"),
    "P16 a flag nobody knows": (both(6, 8, b"\x10\x00"), "flags"),
    "P16 flag in the directory alone": (central(8, b"\x00\x20"), "encrypted"),
    "P16 method 99": (both(8, 10, b"\x63\x00"), "method 99"),
    "P16 checksum wrong in both": (both(14, 16, b"\0\0\0\1"), "checksum"),
    "P16 checksum wrong in one": (local(14, b"\0\0\0\1"), "local header says"),
    "P17 junk before": (lambda data: b"PK\x03\x04junk" + bytes(20) + data, "directory"),
    "P17 another zip before": (lambda data: bytes(data) + good(), "directory"),
    "P17 junk, offsets shifted": (
        lambda _: shifted(b"PK\x03\x04" + bytes(26) + b"\xff.npy"),
        "belong to no member",
    ),
    "P17 a comment that holds a second end": (second_end, "second end"),
    "P18 cut in half": (lambda data: data[: len(data) // 2], "no end"),
    "P18 65,535 members, none there": (lambda _: b"PK\x03\x04" + nothing(), "counts 65535 members"),
    "P18 more members than there are": (ending(8, b"\x03\0\x03\0"), "members"),
    "P18 fewer members than there are": (ending(8, b"\x01\0\x01\0"), "entries take"),
    "P18 counts that disagree": (ending(8, b"\x01\0\x02\0"), "disagree"),
    "N07 a name twice": (twice, "twice"),
    "N07 a name that leads out": (named(b"../x.npy"), "leads out"),
    "N07 an absolute name": (named(b"/xyz.npy"), "leads out"),
    "N07 a name with a backslash": (named(b"a\\b.npy"), "leads out"),
    "N07 a name with a NUL": (named(b"ab\0.npy"), "leads out"),
    "K10 a link": (lambda _: link(), "link"),
}


def nothing() -> bytes:
    return struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 65535, 65535, 0, 4, 0)


def shifted(junk: bytes) -> bytes:
    stream = io.BytesIO()
    stream.write(junk)
    with zipfile.ZipFile(stream, "a") as written:
        written.writestr("a.npy", b"")
    return stream.getvalue()


def link() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as written:
        info = zipfile.ZipInfo("a.npy")
        info.create_system, info.external_attr = 3, 0o120777 << 16
        written.writestr(info, b"/etc/passwd")
    return packed.getvalue()


@pytest.mark.parametrize("case", CASES)
def test_a_zip_that_could_be_read_in_two_ways_is_refused(case, tmp_path):
    build, said = CASES[case]
    path = tmp_path / "m.npz"
    path.write_bytes(build(good()))

    with pytest.raises(DifflensError, match=said):
        read_all(path)


def read_all(path) -> None:
    model = open_model(path)
    try:
        for name, info in model.tensors.items():
            model.read_into(name, 0, info.size_bytes, memoryview(bytearray(info.size_bytes)))
    finally:
        model.close()


def reference(data: bytes, found: dict[str, bytes]) -> bool:
    """Does NumPy read the same, where it reads it at all?"""
    try:
        with np.load(io.BytesIO(data)) as arrays:
            theirs = {name: np.ascontiguousarray(arrays[name]) for name in arrays.files}
    except Exception:  # noqa: BLE001  it fails in any way
        return True
    return all(name in theirs and theirs[name].tobytes() == mine for name, mine in found.items())


def test_a_zip_cut_at_any_byte_is_refused(tmp_path):
    assert survive(cut(bytes(good())), tmp_path / "m.npz") == 0


def test_a_thousand_mutants_give_clean_errors_or_right_values(tmp_path):
    survive(damaged(bytes(good()), 1, 1000), tmp_path / "m.npz", reference)


@pytest.mark.slow
def test_thousands_of_mutants(tmp_path):
    survive(damaged(bytes(good()), 2, MANY), tmp_path / "m.npz", reference)
