import io
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from models.formats.test_npy import encode, whole

from difflens.core.errors import CorruptFile
from difflens.models.containers import inner_files
from difflens.models.formats import open_model


def sample(path: Path, tensors: dict[str, tuple[str, tuple[int, ...], bytes]]) -> Path | None:
    members = {name: encode(*tensor) for name, tensor in tensors.items()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            if data is None:
                return None
            archive.writestr(f"{name}.npy", data)
    return path


names = st.text(st.characters(exclude_characters="/\\\0", codec="utf-8"), min_size=1, max_size=8)
some_arrays = arrays.arrays(
    dtype=st.sampled_from(["<f4", ">f8", "<i2", "|b1", "<c16"]),
    shape=arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@given(model=st.dictionaries(names.filter(lambda n: n != "file"), some_arrays, min_size=1))
def test_any_archive_numpy_writes_is_read(tmp_path, save, model):
    path = tmp_path / "m.npz"
    path.unlink(missing_ok=True)
    save(path, **model)

    opened = open_model(path)

    assert set(model) == set(opened.tensors)
    for name, array in model.items():
        expected = array.astype(array.dtype.newbyteorder("<")).tobytes()
        assert expected == whole(opened, name)
    assert opened.format == "npz"
    assert opened.warnings == []
    opened.close()


def test_names_with_slashes_keep_them(tmp_path):
    np.savez(tmp_path / "m.npz", **{"dense/kernel:0": np.ones(2), "w:0": np.ones(1)})

    model = open_model(tmp_path / "m.npz")

    assert list(model.tensors) == ["dense/kernel:0", "w:0"]
    model.close()


def test_an_empty_archive_is_a_model_without_tensors(tmp_path):
    np.savez(tmp_path / "m.npz")

    model = open_model(tmp_path / "m.npz")

    assert dict(model.tensors) == {}
    model.close()


def test_what_is_no_array_is_named_in_one_warning(tmp_path):
    path = sample(tmp_path / "m.npz", {"a": ("U8", (1,), b"x")})
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("readme.txt", "hello")
        archive.writestr("\x1b[31m", "hello")
        archive.writestr("folder/", "")

    model = open_model(path)

    assert list(model.tensors) == ["a"]
    assert model.warnings == ["no arrays, left out: 'readme.txt', '\\x1b[31m'"]
    model.close()


def test_a_deflated_array_is_read_in_any_order_and_in_bounded_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(inner_files, "BLOCK", 1 << 12)
    monkeypatch.setattr(inner_files, "_EVERY", 4)
    monkeypatch.setattr(inner_files, "_MOST_STATES", 4)
    array = np.random.default_rng(1).integers(0, 50, 200_000).astype("<i4")
    np.savez_compressed(tmp_path / "m.npz", a=array, b=array[::-1])
    model = open_model(tmp_path / "m.npz")
    data = array.tobytes()

    for start in [700_000, 10, 300_000, 299_000, 0, 799_990, 4096, 500_000]:
        buffer = bytearray(min(10_000, len(data) - start))
        model.read_into("a", start, start + len(buffer), memoryview(buffer))
        assert data[start : start + len(buffer)] == bytes(buffer)
    model.close()


def test_many_threads_read_a_deflated_array_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(inner_files, "BLOCK", 1 << 12)
    monkeypatch.setattr(inner_files, "_WINDOW", 4)
    array = np.random.default_rng(1).integers(0, 50, 200_000).astype("<i4")
    np.savez_compressed(tmp_path / "m.npz", a=array)
    model, data, wrong = open_model(tmp_path / "m.npz"), array.tobytes(), []

    def read(number: int) -> None:
        for start in range(number * 100_000, (number + 1) * 100_000, 10_000):
            buffer = bytearray(10_000)
            model.read_into("a", start, start + 10_000, memoryview(buffer))
            if bytes(buffer) != data[start : start + 10_000]:
                wrong.append(start)

    threads = [threading.Thread(target=read, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert wrong == []
    model.close()


def test_a_column_major_deflated_array_is_read(tmp_path):
    array = np.arange(700 * 300, dtype="<f4").reshape(700, 300)
    np.savez_compressed(tmp_path / "m.npz", a=np.asfortranarray(array))

    model = open_model(tmp_path / "m.npz")

    assert array.tobytes() == whole(model, "a")
    model.close()


def test_a_wrong_checksum_of_a_deflated_array_is_found_when_it_is_read(tmp_path):
    packed = io.BytesIO()
    np.savez_compressed(packed, a=np.arange(1000))
    data = bytearray(packed.getvalue())
    crc = data.find(b"PK\x01\x02") + 16
    for at in (14, crc):
        data[at] ^= 1
    (tmp_path / "m.npz").write_bytes(data)

    with pytest.raises(CorruptFile, match="checksum"):
        whole(open_model(tmp_path / "m.npz"), "a")
