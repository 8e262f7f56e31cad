import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from models.formats.test_npy import whole

from difflens.core.errors import CorruptFile
from difflens.models.formats import open_model

CLASSES = {
    "F64": (6, 9), "F32": (7, 7), "I8": (8, 1), "U8": (9, 2), "I16": (10, 3), "U16": (11, 4),
    "I32": (12, 5), "U32": (13, 6), "I64": (14, 12), "U64": (15, 13), "BOOL": (9, 2),
}  # fmt: skip
NUMPY = {
    "BOOL": "?", "U8": "u1", "I8": "i1", "U16": "u2", "I16": "i2", "U32": "u4", "I32": "i4",
    "U64": "u8", "I64": "i8", "F32": "f4", "F64": "f8", "C64": "c8",
}  # fmt: skip


def element(kind: int, data: bytes, order: str = "<") -> bytes:
    return struct.pack(order + "2I", kind, len(data)) + data + bytes(-len(data) % 8)


def matrix(
    name: str,
    shape: tuple[int, ...],
    parts: list[tuple[int, bytes]],
    kind: int,
    *,
    flags: int = 0,
    order: str = "<",
) -> bytes:
    body = element(6, struct.pack(order + "2I", kind | flags, 0), order)
    body += element(5, struct.pack(f"{order}{len(shape)}i", *shape), order)
    body += element(1, name.encode(), order)
    body += b"".join(element(part, data, order) for part, data in parts)
    return element(14, body, order)


def file(*variables: bytes, order: str = "<") -> bytes:
    mark = b"\x00\x01IM" if order == "<" else b"\x01\x00MI"
    return b"MATLAB 5.0 MAT-file, by hand".ljust(116) + bytes(8) + mark + b"".join(variables)


def sample(path: Path, tensors: dict[str, tuple[str, tuple[int, ...], bytes]]) -> Path | None:
    variables = []
    for name, (dtype, shape, data) in tensors.items():
        if dtype not in CLASSES:
            return None
        kind, part = CLASSES[dtype]
        array = np.frombuffer(data, NUMPY[dtype]).reshape(shape)
        numbers = [(part, array.tobytes(order="F"))]
        variables.append(matrix(name, shape, numbers, kind, flags=0x200 if dtype == "BOOL" else 0))
    path.write_bytes(file(*variables))
    return path


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("dtype", NUMPY)
def test_it_reads_what_scipy_wrote(dtype, packed, tmp_path):
    array = (np.arange(24) % 3).reshape(2, 3, 4).astype(NUMPY[dtype])
    path = tmp_path / "m.mat"
    scipy.io.savemat(path, {"w": array, "row": array[0, 0]}, do_compression=packed)

    model = open_model(path)

    assert (model.tensors["w"].dtype, model.tensors["w"].shape) == (dtype, (2, 3, 4))
    assert array.tobytes() == whole(model, "w")
    assert model.tensors["row"].shape == (1, 4)
    assert array[0, 0].tobytes() == whole(model, "row")
    assert model.warnings == []
    model.close()


@given(
    model=st.dictionaries(
        st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True),
        arrays.arrays(
            dtype=st.sampled_from(["<f8", "<f4", "<i2", "<u8", "<c8", "<c16", "?"]),
            shape=arrays.array_shapes(min_dims=2, max_dims=4, min_side=0, max_side=4),
        ),
        min_size=1,
    ),
    packed=st.booleans(),
)
def test_any_model_round_trips(tmp_path, model, packed):
    path = tmp_path / "m.mat"
    scipy.io.savemat(path, model, do_compression=packed)

    opened = open_model(path)

    assert {name: array.tobytes() for name, array in model.items()} == {
        name: whole(opened, name) for name in opened.tensors
    }
    opened.close()


def test_structs_and_cells_are_named_with_dots_and_text_is_metadata(tmp_path):
    cells = np.empty((1, 2), object)
    cells[0, 0], cells[0, 1] = np.ones((2, 2)), {"deep": np.zeros((1, 3))}
    layers = np.array([(1.0,), (2.0,)], [("bias", object)])
    path = tmp_path / "m.mat"
    scipy.io.savemat(
        path,
        {
            "net": {"w": np.eye(3), "opt": {"lr": 0.1}, "note": "hello"},
            "c": cells,
            "layers": layers,
        },
    )

    model = open_model(path)

    expected = ["net.w", "net.opt.lr", "c.0", "c.1.deep", "layers.0.bias", "layers.1.bias"]
    assert sorted(expected) == sorted(model.tensors)
    assert model.metadata == {"net.note": "hello"}
    assert whole(model, "layers.1.bias") == struct.pack("<d", 2)
    model.close()


def test_sparse_matrices_and_functions_are_named_in_one_warning(tmp_path):
    from scipy.sparse import csc_array

    path = tmp_path / "m.mat"
    scipy.io.savemat(path, {"s": csc_array(np.eye(3)), "w": np.ones((1, 2))})

    model = open_model(path)

    assert list(model.tensors) == ["w"]
    assert model.warnings == ["no tensors, left out: 's: sparse'"]
    model.close()


@pytest.mark.parametrize("order", ["<", ">"])
def test_doubles_kept_in_a_narrower_type_are_doubles_again(order, tmp_path):
    numbers = (np.arange(6).reshape(2, 3) - 3).astype(f"{order}i2")
    data = matrix("w", (2, 3), [(3, numbers.tobytes(order="F"))], 6, order=order)
    (tmp_path / "m.mat").write_bytes(file(data, order=order))

    model = open_model(tmp_path / "m.mat")

    assert model.tensors["w"].dtype == "F64"
    assert model.tensors["w"].stored == "I16"
    assert numbers.astype("<f8").tobytes() == whole(model)
    buffer = bytearray(11)
    model.read_into("w", 5, 16, memoryview(buffer))
    assert numbers.astype("<f8").tobytes()[5:16] == bytes(buffer)
    model.close()


@pytest.mark.parametrize("packed", [True, False])
def test_a_big_endian_file_is_read(packed, tmp_path):
    numbers = np.arange(6).reshape(2, 3) + 1j
    parts = [(9, part.astype(">f8").tobytes(order="F")) for part in (numbers.real, numbers.imag)]
    data = matrix("z", (2, 3), parts, 6, flags=0x800, order=">")
    if packed:
        body = zlib.compress(data)
        data = struct.pack(">2I", 15, len(body)) + body
    (tmp_path / "m.mat").write_bytes(file(data, order=">"))

    model = open_model(tmp_path / "m.mat")

    assert (model.tensors["z"].shape, model.tensors["z"].stored) == ((2, 3, 2), "complex128")
    assert numbers.tobytes() == whole(model)
    model.close()


def test_two_variables_of_one_name_are_refused(tmp_path):
    one = matrix("w", (1, 1), [(9, bytes(8))], 6)
    (tmp_path / "m.mat").write_bytes(file(one, one))

    with pytest.raises(CorruptFile, match="two variables called 'w'"):
        open_model(tmp_path / "m.mat")


def test_matlab_7_3_is_left_to_hdf5(tmp_path):
    from difflens.models.formats.mat import recognise

    head = b"MATLAB 7.3 MAT-file".ljust(116) + bytes(8) + b"\x00\x02IM"

    assert not recognise(head.ljust(512) + b"\x89HDF\r\n\x1a\n", tmp_path / "m.mat")
