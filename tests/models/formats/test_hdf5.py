import gzip
import os
import subprocess
import sys
import threading
from pathlib import Path

import h5py
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanes import examples

from difflens.core.errors import (
    CorruptFile,
    DifflensError,
    LimitExceeded,
    MissingExtra,
    UnknownName,
)
from difflens.models.formats import open_model
from difflens.models.formats.hdf5 import recognise

NUMPY = {
    "BOOL": np.bool_, "U8": np.uint8, "I8": np.int8, "U16": np.uint16, "I16": np.int16,
    "U32": np.uint32, "I32": np.int32, "U64": np.uint64, "I64": np.int64,
    "F16": np.float16, "F32": np.float32, "F64": np.float64, "C64": np.complex64,
}  # fmt: skip
PACKINGS = {
    "contiguous": {},
    "chunked": {"chunks": True},
    "odd chunks": {"chunks": (2, 3, 3)},
    "gzip": {"compression": "gzip", "chunks": (5, 4, 2)},
    "gzip shuffle fletcher32": {"compression": "gzip", "shuffle": True, "fletcher32": True},
    "lzf": {"compression": "lzf"},
    "fletcher32": {"fletcher32": True},
}


def sample(path: Path, tensors: dict[str, tuple[str, tuple[int, ...], bytes]]) -> Path | None:
    """Write a file with h5py: name -> dtype, shape, encoded bytes."""
    with h5py.File(path, "w") as file:
        for name, (dtype, shape, data) in tensors.items():
            if dtype == "BF16":  # as Keras keeps it
                file[name] = np.frombuffer(data, "V2").reshape(shape)
                file[name].attrs["dtype"] = "bfloat16"
            elif dtype == "BOOL":
                boolean = h5py.h5t.py_create(np.dtype(np.bool_), logical=True)
                space = h5py.h5s.create_simple(shape)
                dataset = h5py.h5d.create(file.id, name.encode(), boolean, space)
                dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, np.frombuffer(data, "i1"), boolean)
            elif dtype in NUMPY:
                file[name] = np.frombuffer(data, NUMPY[dtype]).reshape(shape)
            else:
                return None
    return path


def whole(source, name: str) -> bytes:
    buffer = bytearray(source.tensors[name].size_bytes)
    assert source.read_into(name, 0, len(buffer), memoryview(buffer)) == len(buffer)
    return bytes(buffer)


def values(source, name: str) -> np.ndarray:
    info = source.tensors[name]
    kind = ml_dtypes.bfloat16 if info.dtype == "BF16" else NUMPY[info.dtype]
    return np.frombuffer(whole(source, name), kind).reshape(info.shape)


def written(path: Path, **arrays) -> Path:
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file[name] = array
    return path


@pytest.mark.parametrize("packing", PACKINGS)
def test_every_dtype_reads_as_h5py_reads_it(packing, tmp_path):
    chance = np.random.default_rng(1)
    path = tmp_path / "m.h5"
    arrays = {}
    with h5py.File(path, "w") as file:
        for dtype, kind in NUMPY.items():
            array = chance.integers(0, 2 if dtype == "BOOL" else 100, (7, 5, 3)).astype(kind)
            arrays[dtype] = array
            file.create_dataset(dtype, data=array, **PACKINGS[packing])

    model = open_model(path)

    assert list(arrays) == list(model.tensors)
    for dtype, array in arrays.items():
        assert (dtype, array.shape) == (model.tensors[dtype].dtype, model.tensors[dtype].shape)
        assert array.tobytes() == whole(model, dtype)
    assert model.warnings == []
    model.close()


@pytest.mark.parametrize("kind", [">f2", ">f4", ">f8", ">i2", ">i4", ">u8", ">c8"])
@pytest.mark.parametrize("packing", [{}, {"compression": "gzip"}])
def test_big_endian_values_are_swapped_and_that_is_told(kind, packing, tmp_path):
    path = tmp_path / "m.h5"
    array = np.arange(24).reshape(4, 6).astype(kind)
    with h5py.File(path, "w") as file:
        file.create_dataset("w", data=array, **packing)

    model = open_model(path)

    assert array.astype(np.dtype(kind).newbyteorder("<")).tobytes() == whole(model, "w")
    assert model.tensors["w"].stored == f"{model.tensors['w'].dtype} big-endian"
    model.close()


