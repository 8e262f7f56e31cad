"""The tar archives of 2016: cases P27 of the security specification, cuts and mutants."""

import io
import os
import pickle
import struct
import tarfile

import pytest
from hostile.files import MARKER, read
from hostile.fuzz import mutants
from hostile.test_pytorch_files import FLOATS, model, survive, text

from difflens.core.errors import DifflensError
from difflens.core.escape import visible
from difflens.models.formats import open_model


def entry(*parts: bytes) -> bytes:
    return b"\x80\x02(" + b"".join(parts) + b"t."


STORAGE = entry(b"K\x01", text("cpu"), b"ctorch\nFloatStorage\n")
TENSOR = entry(b"K\x09", b"K\x01", b"ctorch\nFloatTensor\n")


def storages(said=4, data=FLOATS, views=b"\x80\x02].", count=1, head=STORAGE) -> bytes:
    return pickle.dumps(count, 2) + head + struct.pack("<q", said) + data + views


def tensors(rank=1, numbers=(4, 1, 0), count=1, head=TENSOR) -> bytes:
    packed = struct.pack(f"<i4x{len(numbers)}q", rank, *numbers)
    return pickle.dumps(count, 2) + head + packed


MAIN = model({"w": text("9") + b"Q"})
GOOD = {
    "sys_info": pickle.dumps({}, 2),
    "pickle": MAIN,
    "tensors": tensors(),
    "storages": storages(),
}


def tar(content=None, extra=(), form=tarfile.USTAR_FORMAT, **changes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:", format=form) as archive:
        for name, data in {**(GOOD if content is None else content), **changes}.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        for info in extra:
            archive.addfile(info)
    return out.getvalue()


def odd(name: str, kind: bytes, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


@pytest.fixture
def opened(tmp_path):
    models = []

    def open_bytes(content: bytes):
        path = tmp_path / "model.pt"
        path.write_bytes(content)
        models.append(open_model(path))
        return models[-1]

    yield open_bytes
    for each in models:
        each.close()
    assert [path.name for path in tmp_path.iterdir()] == ["model.pt"]


def test_the_good_archive_is_good(opened):
    assert read(opened(tar()), "w") == FLOATS


def without(name: str) -> dict[str, bytes]:
    return {key: data for key, data in GOOD.items() if key != name}


CASES = {
    "P27-no-storages": (tar(without("storages")), "no 'storages'"),
    "P27-no-tensors": (tar(without("tensors")), "no 'tensors'"),
    "P27-no-pickle": (tar(without("pickle")), "no 'pickle'"),
    "P27-outside": (tar(**{"../x": b"x"}), "'../x'"),
    "P27-absolute": (tar(**{"/etc/x": b"x"}), "none of torch's"),
    "P27-another": (tar(other=b"x"), "none of torch's"),
    "P27-hard-link": (tar(extra=[odd("extra", tarfile.LNKTYPE, "/etc/passwd")]), "a hard link"),
    "P27-hard-link-of-ours": (
        tar(without("storages"), extra=[odd("storages", tarfile.LNKTYPE, "pickle")]), "a hard link",
    ),
    "P27-link": (tar(extra=[odd("extra", tarfile.SYMTYPE, "/etc")]), "a link"),
    "P27-device": (tar(extra=[odd("extra", tarfile.CHRTYPE)]), "a device"),
    "P27-pipe": (tar(extra=[odd("extra", tarfile.FIFOTYPE)]), "a pipe"),
    "P27-folder": (tar(extra=[odd("extra", tarfile.DIRTYPE)]), "a folder"),
    "P27-twice": (tar() and tar(extra=[tarfile.TarInfo("pickle")]), "twice"),
    "P27-long-name": (tar(form=tarfile.PAX_FORMAT, **{"x" * 150: b""}), "sets 'path'"),
    "P27-trailing": (tar() + b"x" * 512, "trailing"),
    "P27-odd-length": (tar() + b"x", "blocks of 512"),
    "storage-count": (tar(storages=storages(said=5)), ""),
    "storage-negative": (tar(storages=storages(said=-1)), "-1 elements"),
    "storage-huge": (tar(storages=storages(said=2**61)), "elements"),
    "storages-more": (tar(storages=storages(count=2)), ""),
    "storages-fewer": (tar(storages=storages(count=0)), "bytes follow"),
    "storages-many": (tar(storages=storages(count=2**40)), "no count"),
    "storage-class": (
        tar(storages=storages(head=entry(b"K\x01", text("cpu"), b"cos\nsystem\n"))), "entry",
    ),
    "storage-no-entry": (tar(storages=storages(head=b"N.")), "entry"),
    "view-outside": (
        tar(storages=storages(views=b"\x80\x02](K\x02K\x01K\x03K\x02ta.")),
        "a view",
    ),
    "rank": (tar(tensors=tensors(rank=100)), "rank 100"),
    "rank-negative": (tar(tensors=tensors(rank=-1)), "rank -1"),
    "tensor-outside": (tar(tensors=tensors(numbers=(5, 1, 0))), "ends at byte 20"),
    "tensor-offset": (tar(tensors=tensors(numbers=(4, 1, -1))), "no count"),
    "tensor-stride": (tar(tensors=tensors(numbers=(4, -1, 0))), "no count"),
    "tensor-cut": (tar(tensors=tensors(numbers=(4,))), "ends within"),
    "tensor-of-nothing": (
        tar(tensors=tensors(head=entry(b"K\x09", b"K\x08", b"N"))), "entry",
    ),
    "tensor-of-a-list": (
        tar(tensors=tensors(head=entry(b"K\x09", b"]", b"N"))), "entry",
    ),
    "key-unknown": (tar(pickle=model({"w": text("5") + b"Q"})), "not in the tar"),
    "pickle-longer": (tar(pickle=MAIN + b"x"), "bytes follow"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "word"), CASES.values(), ids=CASES)
def test_a_wrong_archive_is_refused(opened, content, word):
    with pytest.raises(DifflensError) as caught:
        opened(content)
    assert word in str(caught.value), str(caught.value)
    assert str(caught.value) == visible(str(caught.value))


def test_a_payload_is_named_and_nothing_runs(opened):
    payload = b"cos\nmkdir\n(" + text(MARKER) + b"tR"
    found = opened(tar(pickle=model({"w": text("9") + b"Q", "bad": payload})))

    assert found.refused == ["os.mkdir"]
    assert read(found, "w") == FLOATS


def test_an_archive_cut_at_any_block_is_refused(opened):
    good = tar()
    end = good.rstrip(b"\0")
    for length in range(0, len(end), 7):
        with pytest.raises(DifflensError):
            opened(good[:length])
    for length in range(0, len(end), 512):
        with pytest.raises(DifflensError):
            opened(good[:length])


def test_a_thousand_mutants_give_clean_errors_or_values(tmp_path):
    opened = survive(tmp_path / "mutant.pt", mutants(tar(), 6, 1000))

    assert 0 < opened < 1000


@pytest.mark.slow
def test_five_thousand_mutants(tmp_path):
    count = int(os.environ.get("DIFFLENS_FUZZ", "5000"))
    seed = int(os.environ.get("DIFFLENS_SEED", "7"))

    assert survive(tmp_path / "mutant.pt", mutants(tar(), seed, count)) < count
