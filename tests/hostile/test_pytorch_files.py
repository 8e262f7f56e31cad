"""Every case of the table for PyTorch in the security specification, and mutated files."""

import io
import os
import resource
import struct
import subprocess
import sys
import time
import zipfile
import zlib
from pathlib import Path

import pytest
from hostile.files import MARKER, read
from hostile.fuzz import mutants

from difflens.core.errors import DifflensError
from difflens.core.escape import visible
from difflens.models.formats import open_model
from difflens.testing.laws import deeds

STORED, DEFLATED = 0, 8
MOST_BYTES = 600 * 1024 * 1024


def zipped(members, method=STORED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return out.getvalue()


def text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value.encode())) + value.encode()


def number(value: int) -> bytes:
    return b"\x8a\x09" + value.to_bytes(9, "little", signed=True)


def numbers(values) -> bytes:
    return b"(" + b"".join(map(number, values)) + b"t"


def storage(key="0", count=4, kind="FloatStorage", location="cpu") -> bytes:
    """Push a storage: ('storage', class, key, location, count) as a persistent id."""
    parts = b"ctorch\n" + kind.encode() + b"\n" + text(key) + text(location) + number(count)
    return b"(" + text("storage") + parts + b"tQ"


def tensor(shape=(4,), stride=(1,), offset=0, kept=None) -> bytes:
    """Push a tensor."""
    arguments = (kept or storage()) + number(offset) + numbers(shape) + numbers(stride)
    rest = b"\x89ccollections\nOrderedDict\n)R"
    return b"ctorch._utils\n_rebuild_tensor_v2\n(" + arguments + rest + b"tR"


def model(items, protocol=2) -> bytes:
    """Write a pickle of a dictionary: name -> the opcodes that push its value."""
    body = b"".join(text(name) + value for name, value in items.items())
    return b"\x80" + bytes([protocol]) + b"}(" + body + b"u."


FLOATS = struct.pack("<4f", 1, 2, 3, 4)
GOOD = {
    "archive/data.pkl": model({"w": tensor()}),
    "archive/byteorder": b"little",
    "archive/data/0": FLOATS,
    "archive/version": b"3\n",
}


def with_pickle(content: bytes, **members: bytes) -> bytes:
    return zipped({**GOOD, "archive/data.pkl": content, **members})


def beside(payload: bytes) -> bytes:
    """Put a payload beside a good tensor."""
    return with_pickle(model({"w": tensor(), "bad": payload}))


@pytest.fixture
def opened(tmp_path, monkeypatch):
    """Open bytes as a file; what is left afterwards must be what was there before."""
    monkeypatch.chdir(tmp_path)
    models = []
    path = tmp_path / "model.pt"

    def open_bytes(content: bytes, **limits: int):
        path.write_bytes(content)
        before = sorted(tmp_path.iterdir())
        try:
            models.append(open_model(path, limits=limits))
        finally:
            assert sorted(tmp_path.iterdir()) == before
            assert not (tmp_path / MARKER).exists()
        return models[-1]

    yield open_bytes
    for each in models:
        each.close()


@pytest.fixture
def refused(opened):
    """Hold that bytes are refused with a sentence that has the word."""

    def refuse(content: bytes, word: str, **limits: int) -> None:
        with pytest.raises(DifflensError) as caught:
            opened(content, **limits)
        said = str(caught.value)
        assert word in said, said
        assert said == visible(said)
        assert "invalid" not in said.lower()
        assert not said.endswith(".")
        assert len(said) < 700

    return refuse


def test_the_good_file_is_good(opened):
    found = opened(zipped(GOOD))

    assert read(found, "w") == FLOATS
    assert found.warnings == []


