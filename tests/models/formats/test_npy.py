import io
import threading
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from difflens.core.errors import CorruptFile, UnknownName
from difflens.models.containers import columns, npy_header
from difflens.models.formats import open_model

NUMPY = {
    "BOOL": "|b1", "U8": "|u1", "I8": "|i1", "U16": "<u2", "I16": "<i2", "U32": "<u4", "I32": "<i4",
    "U64": "<u8", "I64": "<i8", "F16": "<f2", "F32": "<f4", "F64": "<f8", "C64": "<c8",
}  # fmt: skip


def encode(dtype: str, shape: tuple[int, ...], data: bytes) -> bytes | None:
    """Write one array as NumPy does; None if NumPy has no such type."""
    kind = {"BF16": ml_dtypes.bfloat16, "F8_E5M2": ml_dtypes.float8_e5m2}.get(
        dtype, NUMPY.get(dtype)
    )
    if kind is None:
        return None
    stream = io.BytesIO()
    np.save(stream, np.frombuffer(data, kind).reshape(shape))
    return stream.getvalue()


def sample(path: Path, tensors: dict[str, tuple[str, tuple[int, ...], bytes]]) -> Path | None:
    if len(tensors) != 1:
        return None
    data = encode(*next(iter(tensors.values())))
    if data is None:
        return None
    path.write_bytes(data)
    return path


def whole(source, name: str | None = None) -> bytes:
    name = name or next(iter(source.tensors))
    buffer = bytearray(source.tensors[name].size_bytes)
    assert source.read_into(name, 0, len(buffer), memoryview(buffer)) == len(buffer)
    return bytes(buffer)


def header(text: str, version: int = 1, data: bytes = b"") -> bytes:
    length = len(text).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + length + text.encode() + data


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.parametrize("dtype", NUMPY)
def test_it_reads_what_numpy_wrote(dtype, layout, order, tmp_path):
    kind = np.dtype(NUMPY[dtype]).newbyteorder(order)
    array = np.asarray(np.arange(24).reshape(2, 3, 4).astype(kind), order=layout)
    np.save(tmp_path / "weights.npy", array)

    model = open_model(tmp_path / "weights.npy")

    assert (dtype, (2, 3, 4)) == (model.tensors["weights"].dtype, model.tensors["weights"].shape)
    assert array.astype(kind.newbyteorder("<")).tobytes(order="C") == whole(model)
    assert model.warnings == []
    model.close()


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("layout", ["C", "F"])
def test_double_complex_numbers_are_read_as_pairs_of_doubles(layout, order, tmp_path):
    array = (np.arange(6) + 1j * np.arange(6)[::-1]).reshape(2, 3).astype(f"{order}c16")
    np.save(tmp_path / "z.npy", np.asarray(array, order=layout))

    model = open_model(tmp_path / "z.npy")

    info = model.tensors["z"]
    assert (info.dtype, info.shape, info.stored) == ("F64", (2, 3, 2), "complex128")
    assert array.astype("<c16").tobytes() == whole(model)
    model.close()


def test_bfloat16_is_known_by_how_only_it_is_written(tmp_path):
    array = np.array([1.5, -2, np.nan], ml_dtypes.bfloat16)
    np.save(tmp_path / "b.npy", array)

    model = open_model(tmp_path / "b.npy")

    assert model.tensors["b"].dtype == "BF16"
    assert array.tobytes() == whole(model)
    model.close()


@given(
    array=arrays.arrays(
        dtype=st.sampled_from([*NUMPY.values(), ">f4", ">i8", ">c8"]),
        shape=arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5),
    ),
    layout=st.sampled_from("CF"),
    version=st.sampled_from([(1, 0), (2, 0), (3, 0)]),
    cuts=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
def test_any_array_round_trips_and_so_does_any_part(tmp_path, array, layout, version, cuts):
    path = tmp_path / "a.npy"
    with path.open("wb") as stream:
        np.lib.format.write_array(stream, np.asarray(array, order=layout), version)

    model = open_model(path)

    expected = array.astype(array.dtype.newbyteorder("<")).tobytes()
    assert array.shape == model.tensors["a"].shape
    assert expected == whole(model)
    start, stop = sorted(round(cut * len(expected)) for cut in cuts)
    buffer = bytearray(stop - start)
    model.read_into("a", start, stop, memoryview(buffer))
    assert expected[start:stop] == bytes(buffer)
    model.close()


