"""Damaged and malicious files and folders, made by code, each with what it must earn.

A case builds itself in an empty folder and gives the path to open. `reject` means
one of our errors whose text holds `word`; `open` means that it opens, all bytes can be
read and `check` finds what it should; `bounded` means either.
"""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

MARKER = "MARKER"


@dataclass(frozen=True)
class Case:
    """One bad input."""

    id: str
    build: Callable[[Path], Path]
    outcome: Literal["reject", "open", "bounded"]
    word: str = ""
    check: Callable[[Any], None] = lambda _: None
    slow: bool = False
    needs_user: bool = False  # root is refused nothing
    read_all: bool = True
    most_open: int | None = None  # how many descriptors the process may have


def entry(dtype: Any, shape: Any, begin: Any, end: Any) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def raw(header: bytes, data: bytes = b"") -> bytes:
    return struct.pack("<Q", len(header)) + header + data


def model(header: Any, data: bytes = b"") -> bytes:
    return raw(json.dumps(header).encode(), data)


GOOD = model({"a": entry("U8", [4], 0, 4)}, b"abcd")


def file(content: bytes, name: str = "model.safetensors") -> Callable[[Path], Path]:
    def build(folder: Path) -> Path:
        path = folder / name
        path.write_bytes(content)
        return path

    return build


def one(tensor: Any, data: bytes = bytes(4)) -> Callable[[Path], Path]:
    return file(model({"a": tensor}, data))


def header(text: bytes, data: bytes = b"") -> Callable[[Path], Path]:
    return file(raw(text, data))


def shape(text: str) -> Callable[[Path], Path]:
    return header(b'{"a":{"dtype":"U8","shape":%b,"data_offsets":[0,4]}}' % text.encode(), bytes(4))


def sparse(length: int, start: bytes) -> Callable[[Path], Path]:
    def build(folder: Path) -> Path:
        path = file(start)(folder)
        os.truncate(path, length)
        return path

    return build


def many(count: int) -> Callable[[Path], Path]:
    """Build that many tensors of one byte; by hand, because json.dumps would need minutes."""

    def build(folder: Path) -> Path:
        entries = ",".join(
            f'"layers.{i}.w":{{"dtype":"U8","shape":[1],"data_offsets":[{i},{i + 1}]}}'
            for i in range(count)
        )
        return header(b"{%b}" % entries.encode(), bytes(count))(folder)

    return build


def overlapping(folder: Path) -> Path:
    same = json.dumps(entry("F32", [200, 200], 0, 160_000))
    entries = ",".join(f'"{i}":{same}' for i in range(100_000))
    return header(b"{%b}" % entries.encode(), bytes(160_000))(folder)


def pickle_after(folder: Path) -> Path:
    """Append a pickle that makes the marker if anything ever loads it."""
    payload = b"cos\nmkdir\n(V" + str(folder / MARKER).encode() + b"\ntR."
    return file(GOOD + payload)(folder)


def tensors(count: int) -> Callable[[Any], None]:
    def check(source: Any) -> None:
        assert len(source.tensors) == count

    return check


def holds(**expected: bytes) -> Callable[[Any], None]:
    def check(source: Any) -> None:
        for name, content in expected.items():
            assert read(source, name) == content

    return check


def warns(word: str) -> Callable[[Any], None]:
    def check(source: Any) -> None:
        assert any(word in warning for warning in source.warnings), source.warnings

    return check


def read(source: Any, name: str) -> bytes:
    """Read a tensor whole; only tests may."""
    buffer = bytearray(source.tensors[name].size_bytes)
    assert source.read_into(name, 0, len(buffer), memoryview(buffer)) == len(buffer)
    return bytes(buffer)


def no(number: str, build: Callable[[Path], Path], word: str) -> Case:
    return Case(number, build, "reject", word)


def yes(number: str, build: Callable[[Path], Path], check: Callable[[Any], None]) -> Case:
    return Case(number, build, "open", check=check)