PAYLOADS = {
    "P01-reduce": (b"cos\nmkdir\n(" + text(MARKER) + b"tR", "os.mkdir"),
    "P02-stack-global": (
        b"\x8c\x08builtins\x8c\x04exec\x93(" + text(f"import os; os.mkdir('{MARKER}')") + b"tR",
        "builtins.exec",
    ),
    "P03-inst": (b"(" + text(MARKER) + b"ios\nmkdir\n", "os.mkdir"),
    "P03-obj": (b"(cos\nmkdir\n" + text(MARKER) + b"o", "os.mkdir"),
    "P03-newobj": (b"cos\nmkdir\n(" + text(MARKER) + b"t\x81", "os.mkdir"),
    "P03-newobj-ex": (b"cos\nmkdir\n(" + text(MARKER) + b"t}\x92", "os.mkdir"),
    "P04-dotted": (
        b"\x8c\x0ctorch._utils\x8c\x1e_rebuild_tensor_v2.__globals__\x93",
        "torch._utils._rebuild_tensor_v2.__globals__",
    ),
    "P23-build": (b"cmypkg\nNet\n)\x81}" + text("size") + b"K\x05sb", "mypkg.Net"),
}
for _module, _name in (
    ("_pickle", "loads"), ("torch", "load"), ("torch.hub", "load"), ("numpy", "load"),
    ("pkgutil", "resolve_name"), ("importlib", "import_module"), ("operator", "attrgetter"),
    ("functools", "partial"), ("builtins", "getattr"), ("builtins", "eval"), ("os", "system"),
    ("torch.storage", "_load_from_bytes"), ("codecs", "decode"), ("runpy", "run_path"),
    ("torch.serialization", "load"), ("builtins", "__import__"), ("posix", "system"),
):  # fmt: skip
    PAYLOADS[f"P05-{_module}.{_name}"] = (
        f"c{_module}\n{_name}\n(".encode() + text("x") + b"tR",
        f"{_module}.{_name}",
    )


@pytest.mark.parametrize(("payload", "name"), PAYLOADS.values(), ids=PAYLOADS)
def test_a_payload_is_named_and_nothing_runs(opened, payload, name):
    opened(zipped(GOOD))  # our own late imports are over after this
    with deeds() as done:
        found = opened(beside(payload))

    assert [deed for deed in done if not deed.startswith("open")] == []
    assert name in found.refused
    assert found.refused == sorted(found.refused)
    assert any("not made" in warning for warning in found.warnings)
    assert read(found, "w") == FLOATS


def test_p06_a_module_in_the_working_folder_is_not_imported(opened, tmp_path):
    (tmp_path / "mypkg.py").write_text(f"import os; os.mkdir({str(tmp_path / MARKER)!r})")

    found = opened(beside(b"cmypkg\nNet\n)\x81"))

    assert found.refused == ["mypkg.Net"]
    assert "mypkg" not in sys.modules