def test_complex128_is_pairs_of_f64(tmp_path):
    array = np.array([[1 + 2j, 3 - 4j]])
    model = open_model(written(tmp_path / "m.h5", w=array))

    info = model.tensors["w"]
    assert (info.dtype, info.shape, info.stored) == ("F64", (1, 2, 2), "complex128")
    assert array.tobytes() == whole(model, "w")
    model.close()


def test_hdf5s_own_complex_type_is_read(tmp_path):
    path = tmp_path / "m.h5"
    array = np.array([1 + 2j, 3], np.complex64)
    with h5py.File(path, "w") as file:
        space = h5py.h5s.create_simple((2,))
        kind = h5py.h5t.COMPLEX_IEEE_F32LE
        h5py.h5d.create(file.id, b"w", kind, space).write(h5py.h5s.ALL, h5py.h5s.ALL, array, kind)

    model = open_model(path)

    assert (model.tensors["w"].dtype, array.tobytes()) == ("C64", whole(model, "w"))
    model.close()


def test_floats_with_fields_of_their_own_are_not_guessed(tmp_path):
    path = tmp_path / "m.h5"
    with h5py.File(path, "w") as file:
        kind = h5py.h5t.IEEE_F32LE.copy()
        kind.set_ebias(126)
        h5py.h5d.create(file.id, b"odd", kind, h5py.h5s.create_simple((2,)))
        kind = h5py.h5t.IEEE_F16LE.copy()
        kind.set_fields(15, 7, 8, 0, 7)
        kind.set_ebias(127)
        h5py.h5d.create(file.id, b"bf16", kind, h5py.h5s.create_simple((2,)))

    model = open_model(path)

    assert {name: info.dtype for name, info in model.tensors.items()} == {"bf16": "BF16"}
    assert model.warnings == ["left out: 'odd' (float values)"]
    model.close()


shapes = st.lists(st.integers(0, 5), max_size=4).map(tuple)


@examples(8)
@given(st.lists(shapes, max_size=4), st.booleans())
def test_any_shape_round_trips(tmp_path_factory, found, packed):
    path = tmp_path_factory.mktemp("m") / "m.h5"
    with h5py.File(path, "w") as file:
        for number, shape in enumerate(found):
            how = {"compression": "gzip"} if packed and shape and 0 not in shape else {}
            file.create_dataset(f"t{number}", data=np.full(shape, number, "f4"), **how)

    model = open_model(path)

    assert {f"t{i}": shape for i, shape in enumerate(found)} == {
        name: info.shape for name, info in model.tensors.items()
    }
    for number in range(len(found)):
        assert (values(model, f"t{number}") == number).all()
    model.close()


@pytest.mark.parametrize("chunks", [None, (1, 7), (64, 3), (100, 1), (3, 70)])
def test_parts_of_a_packed_tensor_come_from_any_place(chunks, tmp_path):
    array = np.arange(7000, dtype="f4").reshape(100, 70)
    path = tmp_path / "m.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("w", data=array, compression="gzip", chunks=chunks)
    content = array.tobytes()
    model = open_model(path)
    chance = np.random.default_rng(2)

    for _ in range(60):
        start, stop = sorted(chance.integers(0, len(content) + 1, 2))
        buffer = bytearray(b"\xaa" * (stop - start + 2))
        assert model.read_into("w", int(start), int(stop), memoryview(buffer)) == stop - start
        assert bytes(buffer) == content[start:stop] + b"\xaa\xaa"
    model.close()


def test_a_row_wider_than_a_band_is_read_in_pieces(tmp_path):
    """Bands have 16 MiB; these rows have 20, and their chunks go across."""
    array = np.arange(2 * 5 * (1 << 20), dtype="i4").reshape(2, 5, 1 << 20)
    path = tmp_path / "m.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("w", data=array, chunks=(2, 3, 1 << 18), shuffle=True)
    model = open_model(path)

    assert array.tobytes() == whole(model, "w")
    model.close()


