import json
import os
import zipfile
from io import BytesIO
from pathlib import Path

import h5py
import numpy as np
import pytest
from models.formats.test_hdf5 import sample as hdf5_sample
from models.formats.test_hdf5 import whole

from difflens.core.errors import CorruptFile, DifflensError, LimitExceeded
from difflens.models.formats import open_model
from difflens.models.formats.keras import recognise


def sample(path: Path, tensors: dict[str, tuple[str, tuple[int, ...], bytes]]) -> Path | None:
    """Write an archive as Keras does: two texts, then the weights, all stored."""
    weights = hdf5_sample(path.with_suffix(".part"), tensors)
    if weights is None:
        path.with_suffix(".part").unlink(missing_ok=True)
        return None
    pack(path, weights.read_bytes())
    weights.unlink()
    return path


def pack(path: Path, weights: bytes, method: int = zipfile.ZIP_STORED, config=None) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("metadata.json", '{"keras_version": "3.15.1", "date_saved": "today"}')
        archive.writestr("config.json", json.dumps(config or {"class_name": "Sequential"}))
        archive.writestr("model.weights.h5", weights)
    return path


def weights_of(**arrays) -> bytes:
    stream = BytesIO()
    with h5py.File(stream, "w") as file:
        for name, array in arrays.items():
            file.create_dataset(
                name, data=array, **({"compression": "gzip"} if "z" in name else {})
            )
    return stream.getvalue()


@pytest.mark.filterwarnings("ignore")
def test_a_model_reads_as_keras_has_it(tmp_path):
    keras = pytest.importorskip("keras", reason="keras is not installed")
    keras.utils.set_random_seed(1)
    layers = keras.layers
    entry = keras.Input((10,))
    hidden = layers.Embedding(20, 6, name="words")(entry)
    hidden = layers.LSTM(5)(hidden)
    hidden = layers.Dense(4, activation="relu")(hidden)
    model = keras.Model(entry, layers.Dense(2, dtype="float16")(hidden))
    model.compile("adam", "mse")
    model.save(tmp_path / "m.keras")

    opened = open_model(tmp_path / "m.keras")

    names = [name for name in opened.tensors if name.startswith("layers.")]
    expected = [
        weight for weight in model.get_weights() if weight.ndim and weight.dtype.kind == "f"
    ]
    assert sorted(array.tobytes() for array in expected) == sorted(
        whole(opened, name) for name in names if opened.tensors[name].dtype in ("F32", "F16")
    )
    assert opened.format == "keras"
    assert opened.metadata["keras_version"] == keras.__version__
    assert '"Embedding"' in opened.metadata["config"]
    assert opened.refused == opened.warnings == []
    opened.close()


@pytest.mark.filterwarnings("ignore")
def test_a_real_lambda_layer_is_named_and_not_made(tmp_path):
    keras = pytest.importorskip("keras", reason="keras is not installed")
    layers = [keras.Input((4,)), keras.layers.Lambda(lambda x: x + 1), keras.layers.Dense(2)]
    model = keras.Sequential(layers)
    model.save(tmp_path / "m.keras")

    opened = open_model(tmp_path / "m.keras")

    assert opened.refused == ["Lambda layer with code"]
    assert len(opened.tensors) == 2
    opened.close()


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_stored_and_deflated_weights_read_alike(method, tmp_path):
    arrays = {"a": np.arange(5000.0), "z": np.arange(6000).reshape(60, 100), "b": np.float32(3)}
    path = pack(tmp_path / "m.keras", weights_of(**arrays), method)

    model = open_model(path)

    assert {name: array.tobytes() for name, array in arrays.items()} == {
        name: whole(model, name) for name in model.tensors
    }
    model.confirm()
    model.close()


def test_a_stored_tensor_lies_where_it_is_said_to(tmp_path):
    array = np.arange(5000.0)
    path = pack(tmp_path / "m.keras", weights_of(a=array, z=array))
    model = open_model(path)

    file, offset = model.encoding("a").place()

    assert file.read(offset, offset + array.nbytes) == array.tobytes()
    assert not hasattr(model.encoding("z"), "place")
    model.close()


def test_deflated_weights_over_half_a_gigabyte_are_refused(tmp_path, monkeypatch):
    path = pack(tmp_path / "m.keras", weights_of(a=np.zeros(10_000)), zipfile.ZIP_DEFLATED)
    monkeypatch.setattr("difflens.models.formats.hdf5._MOST_HELD", 50_000)

    with pytest.raises(LimitExceeded, match="unpacked in memory") as caught:
        open_model(path)
    assert caught.value.hint == "unpack it first"


@pytest.mark.parametrize("first", ["metadata.json", "config.json", "model.weights.h5"])
def test_it_is_recognised_whatever_member_comes_first(first, tmp_path):
    path = tmp_path / "renamed.bin"
    names = sorted(["metadata.json", "config.json", "model.weights.h5"], key=lambda n: n != first)
    contents = {"metadata.json": b"{}", "config.json": b"{}", "model.weights.h5": weights_of(a=[1])}
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, contents[name])

    model = open_model(path)

    assert (model.format, list(model.tensors)) == ("keras", ["a"])
    model.close()


def test_other_archives_are_left_alone(tmp_path):
    for names in (["config.json", "pytorch_model.bin"], ["archive/data.pkl"], ["a.npy"], ["x"]):
        path = tmp_path / "other.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for name in names:
                archive.writestr(name, b"x")
        assert not recognise(path.read_bytes()[:4096], Path("other.zip"))


def test_a_file_cut_at_any_byte_is_refused(tmp_path):
    path = pack(tmp_path / "m.keras", weights_of(a=np.arange(3)))
    for length in reversed(range(path.stat().st_size)):
        os.truncate(path, length)
        with pytest.raises(DifflensError):
            open_model(path)


def test_an_archive_without_a_config_is_refused(tmp_path):
    path = tmp_path / "m.keras"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("metadata.json", b'{"keras_version": "3"}')
        archive.writestr("model.weights.h5", weights_of(a=[1]))

    with pytest.raises(CorruptFile, match=r"no config\.json"):
        open_model(path)


def test_a_long_config_is_cut_with_its_hash(tmp_path):
    config = {"class_name": "Sequential", "config": {"layers": ["x" * 100] * 2000}}
    path = pack(tmp_path / "m.keras", weights_of(a=[1]), config=config)

    model = open_model(path)

    assert "characters, sha256 " in model.metadata["config"][-60:]
    assert len(model.metadata["config"]) < 70_000
    model.close()