SLY = b"}" + text("__class__") + b"cos\nsystem\nsb"
SLY_REDUCE = b"}" + text("__reduce_ex__") + b"cos\nsystem\nsb"
WRONG = {
    "P07-class-of-a-dictionary": (b"ccollections\nOrderedDict\n)R" + SLY, "class"),
    "P07-class-of-a-parameter": (b"ctorch.nn.parameter\nParameter\n)\x81" + SLY, "class"),
    "P07-reduce-ex": (b"ccollections\nOrderedDict\n)R" + SLY_REDUCE, "class"),
    "P07-state-of-a-tensor": (tensor() + b"}b", "state"),
    "P07-ext1": (b"\x82\x01", "extension"),
    "P07-ext2": (b"\x83\x01\x00", "extension"),
    "P07-ext4": (b"\x84\x01\x00\x00\x00", "extension"),
    "P07-persistent-text": (b"Pstorage\n", "persistent id as text"),
    "P08-storage-called": (b"ctorch\nFloatStorage\n(" + number(2**40) + b"tR", "storages are kept"),
    "P08-bytearray": (b"c__builtin__\nbytearray\n(" + number(2**40) + b"tR", "bytes are made"),
    "P08-bytes": (b"cbuiltins\nbytes\n(" + number(2**40) + b"tR", "bytes are made"),
    "P08-encode": (b"c_codecs\nencode\n(" + text("x") + text("zip") + b"tR", "latin-1"),
    "P08-rebuild-of-nothing": (b"ctorch._utils\n_rebuild_tensor_v2\n)R", "0 arguments"),
    "P08-dictionary-of-a-number": (b"ccollections\nOrderedDict\n(K\x05tR", "pairs"),
    "P08-set-of-a-number": (b"cbuiltins\nset\n(K\x05tR", "no list"),
    "P08-parameter-of-a-number": (b"ctorch._utils\n_rebuild_parameter\n(K\x05\x89}tR", "no tensor"),
    "P08-device": (
        b"ctorch\ndevice\n("
        + text("cuda")
        + b"\x8b"
        + struct.pack("<I", 9000)
        + b"\x7f" * 9000
        + b"tR",
        "a device",
    ),
    "P08-scale": (
        b"ctorch._utils\n_rebuild_qtensor\n("
        + storage("1", 4, "QInt8Storage")
        + number(0)
        + numbers((4,))
        + numbers((1,))
        + b"(ctorch\nper_tensor_affine\n"
        + number(2**60)
        + number(0)
        + b"t\x89}tR",
        "scale",
    ),
    "P09-text": (b"\x8d" + struct.pack("<Q", 2**62) + b"x", "4611686018427387904"),
    "P09-long": (b"\x8b" + struct.pack("<I", 2**31 - 1) + b"x", "2147483647"),
    "P09-bytes": (b"\x8e" + struct.pack("<Q", 2**62) + b"x", "4611686018427387904"),
    "P09-frame": (b"\x95" + struct.pack("<Q", 2**62) + b"N", "4611686018427387904"),
    "P10-unset-memo": (b"h\x63", "memo"),
    "P10-pop-of-nothing": (b"00000000", "empty stack"),
    "P12-key-outside": (tensor(kept=storage("../../x")), "not in the zip"),
    "P12-key-in-another-folder": (tensor(kept=storage("../data.pkl")), "not in the zip"),
    "P12-key-missing": (tensor(kept=storage("9")), "not in the zip"),
    "P19-offset": (tensor(offset=-1), "no count"),
    "P19-past-the-end": (tensor(offset=1), "ends at byte 20"),
    "P19-stride": (tensor((2,), (2**40,)), "of its storage"),
    "P19-backwards": (tensor((2,), (-1,)), "no count"),
    "P19-negative-size": (tensor((-1,), (1,)), "no count"),
    "P19-size": (tensor((5,), (1,)), "ends at byte 20"),
    "P19-overflow": (tensor((2**62, 2), (0, 0)), "overflows"),
    "P19-overflow-before-a-zero": (tensor((2**62, 2, 0), (0, 0, 0)), "overflows"),
    "P19-ranks-differ": (tensor((2, 2), (1,)), "no count"),
    "P19-expanded": (tensor((2**40,), (0,)), "the limit is 100 times"),
    "P19-storage-count": (tensor((4,), kept=storage(count=5)), "20"),
    "P19-storage-negative": (tensor((4,), kept=storage(count=-1)), "type or size"),
    "P19-storage-class": (tensor((4,), kept=storage(kind="OddStorage")), "type or size"),
    "P19-rank": (tensor((1,) * 65, (1,) * 65), "rank"),
}


@pytest.mark.parametrize(("payload", "word"), WRONG.values(), ids=WRONG)
def test_a_wrong_pickle_is_refused(refused, payload, word):
    refused(beside(payload), word)


def test_p10_pickles_that_end_wrongly(refused):
    good = GOOD["archive/data.pkl"]
    refused(with_pickle(good[:-1]), "does not end")
    refused(with_pickle(good + b"."), "bytes follow")
    refused(with_pickle(good + b"\0"), "bytes follow")
    refused(with_pickle(b""), "does not end")


def test_p11_ten_million_marks_are_bounded(refused):
    began = time.monotonic()
    refused(with_pickle(b"\x80\x02" + b"(" * 10_000_000), "pickle")
    assert time.monotonic() - began < 20


def test_p11_a_million_levels_are_bounded(opened):
    began = time.monotonic()
    for content in (b")" + b"\x85" * 999_000 + b".", b"]" * 999_000 + b"a" * 998_999 + b"."):
        found = opened(with_pickle(b"\x80\x02" + content))
        assert found.tensors == {}
    assert time.monotonic() - began < 20


def test_p11_structures_that_hold_themselves_are_bounded(opened):
    found = opened(with_pickle(b"\x80\x02]q\x00h\x00a."))
    assert found.tensors == {}
    looped = b"\x80\x02}q\x00(" + text("self") + b"h\x00" + text("w") + tensor() + b"u."
    found = opened(with_pickle(looped))
    assert read(found, "w") == FLOATS


