"""Every HDF5 and Keras case of the table of bad inputs, and what random damage does."""

import json
import os
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import h5py
import numpy as np
import pytest
from hostile.files import MARKER, Case, no, read, warns, yes
from hostile.fuzz import mutants
from hostile.watched import audit, environment

from difflens.core.errors import ChangedWhileReading, CorruptFile, DifflensError, LimitExceeded
from difflens.models.formats import open_model
from difflens.models.formats.hdf5 import SIGNATURE

Member = tuple[str, bytes, dict[str, int]]

CANARY = b"canary" * 40
Fill = Callable[[h5py.File], object]


def plain(file: h5py.File) -> None:
    """Put in one of each: in one piece, packed, deep down, with a note."""
    file["w"] = np.arange(6, dtype="f4").reshape(2, 3)
    file.create_dataset("deep/er/z", data=np.arange(40), compression="gzip", chunks=(8,))
    file.attrs["note"] = "text"


def with_h5(fill: Fill, name: str = "m.h5", **how) -> Callable[[Path], Path]:
    def build(folder: Path) -> Path:
        with h5py.File(folder / name, "w", **how) as file:
            fill(file)
        return folder / name

    return build


def changed(change: Callable[[bytes], bytes], fill: Fill = plain) -> Callable[[Path], Path]:
    def build(folder: Path) -> Path:
        path = with_h5(fill)(folder)
        path.write_bytes(change(path.read_bytes()))
        return path

    return build


def archive(*members: tuple[str, bytes, dict[str, int]]) -> bytes:
    """Write a zip by hand, lies included: name, stored bytes, fields that differ."""
    body, directory = b"", b""
    for name, data, how in members:
        crc = how.get("crc", zlib.crc32(data))
        same = struct.pack(
            "<5H3L2H", 20, 0, how.get("method", 0), 0, 33, crc, len(data),
            how.get("size", len(data)), len(name), 0,
        )  # fmt: skip
        outer = how.get("outer", 0)
        directory += b"PK\1\2" + struct.pack("<H", 3 << 8 | 20) + same
        directory += struct.pack("<3HLL", 0, 0, 0, outer, len(body)) + name.encode()
        body += b"PK\3\4" + same + name.encode() + data
    count = len(members)
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count, count, len(directory), len(body), 0)
    return body + directory + end


def weights() -> bytes:
    with h5py.File("weights", "w", driver="core", backing_store=False) as file:
        file["layers/dense/vars/0"] = np.arange(4, dtype="f4")
        file.flush()
        return bytes(file.id.get_file_image())


def keras_file(*members: Member, config: object = None):
    def build(folder: Path) -> Path:
        text = json.dumps(config if config is not None else {"class_name": "Sequential"}).encode()
        rest = members or (("model.weights.h5", weights(), {}),)
        first: tuple[Member, ...] = (
            ()
            if any(name == "config.json" for name, _, _ in rest)
            else (("config.json", text, {}),)
        )
        path = folder / "m.keras"
        path.write_bytes(archive(("metadata.json", b'{"keras_version": "3"}', {}), *first, *rest))
        return path

    return build


def deep(file: h5py.File) -> None:
    group = file["/"].id
    for _ in range(10_000):
        group = h5py.h5g.create(group, b"g")


def loops(file: h5py.File) -> None:
    plain(file)
    file["a"], file["b"] = h5py.SoftLink("/b"), h5py.SoftLink("/a")
    file["deep/self"] = file["deep"]
    file["out"] = h5py.SoftLink("/w")


def virtual(folder: Path) -> Path:
    with h5py.File(folder / "other.h5", "w") as other:
        other["secret"] = np.frombuffer(CANARY, "u1")
    layout = h5py.VirtualLayout((240,), "u1")
    layout[:] = h5py.VirtualSource(str(folder / "other.h5"), "secret", (240,))
    return with_h5(lambda file: file.create_virtual_dataset("v", layout))(folder)


def external_link(folder: Path) -> Path:
    with h5py.File(folder / "other.h5", "w") as other:
        other["secret"] = np.frombuffer(CANARY, "u1")
    return with_h5(lambda file: file.__setitem__("v", h5py.ExternalLink("other.h5", "secret")))(
        folder
    )


