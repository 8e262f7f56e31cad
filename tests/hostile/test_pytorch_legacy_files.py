"""The old stream of pickles: cases P26 of the security specification, cuts and mutants."""

import os
import pickle
import struct

import pytest
from hostile.files import MARKER, read
from hostile.fuzz import mutants
from hostile.test_pytorch_files import FLOATS, model, number, survive, tensor, text

from difflens.core.errors import DifflensError
from difflens.core.escape import visible
from difflens.models.formats import open_model

MAGIC = 0x1950A86A20F9469CFC6C


def storage(count=4, key="0", view=b"N") -> bytes:
    """Push a storage of the stream, which has a sixth part."""
    parts = b"ctorch\nFloatStorage\n" + text(key) + text("cpu") + number(count) + view
    return b"(" + text("storage") + parts + b"tQ"


def stream(
    main=None, *, magic=MAGIC, protocol=1001, keys=("0",), said=4, data=FLOATS, after=b""
) -> bytes:
    main = model({"w": tensor(kept=storage())}) if main is None else main
    head = b"".join(pickle.dumps(each, 2) for each in (magic, protocol, {"little_endian": True}))
    tail = struct.pack("<q", said) + data + after
    return head + main + pickle.dumps(list(keys), 2) + tail


@pytest.fixture
def opened(tmp_path):
    models = []

    def open_bytes(content: bytes):
        path = tmp_path / "model.pt"
        path.write_bytes(content)
        models.append(open_model(path))
        assert not (tmp_path / MARKER).exists()
        return models[-1]

    yield open_bytes
    for each in models:
        each.close()


def test_the_good_stream_is_good(opened):
    found = opened(stream())

    assert found.format == "pytorch-legacy"
    assert read(found, "w") == FLOATS


CASES = {
    "P26-magic": (stream(magic=MAGIC + 1), "pickle"),
    "P26-protocol": (stream(protocol=1002), "0x3ea"),
    "P26-protocol-no-number": (stream(protocol="x"), "no number"),
    "P26-count-negative": (stream(said=-1), "-1 elements"),
    "P26-count-huge": (stream(said=2**62), "4611686018427387904 elements"),
    "P26-count-another": (stream(said=3, data=FLOATS), "3 elements"),
    "P26-count-in-the-pickle": (stream(model({"w": tensor(kept=storage(5))})), "the file has"),
    "P26-count-in-the-pickle-huge": (
        stream(model({"w": tensor(kept=storage(2**61))})), "the file has",
    ),
    "P26-count-in-the-pickle-negative": (
        stream(model({"w": tensor(kept=storage(-1))})), "type or size",
    ),
    "P26-key-missing": (stream(keys=()), "not those"),
    "P26-key-unknown": (stream(keys=("0", "1")), "not those"),
    "P26-trailing": (stream(after=b"x"), "trailing"),
    "P26-a-second-stream": (stream() + stream(), "trailing"),
    "P26-cut": (stream()[:-1], "the file has"),
    "P26-view-outside": (
        stream(model({"w": tensor(kept=storage(view=text("9") + b"K\x03K\x02\x87"))})), "a view",
    ),
    "P26-view-odd": (stream(model({"w": tensor(kept=storage(view=b"K\x01\x85"))})), "a view"),
    "P26-main-cut": (stream(main=b"\x80\x02}"), "pickle"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "word"), CASES.values(), ids=CASES)
def test_a_wrong_stream_is_refused(opened, content, word):
    with pytest.raises(DifflensError) as caught:
        opened(content)
    assert word in str(caught.value)
    assert str(caught.value) == visible(str(caught.value))


def test_a_payload_is_named_and_nothing_runs(opened):
    payload = b"cos\nmkdir\n(" + text(MARKER) + b"tR"
    found = opened(stream(model({"w": tensor(kept=storage()), "bad": payload})))

    assert found.refused == ["os.mkdir"]
    assert read(found, "w") == FLOATS


def test_a_payload_in_the_other_pickles_does_nothing(opened):
    payload = b"\x80\x02cos\nmkdir\n(" + text(MARKER) + b"tR."
    good = stream()
    about = pickle.dumps({"little_endian": True}, 2)

    assert read(opened(good.replace(about, payload)), "w") == FLOATS
    with pytest.raises(DifflensError):
        opened(good.replace(pickle.dumps(["0"], 2), payload))


def test_a_small_stream_cut_at_any_byte_is_refused(opened):
    good = stream()
    for end in range(len(good)):
        with pytest.raises(DifflensError):
            opened(good[:end])


def test_a_thousand_mutants_give_clean_errors_or_values(tmp_path):
    opened = survive(tmp_path / "mutant.pt", mutants(stream(), 4, 1000))

    assert 0 < opened < 1000


@pytest.mark.slow
def test_five_thousand_mutants(tmp_path):
    count = int(os.environ.get("DIFFLENS_FUZZ", "5000"))
    seed = int(os.environ.get("DIFFLENS_SEED", "5"))

    assert survive(tmp_path / "mutant.pt", mutants(stream(), seed, count)) < count