def test_p11_shared_levels_that_double_are_bounded(refused):
    began = time.monotonic()
    doubled = b"\x80\x02]q\x00" + b"".join(b"(h%ch%clq%c0" % (at, at, at + 1) for at in range(60))
    refused(with_pickle(doubled + b"0h<."), "repeats itself")
    assert time.monotonic() - began < 20


def test_p11_a_long_text_asked_for_again_and_again_is_bounded(refused):
    long = text("x" * 1_000_000) + b"q\x000c_codecs\nencode\nq\x010" + text("latin1") + b"q\x020"
    again = b"(" + b"h\x01h\x00h\x02\x86R" * 30_000 + b"t."
    began = time.monotonic()
    refused(with_pickle(b"\x80\x02" + long + again), "repeats itself")
    assert time.monotonic() - began < 20


def test_p11_long_keys_nested_are_bounded(refused):
    key = text("k" * 900_000) + b"q\x000"
    nest = b"}" + b"h\x00}" * 240 + text("end") + tensor() + b"s" + b"s" * 240
    refused(with_pickle(b"\x80\x02" + key + nest + b"."), "characters")


def test_p12_archives_that_are_not_torchs(refused):
    without = {name: data for name, data in GOOD.items() if "pkl" not in name}
    refused(zipped(without), "data.pkl")
    refused(zipped({**GOOD, "other/data.pkl": b"N."}), "2 top folders")
    refused(zipped({**GOOD, "loose": b"x"}), "top folders")
    refused(zipped({**GOOD, "archive/data/../../x": b"x"}), "leads out")
    gone = {name: data for name, data in GOOD.items() if name != "archive/data/0"}
    refused(zipped(gone), "not in the zip")
    refused(zipped({**GOOD, "archive/data/0": FLOATS[:-1]}), "15 bytes")


def test_p13_deflated_members_are_read(opened):
    found = opened(zipped(GOOD, DEFLATED))

    assert read(found, "w") == FLOATS