def external_storage(folder: Path) -> Path:
    (folder / "canary").write_bytes(CANARY)
    path = str(folder / "canary")
    return with_h5(lambda f: f.create_dataset("v", (240,), "u1", external=[(path, 0, 240)]))(folder)


def zeros(file: h5py.File) -> None:
    """Put in 4 GiB of zeros as 64 packed chunks, each packed once."""
    side = 16 << 20
    dataset = file.create_dataset("w", (64 * side,), "f4", chunks=(side,), compression="gzip")
    packed = zlib.compress(bytes(4 * side), 9)
    for at in range(64):
        dataset.id.write_direct_chunk((at * side,), packed)


def filtered(file: h5py.File) -> None:
    dataset = file.create_dataset(
        "w", (8,), "u1", chunks=(8,), compression=32099, allow_unknown_filter=True
    )
    dataset.id.write_direct_chunk((0,), b"01234567")


def kinds(file: h5py.File) -> None:
    plain(file)
    file["compound"] = np.zeros(2, [("x", "i4"), ("y", "f4")])
    file.create_dataset("reference", data=[file["w"].ref], dtype=h5py.ref_dtype)
    file.create_dataset("ragged", (2,), h5py.vlen_dtype(np.int32))
    file["string"] = "words"
    file["strings"] = np.array([b"a", b"b"])
    file.create_dataset("enum", (2,), h5py.enum_dtype({"RED": 0, "BLUE": 1}))
    file.create_dataset("array", (2,), np.dtype("(3,)f4"))
    file["wide"] = np.zeros(2, np.longdouble)
    file["none"] = h5py.Empty("f4")
    file["kind"] = np.dtype("f4")


KINDS = ("compound", "reference", "ragged", "string", "strings", "enum", "array", "wide", "none")


def left_out(source) -> None:
    assert list(source.tensors) == ["w", "deep.er.z"]
    (warning,) = source.warnings
    assert [name for name in KINDS if f"'{name}'" not in warning] == []


def overlapping(folder: Path) -> Path:
    path = with_h5(_two)(folder)
    with h5py.File(path) as file:
        first, second = (file[name].id.get_offset() for name in "ab")
    data = path.read_bytes()
    assert data.count(struct.pack("<Q", second)) == 1
    path.write_bytes(data.replace(struct.pack("<Q", second), struct.pack("<Q", first)))
    return path


def _two(file: h5py.File) -> None:
    file["a"], file["b"] = np.arange(5.0), np.arange(5.0)


def beyond(folder: Path) -> Path:
    path = with_h5(_two)(folder)
    with h5py.File(path) as file:
        place = file["b"].id.get_offset()
    data = path.read_bytes()
    path.write_bytes(data.replace(struct.pack("<Q", place), struct.pack("<Q", 1 << 40)))
    return path


def end_past_the_end(data: bytes) -> bytes:
    return data[:40] + struct.pack("<Q", len(data) + 1000) + data[48:]


