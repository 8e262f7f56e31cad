import bz2
import gzip
import lzma
import struct
import threading
from pathlib import Path

import numpy as np
import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st
from models.formats import test_safetensors
from models.formats.test_npy import whole

from difflens.core.errors import CorruptFile, MissingExtra, UnknownFormat
from difflens.models.containers import inner_files
from difflens.models.formats import compressed, open_model

_CHECKED: dict[int, int] = {zstd.CompressionParameter.checksum_flag: 1}
PACK = {
    "gzip": lambda data: gzip.compress(data, 1, mtime=0),
    "zstd": lambda data: zstd.compress(data, options=_CHECKED),
    "xz": lambda data: lzma.compress(data, preset=0),
    "bzip2": bz2.compress,
}
ENDINGS = {"gzip": ".gz", "zstd": ".zst", "xz": ".xz", "bzip2": ".bz2"}
in_small_blocks = pytest.mark.usefixtures("small_blocks")
every_kind = pytest.mark.parametrize("kind", PACK)


def sample(path: Path, tensors: dict[str, tuple[str, tuple[int, ...], bytes]]) -> Path:
    test_safetensors.sample(path, tensors)
    path.write_bytes(PACK["gzip"](path.read_bytes()))
    return path


def packed(folder: Path, kind: str, array: np.ndarray, name: str = "m.safetensors") -> Path:
    path = folder / (name + ENDINGS[kind])
    test_safetensors.sample(path, {"w": ("F32", array.shape, array.astype("<f4").tobytes())})
    path.write_bytes(PACK[kind](path.read_bytes()))
    return path


@pytest.fixture
def numbers():
    return np.random.default_rng(1).integers(0, 99, 300_000).astype("<f4")


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(inner_files, "BLOCK", 1 << 14)
    monkeypatch.setattr(inner_files, "_EVERY", 4)
    monkeypatch.setattr(compressed, "_SMALL", 100)


@every_kind
def test_a_model_is_read_out_of_what_it_is_packed_in(kind, numbers, tmp_path):
    model = open_model(packed(tmp_path, kind, numbers))

    assert model.format == f"safetensors in {kind}"
    assert numbers.tobytes() == whole(model)
    model.confirm()
    model.close()


@every_kind
@pytest.mark.parametrize("ending", [".bin", ".npy"])
def test_the_name_does_not_matter(kind, ending, tmp_path):
    path = tmp_path / f"weights{ending}"
    np.save(tmp_path / "a.npy", np.arange(3))
    path.write_bytes(PACK[kind]((tmp_path / "a.npy").read_bytes()))

    model = open_model(path)

    assert model.format == f"npy in {kind}"
    assert whole(model) == np.arange(3).tobytes()
    model.close()


def test_an_array_is_called_by_its_stem_without_both_endings(tmp_path):
    np.save(tmp_path / "weights.npy", np.arange(3))
    (tmp_path / "weights.npy.gz").write_bytes(
        gzip.compress((tmp_path / "weights.npy").read_bytes())
    )

    model = open_model(tmp_path / "weights.npy.gz")

    assert list(model.tensors) == ["weights"]
    model.close()


@every_kind
@in_small_blocks
def test_any_order_of_reading_gives_the_same_bytes(kind, numbers, tmp_path):
    model, data = open_model(packed(tmp_path, kind, numbers)), numbers.tobytes()

    for start in [1_100_000, 10, 500_000, 499_000, 0, 1_199_990, 16384, 900_000]:
        buffer = bytearray(min(20_000, len(data) - start))
        model.read_into("w", start, start + len(buffer), memoryview(buffer))
        assert data[start : start + len(buffer)] == bytes(buffer)
    model.confirm()
    model.close()


