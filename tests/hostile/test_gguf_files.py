"""GGUF files that are damaged or malicious: table G of the threat model, cuts and mutants."""

from __future__ import annotations

import os
import random
import resource
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf import GGUFReader, GGUFWriter
from gguf.constants import GGMLQuantizationType as Kind
from gguf.quants import dequantize
from hostile.files import MARKER, Case, holds, no, read, sparse, tensors, warns, yes
from hostile.fuzz import mutants

from difflens.core.errors import DifflensError, LimitExceeded
from difflens.models.formats import open_model

LONGEST_SECONDS = 10
MOST_BYTES = 600 * 1024 * 1024
U8, U32, I32, BOOL, STRING, ARRAY, U64 = 0, 4, 5, 7, 8, 9, 10


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def key(name: bytes, kind: int, value: bytes) -> bytes:
    return text(name) + struct.pack("<I", kind) + value


def array(name: bytes, kind: int, count: int, values: bytes = b"") -> bytes:
    return key(name, ARRAY, struct.pack("<IQ", kind, count) + values)


def tensor(name: bytes, dims: tuple[int, ...], kind: int = 0, offset: int = 0, rank: int | None = None) -> bytes:  # fmt: skip  # noqa: E501
    start = text(name) + struct.pack("<I", len(dims) if rank is None else rank)
    return start + struct.pack(f"<{len(dims)}QIQ", *dims, kind & 0xFFFFFFFF, offset)


def made(
    keys: list[bytes], entries: list[bytes], data: bytes = b"", *, alignment: int = 32
) -> bytes:
    head = b"GGUF" + struct.pack("<IQQ", 3, len(entries), len(keys)) + b"".join(keys + entries)
    return head + (bytes(-len(head) % alignment) + data if data else b"")


def file(content: bytes, name: str = "model.gguf") -> Callable[[Path], Path]:
    def build(folder: Path) -> Path:
        path = folder / name
        path.write_bytes(content)
        return path

    return build


def one(entry: bytes, data: bytes = bytes(32)) -> Callable[[Path], Path]:
    return file(made([], [entry], data))


def counts(number_of_tensors: int, number_of_keys: int) -> Callable[[Path], Path]:
    return file(b"GGUF" + struct.pack("<IQQ", 3, number_of_tensors, number_of_keys) + bytes(200))


def with_key(value: bytes) -> Callable[[Path], Path]:
    return file(made([value], []))


GOOD = made([key(b"general.name", STRING, text(b"toy"))], [tensor(b"a", (4,), 24)], b"abcd")
TEN_MILLION = 10**7