def test_threads_read_at_once_and_none_disturbs_another(tmp_path):
    arrays = {f"w{i}": np.full((300, 300), i, "f4") + np.arange(300) for i in range(4)}
    path = tmp_path / "m.h5"
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file.create_dataset(name, data=array, compression="gzip", chunks=(50, 60))
    model = open_model(path)
    wrong = []

    def read(name):
        for start in range(0, arrays[name].nbytes, 40_000):
            stop = min(start + 40_000, arrays[name].nbytes)
            buffer = bytearray(stop - start)
            model.read_into(name, start, stop, memoryview(buffer))
            if bytes(buffer) != arrays[name].tobytes()[start:stop]:
                wrong.append((name, start))

    threads = [threading.Thread(target=read, args=(name,)) for name in [*arrays] * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    model.close()
    assert wrong == []


def test_a_dataset_never_written_holds_its_fill_value(tmp_path):
    path = tmp_path / "m.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("plain", (3,), "f4", fillvalue=2.5)
        file.create_dataset("chunked", (3,), "i8", chunks=(2,), fillvalue=7)
        file.create_dataset("half", (4,), "i8", chunks=(2,), fillvalue=9)[:2] = 1

    model = open_model(path)

    assert values(model, "plain").tolist() == [2.5] * 3
    assert values(model, "chunked").tolist() == [7] * 3
    assert values(model, "half").tolist() == [1, 1, 9, 9]
    model.close()


def test_values_in_the_header_itself_are_read(tmp_path):
    path = tmp_path / "m.h5"
    with h5py.File(path, "w") as file:
        plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plan.set_layout(h5py.h5d.COMPACT)
        space = h5py.h5s.create_simple((3,))
        dataset = h5py.h5d.create(file.id, b"w", h5py.h5t.IEEE_F32LE, space, plan)
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([1, 2, 3], "f4"))

    model = open_model(path)

    assert values(model, "w").tolist() == [1, 2, 3]
    model.close()


@pytest.mark.parametrize("block", [512, 1024, 2048])
@pytest.mark.parametrize("version", ["earliest", "latest"])
def test_a_user_block_shifts_everything(block, version, tmp_path):
    path = tmp_path / "m.h5"
    with h5py.File(path, "w", userblock_size=block, libver=version) as file:
        file["w"] = np.arange(5.0)
        file.create_dataset("z", data=np.arange(5), compression="gzip")

    model = open_model(path)

    assert values(model, "w").tolist() == values(model, "z").tolist() == [0, 1, 2, 3, 4]
    model.close()


def test_a_block_put_before_a_finished_file_shifts_it_too(tmp_path):
    path = written(tmp_path / "m.h5", w=np.arange(5.0))
    path.write_bytes(b"notes".ljust(512, b"\0") + path.read_bytes())

    model = open_model(path)

    assert values(model, "w").tolist() == [0, 1, 2, 3, 4]
    model.close()


def test_what_only_holds_an_hdf5_file_is_not_claimed(tmp_path):
    inside = written(tmp_path / "m.h5", w=np.arange(5.0)).read_bytes()
    tar = b"m.h5".ljust(257, b"\0") + b"ustar" + bytes(250) + inside
    for head in (b"PK\x03\x04" + bytes(508), b"\x93NUMPY" + bytes(506), b"GGUF" + bytes(508)):
        assert not recognise((head + inside)[:4096], Path("m"))
    assert not recognise(tar[:4096], Path("m"))
    assert recognise(inside[:4096], Path("m.bin"))


def test_order_is_that_of_writing_and_names_have_dots(tmp_path):
    path = tmp_path / "m.h5"
    with h5py.File(path, "w") as file:
        for name in ("z/b", "z/a", "a", "m/10", "m/9", "m/deep/er"):
            file[name] = np.zeros(2)

    model = open_model(path)

    assert list(model.tensors) == ["z.b", "z.a", "a", "m.10", "m.9", "m.deep.er"]
    model.close()