def length_cases() -> Iterator[Case]:
    yield no("S01-empty", file(b""), "empty")
    yield no("S01-seven-bytes", file(bytes(7)), "too short")
    yield no("S02-length-2-to-64", file(b"\xff" * 8 + b"{}"), "18446744073709551623")
    yield no("S03-one-more-than-left", file(struct.pack("<Q", 3) + b"{}"), "the file has 10")
    yield no("S03-99999999-in-60", file(struct.pack("<Q", 99_999_999) + b"{" * 52), "has 60")
    too_long = struct.pack("<Q", 100_000_001) + b"{"
    yield no("S04-header-too-large", sparse(100_000_009, too_long), "header too large")
    yield no("S05-list", header(b"[]"), "an object")
    yield no("S05-open-brace", header(b"{"), "not JSON")
    yield no("S05-utf-16-mark", header(b"\xff\xfe"), "not UTF-8")
    yield no("S05-byte-order-mark", header(b"\xef\xbb\xbf{}"), "byte-order mark")
    yield no("S05-two-nuls", header(b"{}\0\0"), "not JSON")
    good = json.dumps({"a": entry("U8", [4], 0, 4)}).encode()
    yield yes("S06-spaces-before", header(b"  " + good, b"abcd"), holds(a=b"abcd"))
    yield yes("S06-spaces-after", header(good + b" " * 9, b"abcd"), holds(a=b"abcd"))
    yield no("S07-one-byte-more", file(GOOD + b"x"), "trailing bytes")
    yield no("S07-appended-zip", file(GOOD + b"PK\x05\x06" + bytes(18)), "trailing bytes")
    yield no("S07-appended-pickle", pickle_after, "trailing bytes")
    yield no("S08-two-bytes-cut", file(GOOD[:-2]), f"byte {len(GOOD)}, the file has")


def entry_cases() -> Iterator[Case]:
    hole = {"a": entry("U8", [4], 0, 4), "b": entry("U8", [4], 8, 12)}
    yield no("S09-hole", file(model(hole, bytes(12))), "hole")
    yield no("S10-overlap", overlapping, "overlap")
    yield no("S11-backwards", one(entry("U8", [4], 8, 4), bytes(8)), "backwards")
    yield no("S11-size-differs", one(entry("U8", [2], 0, 4)), "takes 2 bytes")
    yield no("S11-first-begins-late", one(entry("U8", [4], 4, 8), bytes(8)), "hole")
    for text in ("[2,9223372036854775807]", "[4294967296,4294967296]", "[2,18446744073709551614]"):
        yield no(f"S12-{text}", shape(text), "overflow")
    yield no("S12-in-bits", one(entry("F64", [2**59], 0, 2**62)), "overflow")
    yield no("S12-before-a-zero", one(entry("U8", [2**62, 2**62, 0], 0, 0), b""), "overflow")
    for text in ("[-1]", "[1.0]", "[true]", '["4"]', "[1e0]", "[NaN]", "[null]", "[[4]]", "4"):
        yield no(f"S13-{text}", shape(text), "integer" if text != "4" else "shape")
    for dtype in ("F128", "f32", 3):
        yield no(f"S14-{dtype}", one(entry(dtype, [4], 0, 4)), str(dtype))
    yield no("S14-missing", one({"shape": [4], "data_offsets": [0, 4]}), "no dtype")
    unknown = entry("U8", [4], 0, 4) | {"stride": 1}
    yield no("S14-unknown-key", one(unknown), "stride")
    yield no("S15-half-byte", one(entry("F4", [3], 0, 2), bytes(2)), "not a whole number of bytes")


def other_cases() -> Iterator[Case]:
    yield no("S16-number", header(b'{"__metadata__":{"a":1}}'), "string")
    yield no("S16-twice", header(b'{"__metadata__":{"a":"1","a":"2"}}'), "twice")
    yield no("S16-list", header(b'{"__metadata__":[]}'), "an object")
    yield no(
        "S16-tensor", file(model({"__metadata__": entry("U8", [4], 0, 4)}, bytes(4))), "tensor"
    )
    yield no("S16-tensor-twice", header(b'{"a":1,"a":1}'), "twice")
    text = b'{"__metadata__":{"a":"%b"}}' % (b"x" * 50_000_000)
    yield Case("S17-50-MB-string", header(text), "bounded")
    surrogate = b'{"\\ud800":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}'
    yield no("S18-lone-surrogate", header(surrogate, bytes(4)), "surrogate")
    yield no("S19-rank-100", one(entry("U8", [1] * 100, 0, 1), b"x"), "rank")
    beside = {"empty": entry("F32", [0], 0, 0), "full": entry("U8", [4], 0, 4)}
    yield yes("S20-zero-size", file(model(beside, b"abcd")), holds(empty=b"", full=b"abcd"))
    unaligned = {"a": entry("U8", [1], 0, 1), "b": entry("F64", [1], 1, 9)}
    yield yes("S21-unaligned", file(model(unaligned, b"x12345678")), holds(b=b"12345678"))
    odd = b"\x00\x01\x02\xff"
    yield yes("S22-odd-bools", one(entry("BOOL", [4], 0, 4), odd), holds(a=odd))
    yield yes("S23-50000-tensors", many(50_000), tensors(50_000))
    yield Case("S23-million", many(1_000_000), "open", check=tensors(1_000_000), slow=True)
    lfs = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 9\n"
    yield no("S24-lfs", file(lfs), "Git LFS pointer")
    yield no("S24-html", file(b"\n<!DOCTYPE html><html><body>404</body></html>"), "HTML page")
    yield no("S24-json", file(b'{"error": "Repository not found"}'), "JSON error body")
    yield no("S24-zip", file(b"PK\x03\x04\x14\x00\x08\x08" + bytes(40)), "zip")
    yield no("S24-plain-text", file(b"Entry not found"), "text")
    eights = {
        "a": entry("F8_E4M3", [3], 0, 3),
        "b": entry("F8_E5M2", [2], 3, 5),
        "c": entry("F8_E8M0", [1], 5, 6),
        "d": entry("BF16", [1], 6, 8),
    }
    data = bytes.fromhex("7fff7e 7c7d ff 807f")
    yield yes("S25-specials", file(model(eights, data)), holds(a=data[:3], d=data[6:]))