def many_strings(folder: Path) -> Path:
    words = b"".join(text(b"w%d" % i) for i in range(100))
    keys = [array(b"tokens", STRING, TEN_MILLION, words * (TEN_MILLION // 100))]
    return file(made([*keys, key(b"last", U8, b"\x07")], []))(folder)


def pickled(folder: Path) -> Path:
    template = f"{{{{ cycler.__init__.__globals__.os.mkdir('{folder / MARKER}') }}}}\x1b[2J"
    return with_key(key(b"tokenizer.chat_template", STRING, text(template.encode())))(folder)


def split(*parts: int) -> Callable[[Path], Path]:
    """Write three files and keep only some of them; the first of those is opened."""

    def build(folder: Path) -> Path:
        writer = GGUFWriter(folder / "m.gguf", "llama", split_max_tensors=1)
        for name in "abc":
            writer.add_tensor(name, np.ones(3, np.float32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        paths = [folder / f"m-0000{number}-of-00003.gguf" for number in (1, 2, 3)]
        for number, path in enumerate(paths, 1):
            if number not in parts:
                path.unlink()
        return paths[parts[0] - 1]

    return build


def big_endian(folder: Path) -> Path:
    head = b"GGUF" + struct.pack(">IQQ", 3, 1, 1)
    head += struct.pack(">Q", 1) + b"k" + struct.pack(">II", U32, 7)
    head += struct.pack(">Q", 1) + b"a" + struct.pack(">IQIQ", 1, 2, 0, 0)
    return file(head + bytes(-len(head) % 32) + struct.pack(">2f", 1, 2))(folder)


def shows(name: str, value: str) -> Callable[[Any], None]:
    def check(source: Any) -> None:
        assert value in source.metadata[name]

    return check


def beginnings() -> Iterator[Case]:
    yield no("G01-fugg", file(b"FUGG" + GOOD[4:]), "big-endian GGUF")
    for version in (0, 4, 65536, 2**32 - 1):
        content = GOOD[:4] + struct.pack("<I", version) + GOOD[8:]
        yield no(f"G01-version-{version}", file(content), "version")
    for size in (4, 8, 23):
        yield no(f"G01-{size}-bytes", file(GOOD[:size]), "short" if size == 4 else "are left")
    for count in (2**64 - 1, 2**60, 2**31):
        yield no(f"G02-{count}-tensors", counts(count, 0), f"counts {count} tensors")
        yield no(f"G02-{count}-keys", counts(0, count), f"counts {count} keys")


def keys() -> Iterator[Case]:
    yield no("G03-key", with_key(struct.pack("<Q", 2**64 - 1) + bytes(9)), "18446744073709551615")
    yield no("G03-value", with_key(key(b"k", STRING, struct.pack("<Q", 99) + b"x")), "99 bytes")
    yield no("G03-empty-key", with_key(key(b"", U64, bytes(8))), "name of 0 bytes")
    yield no("G03-long-key", with_key(key(b"x" * 65_536, U8, b"x")), "name of 65536 bytes")
    yield no("G04-numbers", with_key(array(b"k", U64, 2**61)), "2305843009213693952 uint64")
    yield no("G04-strings", with_key(array(b"k", STRING, 2**32)), "4294967296 strings")
    for last in (99, 2**64 - 1):
        words = text(b"w") * 299 + struct.pack("<Q", last) + b"w"
        yield no(f"G04-string-of-{last}", with_key(array(b"k", STRING, 300, words)), "string 300")
    yield no("G04-type-99", with_key(array(b"k", 99, 1, bytes(8))), "type 99")
    yield no("G04-value-type-13", with_key(key(b"k", 13, bytes(8))), "type 13")
    nested = struct.pack("<IQ", U8, 1) + b"x"
    yield no("G04-nested", with_key(array(b"k", ARRAY, 1, nested)), "array of arrays")
    twice = [key(b"k", U8, b"x"), key(b"k", U8, b"x")]
    yield no("G05-key", file(made(twice, [])), "'k' stands twice")
    same = [tensor(b"a", (4,), 24), tensor(b"a", (4,), 24, 32)]
    yield no("G05-tensor", file(made([], same, bytes(36))), "'a' stands twice")
    for alignment in (0, 1, 4, 13, 2**31):
        value = key(b"general.alignment", U32, struct.pack("<I", alignment))
        content = made([value], [tensor(b"a", (4,), 24)], bytes(4))
        yield no(f"G06-{alignment}", file(content), f"alignment is {alignment}")
    signed = key(b"general.alignment", I32, struct.pack("<i", 32))
    yield no("G06-int32", file(made([signed], [tensor(b"a", (4,), 24)], bytes(4))), "int32")
    written = key(b"general.alignment", STRING, text(b"32"))
    yield no("G06-text", file(made([written], [])), "uint32 is wanted")
    yield no("G12-key-no-utf-8", with_key(key(b"\xff", U8, b"x")), "not UTF-8")
    yield no("bool-of-2", with_key(key(b"k", BOOL, b"\x02")), "bool of 2")


def entries() -> Iterator[Case]:
    for rank in (0, 5, 2**32 - 1):
        yield no(f"G07-{rank}", one(tensor(b"a", (4,), 24, rank=rank)), f"{rank} dimensions")
    yield yes("G07-empty", one(tensor(b"a", (0, 4), 24), b""), holds(a=b""))
    beside = [tensor(b"a", (4,), 24), tensor(b"b", (0,), 0, 32), tensor(b"c", (2, 0), 0)]
    yield yes("G07-empty-beside", file(made([], beside, b"abcd")), holds(a=b"abcd", b=b"", c=b""))
    yield no("G07-empty-afar", one(tensor(b"a", (0,), 0, 640), b""), "which is empty")
    yield no("G07-empty-overflow", one(tensor(b"a", (0, 2**62, 2), 24), b""), "overflow")
    huge = [tensor(b"a", (2**62, 2), 24), tensor(b"b", (2**62, 2), 24, 0)]
    yield no("G07-wraps", file(made([], huge, bytes(32))), "overflow")
    yield no("G07-large", one(tensor(b"a", (2**59,), 24)), "the file has")
    for kind in (4, 5, 9, 99, -1):
        word = str(kind & 0xFFFFFFFF)
        yield no(f"G08-type-{kind}", one(tensor(b"a", (32,), kind), bytes(64)), f"has type {word}")
    yield no("G08-row", one(tensor(b"a", (33,), 2), bytes(64)), "no multiple of the 32 of Q4_0")
    yield no("G08-rows", one(tensor(b"a", (16, 2), 2), bytes(64)), "rows of 16 elements")
    yield no("G09-unaligned", one(tensor(b"a", (4,), 24, 4)), "alignment 32")
    same = [tensor(b"a", (4,), 24), tensor(b"b", (4,), 24)]
    yield no("G09-same-offset", file(made([], same, bytes(4))), "an overlap")
    over = [tensor(b"a", (40,), 24), tensor(b"b", (4,), 24, 32)]
    yield no("G09-overlap", file(made([], over, bytes(64))), "an overlap")
    yield no("G09-past-the-end", one(tensor(b"a", (33,), 24)), "the file has")
    yield no("G09-far", one(tensor(b"a", (4,), 24, 2**64 - 32)), "the file has")
    yield no("trailing", file(made([], [tensor(b"a", (4,), 24)], bytes(33))), "trailing bytes")
    yield no("name-no-utf-8", one(tensor(b"\xff", (4,), 24), bytes(4)), "not UTF-8")
    yield no("name-empty", one(tensor(b"", (4,), 24), bytes(4)), "name of 0 bytes")


def others() -> Iterator[Case]:
    yield yes("G10-big-endian", big_endian, holds(a=struct.pack("<2f", 1, 2)))
    yield yes("G11-template", pickled, shows("tokenizer.chat_template", "{{ cycler"))
    broken = key(b"k", STRING, text(b"a\xff\xfeb"))
    yield yes("G12-no-utf-8", with_key(broken), shows("k", "a\\xff\\xfeb"))
    few = array(b"k", STRING, 2, text(b"\xff") + text(b"b"))
    yield yes("G12-array-no-utf-8", with_key(few), shows("k", '["\\\\xff", "b"]'))
    yield Case("G12-ten-million", many_strings, "open", check=shows("tokens", "[10000000 strings]"))
    for parts in ((1,), (1, 2), (1, 3), (2, 3)):
        missing = min({1, 2, 3} - {*parts})
        word = f"'m-0000{missing}-of-00003.gguf'"
        yield no(f"G13-only-{parts}", split(*parts), word)
    yield Case("G13-all", split(1, 2, 3), "open", check=tensors(3))
    opaque = one(tensor(b"a", (256,), 15), bytes(292))
    yield Case("Q8_K", opaque, "open", check=warns("compared as bytes"))
    lie = made([], [tensor(b"a", (10**12,), 24)], b"x")
    size = len(lie) - 1 + 10**12
    yield Case("F06-terabyte", sparse(size, lie), "open", check=tensors(1), read_all=False)
    terabyte_of_text = made([key(b"k", STRING, struct.pack("<Q", 10**12))], [])
    yield Case("text-of-a-terabyte", sparse(len(terabyte_of_text) + 10**12, terabyte_of_text), "open", check=shows("k", "…(+999998951424 bytes)"))  # fmt: skip  # noqa: E501
    zeros = b"GGUF" + struct.pack("<IQQ", 3, 2**34, 0)
    yield no("a-terabyte-of-zeros", sparse(10**12, zeros), "name of 0 bytes")
    strings = made([array(b"k", STRING, 2**36)], [])
    yield no("more-strings-than-fit", sparse(2**36, strings), "68719476736 strings")


CASES = [*beginnings(), *keys(), *entries(), *others()]


def resident(line: str, *, forget: bool = False) -> int:
    """Return the kilobytes in memory now, or the most since the last reset."""
    if forget:
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status").read_text()
    return int(status.partition(f"{line}:")[2].split()[0])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_hostile_gguf_earns_its_sentence(case: Case, tmp_path):
    path = case.build(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    memory = resident("VmRSS", forget=True)

    start = time.monotonic()
    if case.outcome == "reject":
        with pytest.raises(DifflensError) as caught:
            open_model(path)
        sentence(caught.value)
        assert case.word in str(caught.value)
    else:
        model = open_model(path)
        case.check(model)
        for name in model.tensors if case.read_all else ():
            read(model, name)
        model.confirm()
        model.close()

    assert time.monotonic() - start < (10 if case.outcome == "open" else 1)
    assert resident("VmHWM") - memory < 64 * 1024
    assert before == sorted(tmp_path.rglob("*"))


def sentence(error: DifflensError) -> None:
    said = str(error)
    assert said.isprintable()
    assert "invalid" not in said.lower()
    assert not said.endswith(".")
    assert len(error.reason) < 700


def test_the_ids_of_the_cases_are_their_own():
    assert len(CASES) == len({case.id for case in CASES})


def test_every_refusal_gives_its_descriptors_back(tmp_path):
    before = len(list(Path("/proc/self/fd").iterdir()))
    for case in CASES:
        if case.outcome == "reject" and case.id.startswith(("G04", "G07", "G13")):
            (tmp_path / case.id).mkdir()
            with pytest.raises(DifflensError):
                open_model(case.build(tmp_path / case.id))

    assert before == len(list(Path("/proc/self/fd").iterdir()))


def test_a_part_that_is_damaged_closes_the_others(tmp_path):
    path = split(1, 2, 3)(tmp_path)
    third = tmp_path / "m-00003-of-00003.gguf"
    third.write_bytes(third.read_bytes()[:-32])
    before = len(list(Path("/proc/self/fd").iterdir()))

    with pytest.raises(DifflensError, match="00003-of-00003"):
        open_model(path)
    assert before == len(list(Path("/proc/self/fd").iterdir()))


def test_more_text_than_the_limit_is_refused(tmp_path):
    path = with_key(key(b"k", STRING, text(b"x" * 1000)))(tmp_path)

    with pytest.raises(LimitExceeded, match="more than the limit of 999 bytes"):
        open_model(path, limits={"json_header": 999})
    open_model(path, limits={"json_header": 1000}).close()


@pytest.fixture
def good(tmp_path, monkeypatch) -> bytes:
    """Make a small file; three elements are a long array, so that short files have one."""
    monkeypatch.setattr("difflens.models.gguf.header._SHORT_ARRAY", 3)
    path = tmp_path / "good.gguf"
    writer = GGUFWriter(path, "llama")
    writer.add_name("toy")
    writer.add_float32("x.eps", 1e-5)
    writer.add_array("x.sections", [1, 2, 3])
    writer.add_token_list(["a", "bc", "", "def"])
    chance = np.random.default_rng(0)
    writer.add_tensor("a.weight", np.arange(6, dtype=np.float32).reshape(2, 3))
    for kind, size in ((Kind.Q4_0, 18), (Kind.Q5_1, 24), (Kind.Q8_0, 34)):
        data = chance.integers(0, 60, (2, size), np.uint8)
        writer.add_tensor(f"{kind.name}.weight", data, raw_dtype=kind)
    writer.add_tensor("half", np.ones((3, 5), np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path.read_bytes()


def values(model: Any) -> dict[str, bytes]:
    return {name: read(model, name) for name in model.tensors}


def test_a_file_cut_at_any_byte_is_refused_or_lacks_padding_alone(good, tmp_path):
    path = tmp_path / "cut.gguf"
    path.write_bytes(good)
    model = open_model(path)
    expected, metadata = values(model), model.metadata
    model.close()
    opened = []
    for end in range(len(good)):
        path.write_bytes(good[:end])
        try:
            model = open_model(path)
        except DifflensError as error:
            sentence(error)
        else:
            assert (expected, metadata) == (values(model), model.metadata)
            model.close()
            opened.append(end)

    assert len(good) < 2000
    assert opened == list(range(len(good) - 2, len(good)))  # the last tensor takes 30 of 32 bytes


def numbers_changed(good: bytes, seed: int, count: int) -> Iterator[bytes]:
    """Put telling numbers where the header keeps its counts, lengths, types and offsets."""
    chance = random.Random(seed)
    telling = (0, 1, 2, 4, 8, 9, 31, 32, 33, 255, 2**31, 2**32 - 1, 2**61, 2**63, 2**64 - 1)
    header = good.index(b"half") + 40
    for _ in range(count):
        data = bytearray(good)
        for _ in range(chance.choice((1, 1, 2))):
            at, width = chance.randrange(4, header), chance.choice((4, 8))
            old = int.from_bytes(data[at : at + width], "little")
            new = chance.choice((*telling, old + 1, old - 1, old ^ 32)) & (256**width - 1)
            data[at : at + width] = new.to_bytes(width, "little")
        yield bytes(data)


def survive(good: bytes, folder: Path, seed: int, count: int) -> int:
    """Open every mutant and read all of it; hold those that open against the real library."""
    path, opened = folder / "mutant.gguf", 0
    for kind in (mutants, numbers_changed):
        for data in kind(good, seed, count // 2):
            path.write_bytes(data)
            start = time.monotonic()
            try:
                model = open_model(path)
            except DifflensError as error:
                sentence(error)
            else:
                agrees(path, values(model))
                model.confirm()
                model.close()
                opened += 1
            assert time.monotonic() - start < LONGEST_SECONDS
    return opened


def agrees(path: Path, ours: dict[str, bytes]) -> None:
    """What we open, the real library opens, with the same values where it can decode them."""
    if path.read_bytes()[4] in {0, 1}:
        return  # versions and byte orders it does not read, or reads without swapping the values
    try:
        reader = GGUFReader(path)
    except ValueError as error:
        assert "is not a valid GGMLQuantizationType" in str(error)  # noqa: PT017  removed types
        return
    assert [each.name for each in reader.tensors] == list(ours)
    for each in reader.tensors:
        if each.data.size and each.data.dtype == np.uint8 and each.tensor_type not in {Kind.BF16, Kind.Q8_K, Kind.Q1_0}:  # fmt: skip  # noqa: E501
            with np.errstate(all="ignore"):
                theirs = dequantize(np.ascontiguousarray(each.data), each.tensor_type)
            found = np.frombuffer(ours[each.name], np.float32).reshape(theirs.shape)
            np.testing.assert_array_equal(theirs, found)
        else:
            assert each.data.tobytes() == ours[each.name]


def test_a_thousand_mutants_give_clean_errors_or_right_values(good, tmp_path):
    assert 0 < survive(good, tmp_path, seed=1, count=1000) < 1000


@pytest.mark.slow
def test_five_thousand_mutants(good, tmp_path):
    count = int(os.environ.get("DIFFLENS_FUZZ", "5000"))
    survive(good, tmp_path, seed=int(os.environ.get("DIFFLENS_SEED", "2")), count=count)

    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 < MOST_BYTES