def test_a_name_that_is_taken_keeps_its_slashes(tmp_path):
    path = tmp_path / "m.h5"
    with h5py.File(path, "w") as file:
        file["a.b"] = [1]
        file["a/b"] = [2]

    model = open_model(path)

    assert {name: values(model, name)[0] for name in model.tensors} == {"a.b": 1, "a/b": 2}
    model.close()


def test_a_second_name_is_an_alias(tmp_path):
    path = written(tmp_path / "m.h5", **{"a/w": np.arange(3)})
    with h5py.File(path, "a") as file:
        file["b"] = file["a/w"]
        file["c"] = file["a"]

    model = open_model(path)

    assert model.aliases in ({"b": "a.w"}, {"a.w": "b"})
    assert values(model, "a.w").tolist() == values(model, "b").tolist()
    assert len(model.warnings) == 1
    assert "read already under another name" in model.warnings[0]
    model.close()


def test_attributes_are_metadata(tmp_path):
    path = written(tmp_path / "m.h5", w=np.zeros(1))
    with h5py.File(path, "a") as file:
        file.attrs["text"] = "words"
        file.attrs["fixed"] = np.bytes_(b"bytes")
        file.attrs["number"] = 3
        file.attrs["list"] = ["a", "b"]
        file.attrs["numbers"] = [1.5, 2]
        file.attrs["matrix"] = np.zeros((2, 2))
        file.attrs["compound"] = np.zeros(1, [("x", "i4")])
        file.attrs["nothing"] = h5py.Empty("f4")
        file.attrs["reference"] = file["w"].ref
        file.attrs["ragged"] = np.array([1, 2], dtype=h5py.vlen_dtype(np.int32))[:0]
        file.attrs["flag"] = True

    model = open_model(path)

    shown = {name: text for name, text in model.metadata.items() if "not shown" not in text}
    assert shown == {
        "text": "words", "fixed": "bytes", "number": "3", "list": "a, b", "numbers": "1.5, 2.0",
        "nothing": "", "flag": "True", "ragged": "",
    }  # fmt: skip
    assert model.metadata["compound"] == "(compound, not shown)"
    model.close()


def test_bytes_beyond_the_tensor_or_the_buffer_are_not_read(tmp_path):
    model = open_model(written(tmp_path / "m.h5", w=np.zeros(4, "u1")))

    for start, stop in ((-1, 2), (0, 5), (3, 2), (0, 4)):
        with pytest.raises(ValueError, match="cannot read"):
            model.read_into("w", start, stop, memoryview(bytearray(3)))
    with pytest.raises(UnknownName, match="no tensor"):
        model.read_into("v", 0, 1, memoryview(bytearray(3)))
    model.close()


def test_contiguous_tensors_need_no_child_after_opening(tmp_path):
    plain = open_model(written(tmp_path / "m.h5", w=np.arange(9.0)))
    with h5py.File(tmp_path / "z.h5", "w") as file:
        file.create_dataset("w", data=np.arange(9.0), compression="gzip")
    packed = open_model(tmp_path / "z.h5")

    assert plain.child._pipes.process.returncode is not None
    assert packed.child._pipes.process.poll() is None
    packed.close()
    plain.close()
    assert packed.child._pipes.process.returncode is not None
    with pytest.raises(DifflensError, match="has ended"):
        packed.read_into("w", 0, 8, memoryview(bytearray(8)))


def test_a_model_nobody_closed_ends_its_child(tmp_path):
    with h5py.File(tmp_path / "z.h5", "w") as file:
        file.create_dataset("w", data=np.arange(9.0), compression="gzip")
    model = open_model(tmp_path / "z.h5")
    process = model.child._pipes.process

    del model

    assert process.returncode is not None