INDEX = "model.safetensors.index.json"


def folder(
    shards: dict[str, dict[str, bytes]], index: Any = None, **others: bytes
) -> Callable[[Path], Path]:
    """Build shards of byte tensors, an index where one is given, and other files."""

    def build(place: Path) -> Path:
        root = place / "model"
        root.mkdir()
        for name, content in shards.items():
            (root / name).write_bytes(shard(content))
        if index is not None:
            text = index if isinstance(index, bytes) else json.dumps(index).encode()
            (root / INDEX).write_bytes(text)
        for name, data in others.items():
            (root / name.replace("__", ".")).write_bytes(data)
        return root

    return build


def shard(content: dict[str, bytes]) -> bytes:
    entries, place = {}, 0
    for name, data in content.items():
        entries[name] = entry("U8", [len(data)], place, place + len(data))
        place += len(data)
    return model(entries, b"".join(content.values()))


ONE, TWO = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
BOTH = {ONE: {"a": b"aa"}, TWO: {"b": b"bbb"}}
MAP = {"a": ONE, "b": TWO}


def linked(place: Path) -> Path:
    root = folder({ONE: {"a": b"aa"}}, {"weight_map": MAP})(place)
    (place / "elsewhere").write_bytes(shard({"b": b"bbb"}))
    (root / TWO).symlink_to(place / "elsewhere")
    return root


def dangling(place: Path) -> Path:
    root = folder({ONE: {"a": b"aa"}}, {"weight_map": MAP})(place)
    (root / TWO).symlink_to(place / "nowhere")
    return root


def linked_folder(place: Path) -> Path:
    root = folder({}, {"weight_map": {"a": "sub/x.safetensors"}})(place)
    (place / "out").mkdir()
    (place / "out" / "x.safetensors").write_bytes(shard({"a": b"a"}))
    (root / "sub").symlink_to(place / "out")
    return root


def ten_thousand(place: Path) -> Path:
    names = [f"s{i:05}.safetensors" for i in range(10_000)]
    shards = {name: {str(i): b"x"} for i, name in enumerate(names)}
    return folder(shards, {"weight_map": {str(i): name for i, name in enumerate(names)}})(place)


def huge_index(place: Path) -> Path:
    root = folder(BOTH, {"weight_map": MAP})(place)
    os.truncate(root / INDEX, 300_000_000)
    return root