def bomb(path: Path, size: int) -> None:
    """Write a zip whose storage unpacks to that many zeros."""
    members = {
        **GOOD,
        "archive/data.pkl": model({"w": tensor((size // 4,), kept=storage(count=size // 4))}),
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            if name.endswith("/0"):
                info = zipfile.ZipInfo(name)
                info.compress_type = DEFLATED
                with archive.open(info, "w", force_zip64=True) as out:
                    for _ in range(size >> 20):
                        out.write(bytes(1 << 20))
            else:
                archive.writestr(name, data)


def test_p14_a_bomb_is_bounded(tmp_path):
    path = tmp_path / "bomb.pt"
    bomb(path, 1 << 30)
    code = (
        "from pathlib import Path\n"
        "from difflens.core.errors import DifflensError\n"
        "from difflens.models.formats import open_model\n"
        "try:\n"
        f"    model = open_model({str(path)!r})\n"
        "    model.read_into('w', 0, 1 << 20, memoryview(bytearray(1 << 20)))\n"
        "except DifflensError as error:\n"
        "    print(error)\n"
        "status = Path('/proc/self/status').read_text()\n"
        "print(status.partition('VmHWM:')[2].split()[0])"  # rusage would count the parent too
    )
    environment = {"PYTHONPATH": ":".join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment,
        timeout=60,
    )  # fmt: skip

    assert int(done.stdout.split()[-1]) * 1024 < MOST_BYTES


def place(content: bytes, name: bytes, signature: bytes) -> int:
    """Find the header of a member: `PK..` before its name."""
    at = content.index(signature)
    while name not in content[at : at + 54 + len(name)]:
        at = content.index(signature, at + 1)
    return at


def patched(content: bytes, at: int, data: bytes) -> bytes:
    return content[:at] + data + content[at + len(data) :]


def test_p15_directories_that_disagree(refused):
    good = zipped(GOOD)
    central = place(good, b"data/0", b"PK\1\2")
    local = place(good, b"data/0", b"PK\3\4")
    version = place(good, b"version", b"PK\3\4")
    overlap = patched(good, central + 42, struct.pack("<I", version))
    refused(overlap, "zip member")
    refused(patched(good, local + 30, b"brchive"), "local header")
    refused(patched(good, local + 18, struct.pack("<I", 15)), "local header")
    refused(patched(good, local + 22, struct.pack("<I", 15)), "local header")
    refused(patched(good, central + 24, struct.pack("<I", 0xFFFFFFFF)), "zip64")


def test_p16_flags_methods_and_checksums(refused, opened):
    good = zipped(GOOD)
    central = place(good, b"data/0", b"PK\1\2")
    for flag in (0x1, 0x20, 0x40, 0x2000):
        refused(patched(good, central + 8, struct.pack("<H", flag)), "zip member")
    refused(patched(good, central + 10, struct.pack("<H", 99)), "99")
    pickle_at = good.index(GOOD["archive/data.pkl"])
    refused(patched(good, pickle_at + 9, b"z"), "checksum")
    found = opened(patched(good, good.index(FLOATS), b"\x7f"))
    with pytest.raises(DifflensError, match="checksum"):
        read(found, "w")
    packed = zipped(GOOD, DEFLATED)
    local = place(packed, b"data/0", b"PK\3\4")
    central = place(packed, b"data/0", b"PK\1\2")
    wrong = struct.pack("<I", zlib.crc32(FLOATS) ^ 1)
    found = opened(patched(patched(packed, local + 14, wrong), central + 16, wrong))
    with pytest.raises(DifflensError, match="checksum"):
        read(found, "w")


def test_p17_what_is_before_or_after_the_zip(refused):
    good = zipped(GOOD)
    refused(b"junk" + good, "")
    refused(b"\x7fELF" + bytes(60) + good, "ELF")
    refused(zipped({"x/y": b"z"}) + good, "")
    refused(good + b"x", "")
    comment = zipped({"archive/data.pkl": b"N."})
    refused(good[:-2] + struct.pack("<H", len(comment)) + comment, "second end")


def test_p18_cut_files_and_counts_that_lie(refused):
    good = zipped(GOOD)
    refused(good[: len(good) // 2], "no end")
    refused(patched(good, len(good) - 14, b"\xff\xff\xff\xff"), "")
    refused(b"PK\3\4" + bytes(26) + b"PK\5\6" + bytes(4) + b"\xff\xff\xff\xff" + bytes(10), "")


def test_p20_views_and_shared_storages_are_read(opened):
    views = {
        "turned": tensor((2, 2), (1, 2)),
        "sliced": tensor((2,), (1,), 1),
        "expanded": tensor((3, 2), (0, 1)),
        "scalar": tensor((), (), 2),
        "same": tensor(),
        "again": tensor(),
    }
    found = opened(with_pickle(model(views)))

    values = {
        name: struct.unpack(f"<{len(read(found, name)) // 4}f", read(found, name)) for name in views
    }
    assert values == {
        "turned": (1, 3, 2, 4), "sliced": (2, 3), "expanded": (1, 2, 1, 2, 1, 2), "scalar": (3,),
        "same": (1, 2, 3, 4), "again": (1, 2, 3, 4),
    }  # fmt: skip
    assert found.aliases == {"again": "same"}


def test_p21_the_order_of_bytes(opened, refused):
    big = struct.pack(">4f", 1, 2, 3, 4)
    found = opened(zipped({**GOOD, "archive/byteorder": b"big", "archive/data/0": big}))
    assert read(found, "w") == FLOATS
    refused(zipped({**GOOD, "archive/byteorder": b"middle"}), "middle")
    refused(zipped({**GOOD, "archive/byteorder": b"x" * 100}), "byte order")


def test_p22_keys_of_all_kinds(opened):
    long = "k" * 100_000
    keys = (number(5), b"C\x01w", b"K\x01" + text("a") + b"\x86", b"N", text(long), text("\x1b[2J"))
    body = b"".join(key + tensor() for key in keys)
    found = opened(with_pickle(b"\x80\x03}(" + body + b"u."))

    assert list(found.tensors) == ["5", "b'w'", "(1, 'a')", "None", long, "\x1b[2J"]


def test_p22_keys_that_cannot_be_hashed(opened):
    body = b"]" + tensor() + b"}" + tensor() + b"](K\x01e\x85" + tensor()
    found = opened(with_pickle(b"\x80\x02}(" + body + b"u."))

    assert len(found.tensors) == 3


def test_p23_a_module_of_unknown_classes(opened):
    dictionary = b"}" + text("weight") + tensor() + b"s"
    inner = b"cmypkg\nLayer\n)\x81}(" + text("_parameters") + dictionary + text("_modules") + b"}ub"
    modules = text("_modules") + b"}" + text("layer") + inner + b"s"
    outer = b"cmypkg\nNet\n)\x81}(" + text("_parameters") + b"}" + modules + b"ub."
    found = opened(with_pickle(b"\x80\x02" + outer))

    assert list(found.tensors) == ["layer.weight"]
    assert found.refused == ["mypkg.Layer", "mypkg.Net"]
    assert len(found.warnings) == 1


def test_p24_torchscript_without_its_code(opened):
    program = b"c__torch__\nNet\n)\x81}" + text("weight") + tensor() + b"sb."
    members = {"archive/constants.pkl": b"\x80\x02).", "archive/code/__torch__.py": b"import os\n"}
    found = opened(with_pickle(b"\x80\x02" + program, **members))

    assert read(found, "weight") == FLOATS
    assert found.metadata == {"archive": "TorchScript"}
    assert found.refused == []


def test_p25_other_containers_are_named(refused):
    refused(b"7z\xbc\xaf\x27\x1c" + bytes(60), "7z")
    refused(b"Rar!\x1a\x07\x01\x00" + bytes(60), "rar")


def test_p28_kinds_that_are_not_decoded_get_one_warning_each(opened):
    utils = b"ctorch._utils\n"
    kinds = {
        "sparse": utils + b"_rebuild_sparse_tensor\n(K\x01K\x02tR",
        "nested": utils + b"_rebuild_nested_tensor\n(K\x01tR",
        "meta": utils + b"_rebuild_meta_tensor_no_storage\n(K\x01tR",
        "on meta": tensor(kept=storage("77", location="meta")),
        "quantised without a scale": tensor((4,), kept=storage("1", 4, "QInt8Storage")),
        "a wrapper": b"ctorch._tensor\n_rebuild_from_type_v2\n("
        + utils + b"_rebuild_wrapper_subclass\ncmypkg\nSub\n)}tR",
    }  # fmt: skip
    content = with_pickle(model({"w": tensor(), **kinds}), **{"archive/data/1": bytes(4)})
    found = opened(content)

    assert list(found.tensors) == ["w"]
    assert len([each for each in found.warnings if "left out" in each]) == 5
    assert found.refused == ["mypkg.Sub"]


def test_a_small_file_cut_at_any_byte_is_refused(opened):
    good = zipped({name: data for name, data in GOOD.items() if "version" not in name})
    for end in range(len(good)):
        with pytest.raises(DifflensError):
            opened(good[:end])


def pickle_mutants(seed: int, count: int):
    """Damage the pickle alone, and give it a right checksum again."""
    items = {
        "w": tensor(), "t": tensor((2, 2), (1, 2)), "n": number(7), "s": text("x"),
        "l": b"](K\x01K\x02e", "o": b"cmypkg\nNet\n)\x81}" + text("a") + tensor() + b"sb",
    }  # fmt: skip
    for damaged in mutants(model(items), seed, count):
        yield with_pickle(damaged)


def survive(path: Path, contents) -> int:
    """Open every mutant and read it; only clean errors may come."""
    opened = 0
    for content in contents:
        path.write_bytes(content)
        began = time.monotonic()
        try:
            found = open_model(path)
        except DifflensError as error:
            assert str(error) == visible(str(error))  # noqa: PT017  either way is right
        else:
            opened += 1
            try:
                for name in found.tensors:
                    read(found, name)
            except DifflensError as error:
                assert str(error) == visible(str(error))  # noqa: PT017  either way is right
            finally:
                found.close()
        assert time.monotonic() - began < 10
    return opened


def test_a_thousand_mutants_give_clean_errors_or_values(tmp_path):
    path = tmp_path / "mutant.pt"
    opened = survive(path, mutants(zipped(GOOD), 1, 500))
    opened += survive(path, pickle_mutants(2, 1000))

    assert 0 < opened < 1500


@pytest.mark.slow
def test_five_thousand_mutants(tmp_path):
    count = int(os.environ.get("DIFFLENS_FUZZ", "5000"))
    seed = int(os.environ.get("DIFFLENS_SEED", "3"))
    survive(tmp_path / "mutant.pt", mutants(zipped(GOOD, DEFLATED), seed, count // 2))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    survive(tmp_path / "mutant.pt", pickle_mutants(seed, count))

    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < MOST_BYTES