@pytest.mark.parametrize("band", [8, 40, 200, 4096])
@pytest.mark.parametrize("shape", [(7, 5), (1, 9), (9, 1, 2), (3, 4, 5), (2, 3, 1, 4, 2)])
def test_columns_are_gathered_in_bands_of_any_size(shape, band, tmp_path, monkeypatch):
    monkeypatch.setattr(npy_header, "BAND", band)
    monkeypatch.setattr(columns, "_CALL", band % 3)
    array = np.arange(np.prod(shape), dtype="<f8").reshape(shape)
    np.save(tmp_path / "a.npy", np.asfortranarray(array))

    model = open_model(tmp_path / "a.npy")

    assert array.tobytes() == whole(model)
    for start in range(0, array.nbytes, 13):
        buffer = bytearray(min(29, array.nbytes - start))
        model.read_into("a", start, start + len(buffer), memoryview(buffer))
        assert array.tobytes()[start : start + len(buffer)] == bytes(buffer)
    model.close()


def test_threads_that_read_columns_at_once_get_the_right_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(npy_header, "BAND", 4096)
    array = np.arange(200 * 150, dtype="<i4").reshape(200, 150)
    np.save(tmp_path / "a.npy", np.asfortranarray(array))
    model, wrong = open_model(tmp_path / "a.npy"), []

    def read(number: int) -> None:
        for start in range(number * 15000, (number + 1) * 15000, 1000):
            buffer = bytearray(1000)
            model.read_into("a", start, start + 1000, memoryview(buffer))
            if bytes(buffer) != array.tobytes()[start : start + 1000]:
                wrong.append(start)

    threads = [threading.Thread(target=read, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert wrong == []
    model.close()


def test_a_header_of_python_2_is_read(tmp_path):
    text = "{'descr': '<i2', 'fortran_order': False, 'shape': (3L, 2L), }\n"
    (tmp_path / "a.npy").write_bytes(header(text, data=bytes(range(12))))

    model = open_model(tmp_path / "a.npy")

    assert model.tensors["a"].shape == (3, 2)
    model.close()


def test_bytes_after_the_array_are_told(tmp_path):
    with (tmp_path / "two.npy").open("wb") as stream:
        np.save(stream, np.arange(3))
        np.save(stream, np.arange(4))

    model = open_model(tmp_path / "two.npy")

    assert whole(model) == np.arange(3).tobytes()
    assert model.warnings == ["160 bytes after the array's end were not read"]
    model.close()


@pytest.mark.parametrize("kind", ["U4", "S3", "V8", "M8[s]", "m8[ms]", "f16", "f4,i4"])
def test_what_is_no_tensor_is_left_out_with_a_warning(kind, tmp_path):
    np.save(tmp_path / "a.npy", np.zeros(2, kind))

    model = open_model(tmp_path / "a.npy")

    assert list(model.tensors) == []
    (said,) = model.warnings
    assert said.startswith("'a' holds ")
    assert said.endswith("left out")
    model.close()


@pytest.mark.parametrize(("start", "stop"), [(-1, 2), (0, 5), (3, 2), (0, 4)])
def test_bytes_beyond_the_tensor_or_the_buffer_are_not_read(start, stop, tmp_path):
    np.save(tmp_path / "a.npy", np.zeros(4, "u1"))
    model = open_model(tmp_path / "a.npy")

    with pytest.raises(ValueError, match="cannot read"):
        model.read_into("a", start, stop, memoryview(bytearray(3)))
    with pytest.raises(UnknownName):
        model.read_into("b", 0, 1, memoryview(bytearray(3)))
    model.close()


def test_a_file_cut_at_any_byte_is_refused(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.arange(5.0))
    good = path.read_bytes()
    for length in range(8, len(good)):
        path.write_bytes(good[:length])
        with pytest.raises(CorruptFile):
            open_model(path)