def folder_cases() -> Iterator[Case]:
    whole = holds(a=b"aa", b=b"bbb")
    yield Case("X00-good", folder(BOTH, {"weight_map": MAP}), "open", check=whole)
    yield Case("X00-no-index", folder(BOTH), "open", check=whole)
    yield no("X01-missing-shard", folder({ONE: {"a": b"aa"}}, {"weight_map": MAP}), TWO)
    swapped = {"weight_map": {"a": TWO, "b": TWO}}
    yield no("X02-wrong-shard", folder({ONE: {}, TWO: {"b": b"b"}}, swapped), "no shard holds it")
    swapped = {"weight_map": {"a": TWO, "b": ONE}}
    yield no("X02-swapped", folder(BOTH, swapped), "it is in")
    extra = {ONE: {"a": b"aa", "extra": b"e"}, TWO: {"b": b"bbb"}}
    check = warns("'extra'")
    yield Case("X03-extra", folder(extra, {"weight_map": MAP}), "open", check=check)
    wrong = {"weight_map": MAP, "metadata": {"total_size": 7}}
    yield Case("X03-total-size", folder(BOTH, wrong), "open", check=warns("total_size of 7"))
    bad: tuple[Any, ...] = (
        "/etc/hostname",
        "C:\\x",
        "sub\\..\\x",
        "",
        5,
        [],
        "../x",
        "a/../../x",
        "a\0b",
        None,
        {},
    )
    for name in bad:
        index = {"weight_map": {"a": name}}
        yield no(f"X04-{name!r:.20}", folder(BOTH, index), "shard")
    yield no("X04-linked-folder", linked_folder, "leads out")
    yield no("X05-no-map", folder(BOTH, {"metadata": {}}), "weight_map is missing")
    yield no("X05-list", folder(BOTH, {"weight_map": []}), "weight_map")
    yield no("X05-empty", folder(BOTH, {"weight_map": {}}), "no shard")
    yield no("X05-itself", folder(BOTH, {"weight_map": {"a": INDEX}}), "itself")
    yield no("X05-not-an-object", folder(BOTH, b"[]"), "weight_map")
    double = {ONE: {"a": b"aa"}, TWO: {"a": b"ab", "b": b"bbb"}}
    yield no("X06-two-shards", folder(double), "two shards")
    yield no("X06-with-index", folder(double, {"weight_map": MAP}), "two shards")
    yield Case("X07-10000-shards", ten_thousand, "open", check=tensors(10_000), most_open=256)
    yield Case("X08-link", linked, "open", check=whole)
    yield no("X08-broken-link", dangling, "link")
    yield no("X09-deep", folder(BOTH, b"[" * 100_000 + b"]" * 100_000), "nested")
    yield no("X09-300-MB", huge_index, "too large")
    single = folder({"model.safetensors": {"a": b"aa"}}, pytorch_model__bin=b"x")
    yield Case("X10-both", single, "open", check=warns("'pytorch_model.bin'"))


def empty_folder(place: Path) -> Path:
    (place / "empty").mkdir()
    return place / "empty"


def at_socket(place: Path) -> Path:
    path = place / "model.safetensors"
    here = Path.cwd()
    os.chdir(place)  # a socket's path may have about 100 characters
    try:
        with socket.socket(socket.AF_UNIX) as end:
            end.bind(path.name)
    finally:
        os.chdir(here)
    return path


def pipe(place: Path) -> Path:
    os.mkfifo(place / "model.safetensors")
    return place / "model.safetensors"


def loop(place: Path) -> Path:
    (place / "a.safetensors").symlink_to("b.safetensors")
    (place / "b.safetensors").symlink_to("a.safetensors")
    return place / "a.safetensors"


def broken(place: Path) -> Path:
    (place / "a.safetensors").symlink_to("nowhere")
    return place / "a.safetensors"


def locked(place: Path) -> Path:
    path = file(GOOD)(place)
    path.chmod(0)
    return path


def file_cases() -> Iterator[Case]:
    yield no("F01-folder-without-a-model", empty_folder, "no model")
    yield no("F01-socket", at_socket, "socket")
    yield no("F01-pipe", pipe, "pipe")
    yield no("F01-device", lambda _: Path("/dev/zero"), "device")
    yield no("F02-missing", lambda place: place / "no.safetensors", "no such file")
    yield no("F02-broken-link", broken, "link to a file that is not there")
    yield no("F02-link-loop", loop, "too many links")
    yield Case("F02-locked", locked, "reject", "permission denied", needs_user=True)
    yield no("F02-long-name", lambda place: place / ("x" * 300), "too long")
    yield no("F02-not-utf-8", lambda place: place / os.fsdecode(b"\xff\xfe"), "\\xff\\xfe")
    yield no("F02-escape", lambda place: place / "a\x1b[2J\nb", "a\\x1b[2J\\x0ab")
    yield no("F02-nul", lambda place: place / "a\0b", "characters")
    yield no("F02-under-a-file", lambda place: file(GOOD)(place) / "x", "not a folder")
    yield no("F02-surrogate", lambda place: place / "a\ud800", "\\ud800")
    terabyte = model({"a": entry("U8", [10**12], 0, 10**12)})
    size = len(terabyte) + 10**12
    yield Case("F06-terabyte", sparse(size, terabyte), "open", check=tensors(1), read_all=False)
    yield Case("F08-no-tensors", header(b"{}"), "open", check=tensors(0))


CASES = [*length_cases(), *entry_cases(), *other_cases(), *folder_cases(), *file_cases()]