def test_the_child_ends_when_the_parent_is_gone(tmp_path):
    with h5py.File(tmp_path / "z.h5", "w") as file:
        file.create_dataset("w", data=np.arange(9.0), compression="gzip")
    code = (
        "import os, sys; from difflens.models.formats import open_model; "
        f"model = open_model({str(tmp_path / 'z.h5')!r}); "
        "print(model.child._pipes.process.pid, flush=True); os._exit(0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    )

    assert not _is_alive(int(done.stdout))


def _is_alive(process: int) -> bool:
    from time import monotonic, sleep

    until = monotonic() + 5
    while monotonic() < until:
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return False
        if state == "Z":
            return False
        sleep(0.05)
    return True


def test_without_h5py_the_extra_is_named(tmp_path, monkeypatch):
    path = written(tmp_path / "m.h5", w=np.zeros(1))
    monkeypatch.setattr(sys, "path", [each for each in sys.path if "site-packages" not in each])

    with pytest.raises(MissingExtra, match=r"pip install 'difflens\[hdf5\]'"):
        open_model(path)


def test_modules_in_the_working_folder_are_not_the_childs(tmp_path, monkeypatch):
    path = written(tmp_path / "m.h5", w=np.zeros(1))
    (tmp_path / "h5py.py").write_text("raise SystemExit('mine')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    open_model(path).close()


def test_a_limit_can_be_raised(tmp_path):
    path = tmp_path / "m.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("w", (20_000_000,), "f4")

    with pytest.raises(LimitExceeded, match="the limit is 1000 times") as caught:
        open_model(path)
    assert caught.value.hint == "raise it with --limit hdf5_bytes=N if you trust the file"
    model = open_model(path, limits={"hdf5_bytes": 10**9})
    assert model.tensors["w"].count == 20_000_000
    model.close()


def matlab(path: Path, fill) -> Path:
    with h5py.File(path, "w", userblock_size=512) as file:
        fill(file)
    text = b"MATLAB 7.3 MAT-file, Platform: GLNXA64, Created on: today HDF5 schema 1.00 ."
    with path.open("r+b") as stream:
        stream.write(text.ljust(124) + b"\0\2IM")
    return path


def put(file, name, array, kind, **packing):
    """Store an array as MATLAB does: its axes reversed."""
    dataset = file.create_dataset(name, data=np.asarray(array).T, **packing)
    dataset.attrs["MATLAB_class"] = np.bytes_(kind)
    return dataset


@pytest.mark.parametrize("packing", [{}, {"compression": "gzip"}, {"chunks": True}])
def test_matlab_arrays_have_matlabs_shape(packing, tmp_path):
    cube = np.arange(24.0).reshape(2, 3, 4)
    matrix = np.arange(700_000.0, dtype="f4").reshape(7, 100_000)

    def fill(file):
        put(file, "cube", cube, "double", **packing)
        put(file, "matrix", matrix, "single", **packing)
        put(file, "row", np.arange(5).reshape(1, 5), "int64", **packing)
        put(file, "s/inside", np.ones((2, 1), "f4"), "single", **packing)
        put(file, "yes", np.array([[1, 0]], "u1"), "logical", **packing)

    model = open_model(matlab(tmp_path / "m.mat", fill))

    assert (values(model, "cube") == cube).all()
    assert (values(model, "matrix") == matrix).all()
    assert values(model, "row").tolist() == [[0, 1, 2, 3, 4]]
    assert model.tensors["s.inside"].shape == (2, 1)
    assert (model.tensors["yes"].dtype, whole(model, "yes")) == ("BOOL", b"\1\0")
    model.close()


def test_matlab_text_and_cells_are_named_and_left_out(tmp_path):
    def fill(file):
        put(file, "w", np.ones((2, 2)), "double")
        put(file, "word", np.array([[104, 105]], "u2"), "char")
        put(file, "none", np.array([0, 3], "u8"), "double").attrs["MATLAB_empty"] = np.uint8(1)
        put(file, "z", np.array([[(1, 2)]], [("real", "f8"), ("imag", "f8")]), "double")
        file.create_dataset("cell", data=[file["w"].ref], dtype=h5py.ref_dtype)

    model = open_model(matlab(tmp_path / "m.mat", fill))

    assert list(model.tensors) == ["w", "z"]
    assert values(model, "z").tolist() == [[[1, 2]]]
    for said in ("'word' (a MATLAB char array)", "'none' (an empty", "'cell' (reference"):
        assert said in model.warnings[0]
    model.close()


def legacy_model():
    import keras

    keras.utils.set_random_seed(1)
    layers = keras.layers
    model = keras.Sequential([
        keras.Input((8, 8, 1)), layers.Conv2D(3, 2, name="z"), layers.BatchNormalization(),
        layers.Flatten(), layers.Dense(4, name="a"), layers.Dense(2),
    ], name="net")  # fmt: skip
    model.compile("adam", "mse")
    return model


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("ending", [".h5", ".weights.h5"])
def test_keras_models_read_as_keras_has_them(ending, tmp_path):
    pytest.importorskip("keras", reason="keras is not installed")
    model = legacy_model()
    path = tmp_path / f"m{ending}"
    model.save_weights(path) if ending == ".weights.h5" else model.save(path)

    opened = open_model(path)

    names = [name for name in opened.tensors if not name.startswith("optimizer")]
    expected = model.get_weights()
    assert len(names) == len(expected)
    for name, array in zip(names, expected, strict=True):
        assert (opened.tensors[name].shape, whole(opened, name)) == (array.shape, array.tobytes())
    if ending == ".h5":
        assert names[0] == "z.net.z.kernel"
        assert '"Conv2D"' in opened.metadata["model_config"]
        assert opened.metadata["layer_names"].startswith("z, batch_normalization")
    else:
        assert names[0] == "layers.conv2d.vars.0"
    opened.close()


@pytest.mark.filterwarnings("ignore")
def test_keras_bfloat16_weights_are_bf16(tmp_path):
    keras = pytest.importorskip("keras", reason="keras is not installed")
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, dtype="bfloat16")])
    model.save_weights(tmp_path / "m.weights.h5")

    opened = open_model(tmp_path / "m.weights.h5")

    kernel = next(iter(opened.tensors))
    assert opened.tensors[kernel].dtype == "BF16"
    expected = model.weights[0].value.detach().float().numpy()
    assert (values(opened, kernel).astype("f4") == expected).all()
    opened.close()