@every_kind
@in_small_blocks
def test_many_threads_read_at_once(kind, numbers, tmp_path):
    model, data, wrong = open_model(packed(tmp_path, kind, numbers)), numbers.tobytes(), []

    def read(number: int) -> None:
        for start in range(number * 200_000, (number + 1) * 200_000, 20_000):
            buffer = bytearray(20_000)
            model.read_into("w", start, start + 20_000, memoryview(buffer))
            if bytes(buffer) != data[start : start + 20_000]:
                wrong.append(start)

    threads = [threading.Thread(target=read, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert wrong == []
    model.close()


@every_kind
@given(cut=st.integers(0, 1_200_100))
def test_members_in_a_row_are_one_model(kind, cut, tmp_path):
    numbers = np.arange(30_000, dtype="<f4")
    path = tmp_path / "m.safetensors"
    test_safetensors.sample(path, {"w": ("F32", numbers.shape, numbers.tobytes())})
    data = path.read_bytes()
    path.write_bytes(PACK[kind](data[:cut]) + PACK[kind](data[cut:]))

    model = open_model(path)

    assert numbers.tobytes() == whole(model)
    model.confirm()
    model.close()


@every_kind
@in_small_blocks
def test_members_in_a_row_are_one_model_in_a_large_file_too(kind, numbers, tmp_path):
    path = packed(tmp_path, "gzip", numbers)
    data = gzip.decompress(path.read_bytes())
    path.write_bytes(PACK[kind](data[:600_000]) + PACK[kind](data[600_000:]))

    model = open_model(path)

    assert numbers.tobytes() == whole(model)
    model.confirm()
    model.close()


@every_kind
@in_small_blocks
def test_damage_that_reading_did_not_meet_is_found_by_confirm(kind, numbers, tmp_path):
    path = packed(tmp_path, kind, numbers)
    data = bytearray(path.read_bytes())
    data[-60] ^= 0xFF
    path.write_bytes(data)
    if kind == "bzip2":  # its size is found by unpacking it
        with pytest.raises(CorruptFile):
            open_model(path)
        return
    try:
        model = open_model(path)
    except CorruptFile:
        assert kind == "xz"  # the index is there
        return

    model.confirm()  # nothing was read
    model.read_into("w", 0, 100, memoryview(bytearray(100)))
    with pytest.raises(CorruptFile, match=f"the {kind} stream"):
        model.confirm()
    model.close()


@in_small_blocks
def test_looking_at_the_header_does_not_unpack_the_weights(numbers, tmp_path):
    model = open_model(packed(tmp_path, "gzip", numbers))

    model.confirm()

    assert model._unpacked._next < 3
    model.close()


def test_what_is_packed_and_unknown_is_named(tmp_path):
    (tmp_path / "m.gz").write_bytes(gzip.compress(b"\x7fELF" + bytes(100)))

    with pytest.raises(UnknownFormat, match="no reader knows what is in this gzip: an ELF program"):
        open_model(tmp_path / "m.gz")


def test_zstd_without_its_library_says_how_to_get_it(tmp_path, monkeypatch):
    import sys

    (tmp_path / "m.zst").write_bytes(zstd.compress(bytes(100)))
    monkeypatch.setitem(sys.modules, "backports", None)
    monkeypatch.setitem(sys.modules, "compression", None)

    with pytest.raises(MissingExtra, match=r"pip install 'difflens\[zstd\]'"):
        open_model(tmp_path / "m.zst")


def test_a_column_major_array_within_is_read(tmp_path):
    array = np.arange(6000, dtype="<f4").reshape(60, 100)
    np.savez(tmp_path / "m.npz", a=np.asfortranarray(array), b=array)
    (tmp_path / "m.npz.xz").write_bytes(lzma.compress((tmp_path / "m.npz").read_bytes()))

    model = open_model(tmp_path / "m.npz.xz")

    assert model.format == "npz in xz"
    assert array.tobytes() == whole(model, "a") == whole(model, "b")
    model.close()


def test_the_size_is_not_taken_from_a_length_that_wrapped(tmp_path, monkeypatch):
    """What the last bytes say is a guess: here it is right only after counting."""
    monkeypatch.setattr(compressed, "_SMALL", 100)
    data = struct.pack("<Q", 64) + b'{"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}'.ljust(
        64
    )
    (tmp_path / "m.gz").write_bytes(gzip.compress(data) + gzip.compress(b"abcd"))

    model = open_model(tmp_path / "m.gz")

    assert whole(model) == b"abcd"
    model.close()