def many_zeros() -> tuple[bytes, int]:
    """Pack 2 GB of zeros without packing them all: blocks that end on a byte can be repeated."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return block * 2000 + b"\3\0", 2000 << 20


HOSTILE_NAMES = ("\x1b[31mred", "=1+1", "\u202egnp", "<script>alert(1)</script>", "{{ 7*7 }}")
CONFIG = {
    "class_name": "Functional",
    "config": {
        "enable_unsafe_deserialization": True,
        "layers": [
            {
                "class_name": "Lambda",
                "config": {"function": {"class_name": "__lambda__", "config": {"code": "4wAAAA"}}},
            },
            {"class_name": "StringLookup", "config": {"vocabulary": "/etc/passwd"}},
            {"class_name": "TFSMLayer", "config": {"filepath": "/etc"}},
            {"class_name": "os.system", "module": "os", "config": {"command": f"touch {MARKER}"}},
        ],
    },
}


def hostile_names(file: h5py.File) -> None:
    for name in HOSTILE_NAMES:
        file[name.replace("/", "")] = np.zeros(1)
        file.attrs[name] = name
    h5py.h5d.create(file.id, b"\xff\xfe", h5py.h5t.STD_U8LE, h5py.h5s.create_simple((1,)))


def named(source) -> None:
    expected = [
        "Lambda layer with code",
        "StringLookup with a vocabulary file",
        "TFSMLayer with a folder of code",
    ]
    assert source.refused == expected
    assert "/etc/passwd" in source.metadata["config"]
    assert "root:" not in str(source.metadata)


def loops_found(source) -> None:
    assert list(source.tensors) == ["w", "deep.er.z"]
    assert "a soft link, not followed" in source.warnings[0]


def cut_text(source) -> None:
    assert len(source.metadata["model_config"]) < 70_000
    assert "characters, sha256" in source.metadata["model_config"]


def config_of_64_megabytes(file: h5py.File) -> None:
    plain(file)
    file.attrs["model_config"] = "x" * (64 << 20)


def hdf5_cases() -> Iterator[Case]:
    noise = random.Random(5).randbytes(2000)
    yield no("K01-cut-in-half", changed(lambda data: data[: len(data) // 2]), "superblock says")
    yield no("K01-signature-and-noise", changed(lambda _: SIGNATURE + b"\xfe" + noise), "version")
    yield no(
        "K01-plausible-noise",
        changed(lambda data: data[:96] + noise + data[96 + len(noise) :]),
        "HDF5",
    )
    yield no("K01-end-past-the-end", changed(end_past_the_end), "superblock says")
    yield no("K01-one-byte-more", changed(lambda data: data + b"\0"), "trailing bytes")
    yield yes("K02-user-block", with_h5(plain, userblock_size=512), _plain_values)
    yield yes("K03-link-loops", with_h5(loops), loops_found)
    yield Case("K03-deep-groups", with_h5(deep), "bounded", "deeper than 128")
    yield no("K04-virtual", virtual, "virtual")
    yield no("K04-external-link", external_link, "link to another file")
    yield no("K04-external-storage", external_storage, "outside the file")
    yield Case("K05-zeros", with_h5(zeros), "bounded", "the limit is 1000 times")
    yield Case(
        "K05-never-written",
        with_h5(lambda file: file.create_dataset("w", (1 << 40,), "f4")),
        "bounded",
        "the limit is 1000 times",
    )
    yield no("K06-filter", with_h5(filtered), "32099")
    yield yes("K07-kinds", with_h5(kinds), left_out)
    yield Case(
        "K11-config-of-64-megabytes", with_h5(config_of_64_megabytes), "open", check=cut_text
    )
    yield yes("K11-hostile-names", with_h5(hostile_names), lambda _: None)
    yield no("overlap", overlapping, "overlap")
    yield no("beyond-the-file", beyond, "HDF5")


def keras_cases() -> Iterator[Case]:
    yield yes("K09-config", keras_file(config=CONFIG), named)
    packed, size = many_zeros()
    large = ("config.json", packed, {"method": 8, "size": size})
    good: Member = ("model.weights.h5", weights(), {})
    yield Case("K10-config-of-2-gb", keras_file(large, good), "bounded", "the limit is 100 times")
    yield no("K10-weights-missing", keras_file(("assets/x", b"", {})), "model.weights.h5")
    yield no("K10-weights-twice", keras_file(good, good), "twice")
    yield no("K10-two-weights", keras_file(good, ("b.weights.h5", weights(), {})), "found")
    link = ("model.weights.h5", b"/etc/passwd", {"outer": 0o120777 << 16})
    yield no("K10-weights-are-a-link", keras_file(link), "link")
    yield no("K10-weights-cut", keras_file(("model.weights.h5", weights()[:900], {})), "superblock")
    yield yes("K10-config-no-json", keras_file(("config.json", b"{", {}), good), warns("config"))


def _plain_values(source) -> None:
    assert read(source, "w") == np.arange(6, dtype="f4").tobytes()
    assert read(source, "deep.er.z") == np.arange(40).tobytes()


CASES = [*hdf5_cases(), *keras_cases()]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_hostile_file_earns_its_sentence(case: Case, tmp_path):
    path = case.build(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    began = time.monotonic()
    try:
        source = open_model(path)
    except DifflensError as error:
        outcome = "reject"
        _is_a_good_sentence(error, case.word)
    else:
        outcome = "open"
        case.check(source)
        for name in source.tensors:
            read(source, name)
        source.close()
    assert case.outcome in (outcome, "bounded")
    assert time.monotonic() - began < 10
    assert before == sorted(tmp_path.rglob("*"))


def _is_a_good_sentence(error: DifflensError, word: str) -> None:
    text = str(error)
    assert word in text
    assert text.isprintable()
    assert "invalid" not in text.lower()
    assert not text.endswith(".")
    assert len(error.reason) < 700
    assert CANARY[:12].decode() not in text


WATCHED = [case for case in CASES if case.id[:3] in ("K04", "K06", "K09") or "K11" in case.id]


@pytest.mark.parametrize("case", WATCHED, ids=lambda case: case.id)
def test_through_the_command_only_our_child_is_started(case: Case, tmp_path):
    """What is done is what a good file of the format makes us do: one process, nothing else."""
    for name in ("watch", "case"):
        (tmp_path / name).mkdir()
    path = case.build(tmp_path / "case")
    before = sorted((tmp_path / "case").rglob("*"))

    ended = subprocess.run(
        [sys.executable, "-m", "difflens", "check", path],
        env=environment(tmp_path / "watch"),
        capture_output=True,
        text=True,
        timeout=30,
        cwd=tmp_path / "case",
        check=False,
    )

    events, _ = audit((tmp_path / "watch" / "audit.log").read_text().splitlines())
    assert [event.partition(" ")[0] for event in events] == ["subprocess.Popen"]
    assert f"'{sys.executable}'" in events[0]
    # A file whose config names code is told by the exit code as well.
    assert ended.returncode in ((2,) if case.outcome == "reject" else (0, 1))
    lines = ended.stderr.splitlines()
    assert all(line.isprintable() for line in [*lines, *ended.stdout.splitlines()])
    if case.outcome == "reject":
        assert re.fullmatch(r"difflens: error: .+: .+", lines[0])
        assert ended.stdout == ""
    assert before == sorted((tmp_path / "case").rglob("*"))


PLUGIN = """
#include <fcntl.h>
__attribute__((constructor)) static void load(void) { open("%s", O_CREAT | O_WRONLY, 0600); }
int H5PLget_plugin_type(void) { return 0; }
const void *H5PLget_plugin_info(void) { return 0; }
"""


def test_no_filter_plug_in_is_ever_loaded(tmp_path, monkeypatch):
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("there is no C compiler to make a plug-in")
    folder, marker = tmp_path / "plugins", tmp_path / MARKER
    folder.mkdir()
    (tmp_path / "plugin.c").write_text(PLUGIN % marker)
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", folder / "libfilter.so", tmp_path / "plugin.c"],
        check=True,
    )
    path = with_h5(filtered)(tmp_path)
    monkeypatch.setenv("HDF5_PLUGIN_PATH", str(folder))

    with pytest.raises(DifflensError, match="filter 32099"):
        open_model(path)
    assert not marker.exists()

    reading = f"import h5py; h5py.File({str(path)!r})['w'][()]"
    subprocess.run([sys.executable, "-c", reading], capture_output=True, check=False)
    assert marker.exists(), "the plug-in would not have been loaded anyway"


@pytest.fixture
def packed(tmp_path) -> Path:
    return with_h5(plain)(tmp_path)


def test_a_child_that_crashes_is_one_line(packed):
    model = open_model(packed)
    os.kill(model.child._pipes.process.pid, signal.SIGSEGV)

    for _ in range(2):
        with pytest.raises(CorruptFile, match=r"crashed on it \(SIGSEGV\)"):
            read(model, "deep.er.z")
    assert read(model, "w") == np.arange(6, dtype="f4").tobytes()
    model.close()


def test_a_child_that_hangs_is_stopped_by_the_clock(packed):
    model = open_model(packed, limits={"hdf5_seconds": 1})
    process = model.child._pipes.process
    os.kill(process.pid, signal.SIGSTOP)
    began = time.monotonic()

    with pytest.raises(LimitExceeded, match="no progress for 1 seconds"):
        read(model, "deep.er.z")
    assert time.monotonic() - began < 5
    assert process.returncode == -signal.SIGKILL
    model.close()


def test_a_file_that_shrinks_while_it_is_read_is_told(tmp_path):
    chance = np.random.default_rng(3)
    array = chance.integers(0, 1 << 60, 400_000)
    path = with_h5(lambda file: file.create_dataset("w", data=array, chunks=(100_000,)))(tmp_path)
    model = open_model(path)
    os.truncate(path, 100_000)

    with pytest.raises(ChangedWhileReading):
        read(model, "w")
    model.close()


def test_the_child_can_open_no_file_and_write_none(packed):
    model = open_model(packed)
    limits = Path(f"/proc/{model.child._pipes.process.pid}/limits").read_text()
    model.close()

    found = dict(
        re.findall(r"^Max (open files|file size|core file size) +(\S+)", limits, re.MULTILINE)
    )
    assert found == {"open files": "0", "file size": "0", "core file size": "0"}


def test_refusals_leave_no_descriptor_and_no_process_behind(tmp_path):
    before = len(list(Path("/proc/self/fd").iterdir()))
    for case in CASES:
        if case.id in ("K04-virtual", "K06-filter", "K10-weights-cut", "overlap"):
            place = tmp_path / case.id
            place.mkdir()
            with pytest.raises(DifflensError):
                open_model(case.build(place))

    assert before == len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("name", ["K05-zeros", "K11-config-of-64-megabytes"])
def test_bombs_cost_the_parent_little_memory(name, tmp_path):
    path = next(case for case in CASES if case.id == name).build(tmp_path)
    code = (
        "import resource; from difflens.models.formats import open_model\n"
        f"try: open_model({str(path)!r}).close()\n"
        "except Exception as error: pass\n"
        "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0], "
        "resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    ours, childs = (int(number) / 1024 for number in done.stdout.split())

    assert ours < 200
    assert childs < 600


def flips(good: bytes, seed: int, count: int) -> Iterator[bytes]:
    """Yield copies with one byte changed, anywhere."""
    chance = random.Random(seed)
    for _ in range(count):
        data = bytearray(good)
        data[chance.randrange(len(data))] ^= chance.randrange(1, 256)
        yield bytes(data)


def survive(inputs: Iterator[bytes], folder: Path) -> int:
    """Open and read every one; count those that opened."""

    def one(numbered: tuple[int, bytes]) -> bool:
        number, data = numbered
        path = folder / f"{number}.h5"
        path.write_bytes(data)
        began = time.monotonic()
        try:
            model = open_model(path)
            try:
                for name in model.tensors:
                    read(model, name)
            finally:
                model.close()
        except DifflensError as error:
            opened = False
            _is_clean(str(error))
        else:
            opened = True
        path.unlink()
        assert time.monotonic() - began < 10
        return opened

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return sum(pool.map(one, enumerate(inputs)))


def _is_clean(text: str) -> None:
    assert text.isprintable()
    assert "invalid" not in text.lower()
    assert "out of turn" not in text


def small(folder: Path, version: str = "latest") -> bytes:
    return with_h5(plain, libver=version)(folder).read_bytes()


def test_a_hundred_flipped_bytes_give_clean_errors_or_open(tmp_path):
    opened = survive(flips(small(tmp_path, "earliest"), 1, 60), tmp_path)
    opened += survive(flips(small(tmp_path), 1, 40), tmp_path)

    assert 0 < opened < 100


def test_a_thousand_mutants_give_clean_errors(tmp_path):
    """Most change the file's length, which costs no process; of the rest the first are taken."""
    good = small(tmp_path)
    inputs = list(mutants(good, 3, 1000))
    same = [data for data in inputs if len(data) == len(good)]
    longer = [data for data in inputs if len(data) != len(good)]

    assert survive(iter(longer), tmp_path) < len(longer)
    assert survive(iter(same[:20]), tmp_path) < 20


@pytest.mark.slow
@pytest.mark.parametrize("version", ["earliest", "latest"])
def test_two_thousand_flipped_bytes(version, tmp_path):
    count = int(os.environ.get("DIFFLENS_FUZZ", "1000"))
    survive(flips(small(tmp_path, version), 2, count), tmp_path)

    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 600 * 1024


@pytest.mark.slow
def test_five_thousand_mutants(tmp_path):
    count = int(os.environ.get("DIFFLENS_FUZZ", "5000"))
    survive(mutants(small(tmp_path, "earliest"), 4, count), tmp_path)