def test_a_file_within_a_compressed_stream_is_read_from_memory(tmp_path):
    path = tmp_path / "m.h5"
    arrays = {"w": np.arange(9000.0), "z": np.arange(9000).reshape(90, 100)}
    with h5py.File(path, "w") as file:
        file["w"] = arrays["w"]
        file.create_dataset("z", data=arrays["z"], compression="gzip")
    (tmp_path / "m.h5.gz").write_bytes(gzip.compress(path.read_bytes()))

    model = open_model(tmp_path / "m.h5.gz")

    assert {name: whole(model, name) for name in model.tensors} == {
        name: array.tobytes() for name, array in arrays.items()
    }
    model.close()


def test_an_old_keras_file_keeps_its_order_and_names(tmp_path):
    """The layout of Keras 2, whose names end in :0, and whose long lists are cut in pieces."""
    path = tmp_path / "old.h5"
    with h5py.File(path, "w") as file:
        weights = file.create_group("model_weights")
        for layer in ("b", "a"):
            group = weights.create_group(layer)
            group[f"{layer}/bias:0"] = np.ones(2)
            group[f"{layer}/kernel:0"] = np.ones((2, 2))
            group.attrs["weight_names"] = [f"{layer}/kernel:0".encode(), f"{layer}/bias:0".encode()]
        weights.attrs["layer_names0"] = [b"a"]
        weights.attrs["layer_names1"] = [b"b"]

    model = open_model(path)

    assert list(model.tensors) == ["a.a.kernel:0", "a.a.bias:0", "b.b.kernel:0", "b.b.bias:0"]
    model.close()


def test_a_lambda_in_a_config_is_named(tmp_path):
    path = written(tmp_path / "m.h5", w=np.zeros(1))
    with h5py.File(path, "a") as file:
        file.attrs["model_config"] = '{"config": {"layers": [{"class_name": "Lambda"}]}}'

    model = open_model(path)

    assert model.refused == ["Lambda layer with code"]
    model.close()


@pytest.mark.parametrize("version", ["earliest", "latest"])
def test_a_file_cut_at_any_byte_is_refused(version, tmp_path):
    path = tmp_path / "m.h5"
    with h5py.File(path, "w", libver=version) as file:
        file["w"] = np.arange(4.0)
    for length in reversed(range(path.stat().st_size)):
        os.truncate(path, length)
        with pytest.raises(CorruptFile):
            open_model(path)
