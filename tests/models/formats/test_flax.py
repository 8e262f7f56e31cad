import struct
from pathlib import Path
from typing import Any

import ml_dtypes
import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from models.formats.test_npy import whole

from difflens.core.errors import CorruptFile
from difflens.models.formats import open_model
from difflens.models.formats.flax import recognise

NUMPY = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "U32": "uint32",
    "I32": "int32", "U64": "uint64", "I64": "int64", "F16": "float16", "F32": "float32",
    "F64": "float64", "C64": "complex64", "BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2", "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F8_E8M0": "float8_e8m0fnu",
}  # fmt: skip


def extension(name: str, shape: tuple[float, ...], data: bytes, code: int = 1) -> msgpack.ExtType:
    """What `flax.serialization._msgpack_ext_pack` makes of an array."""
    return msgpack.ExtType(code, msgpack.packb((shape, name, data), use_bin_type=True))


def leaf(array: np.ndarray) -> msgpack.ExtType:
    return extension(array.dtype.name, array.shape, array.tobytes())


def chunked(array: np.ndarray, size: int) -> dict[str, Any]:
    """What `flax.serialization._chunk` makes of a large array."""
    flat = array.reshape(-1)
    chunks = [leaf(flat[at : at + size]) for at in range(0, flat.size, size)]
    return {
        "__msgpack_chunked_array__": True,
        "shape": {str(axis): length for axis, length in enumerate(array.shape)},
        "chunks": {str(at): chunk for at, chunk in enumerate(chunks)},
    }


def write(path: Path, tree: object) -> Path:
    path.write_bytes(msgpack.packb(tree, strict_types=True))
    return path


def sample(path: Path, tensors: dict[str, tuple[str, tuple[int, ...], bytes]]) -> Path | None:
    if any(dtype not in NUMPY for dtype, _, _ in tensors.values()):
        return None
    leaves = {
        name: extension(NUMPY[dtype], shape, data) for name, (dtype, shape, data) in tensors.items()
    }
    return write(path, leaves)


def test_nested_maps_are_joined_with_dots_and_the_rest_is_metadata(tmp_path):
    kernel = np.arange(6, dtype="f4").reshape(2, 3)
    tree = {
        "params": {"dense": {"kernel": leaf(kernel), "bias": leaf(np.ones(3, ml_dtypes.bfloat16))}},
        "opt": [leaf(np.zeros(2)), {"count": extension("int32", (), struct.pack("<i", 5), 3)}],
        "step": 7, "rate": 0.5, "note": "x", "done": True, "none": None,
        "z": msgpack.ExtType(2, msgpack.packb((1.0, -2.0))),
        "blob": b"abc",
    }  # fmt: skip

    model = open_model(write(tmp_path / "m.msgpack", tree))

    expected = ["params.dense.kernel", "params.dense.bias", "opt.0", "opt.1.count"]
    assert expected == list(model.tensors)
    assert kernel.tobytes() == whole(model, "params.dense.kernel")
    assert model.tensors["params.dense.bias"].dtype == "BF16"
    assert model.tensors["opt.1.count"].shape == ()
    assert model.metadata == {
        "step": "7", "rate": "0.5", "note": "x", "done": "True", "none": "None", "z": "1.0-2.0j",
    }  # fmt: skip
    assert model.warnings == ["no tensors, left out: 'blob: 3 bytes'"]
    model.close()


@given(
    st.dictionaries(
        st.text(max_size=8).filter(lambda name: "." not in name),
        arrays.arrays(
            dtype=st.sampled_from(["<f4", "<f8", "<i2", "|b1", "<c8", "<c16"]),
            shape=arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4),
        ),
        min_size=1,
    )
)
def test_any_tree_round_trips(tmp_path, model):
    path = write(tmp_path / "m.msgpack", {"p": {name: leaf(each) for name, each in model.items()}})

    opened = open_model(path)

    assert {f"p.{name}": each.tobytes() for name, each in model.items()} == {
        name: whole(opened, name) for name in opened.tensors
    }
    opened.close()


@pytest.mark.parametrize("size", [1, 7, 100])
def test_an_array_in_chunks_is_one_tensor(size, tmp_path):
    array = np.arange(60, dtype="<i4").reshape(3, 4, 5)
    model = open_model(write(tmp_path / "m.msgpack", {"w": chunked(array, size)}))

    assert model.tensors["w"].shape == (3, 4, 5)
    assert array.tobytes() == whole(model)
    for start in range(0, 240, 7):
        buffer = bytearray(min(50, 240 - start))
        model.read_into("w", start, start + len(buffer), memoryview(buffer))
        assert array.tobytes()[start : start + len(buffer)] == bytes(buffer)
    model.close()


def test_a_dtype_nobody_knows_is_named_and_left_out(tmp_path):
    tree = {"w": extension("int4", (2,), b"\1\2"), "v": leaf(np.ones(1))}
    model = open_model(write(tmp_path / "m.msgpack", tree))

    assert list(model.tensors) == ["v"]
    assert model.warnings == ["no tensors, left out: 'w: int4'"]
    model.close()


def test_keys_that_give_one_name_are_refused(tmp_path):
    tree = {"a.b": leaf(np.ones(1)), "a": {"b": leaf(np.ones(1))}}

    with pytest.raises(CorruptFile, match=r"it holds 'a\.b' twice"):
        open_model(write(tmp_path / "m.msgpack", tree))


@pytest.mark.parametrize(
    "head",
    [b"\x81", b"\x82\xa1a\xa1b", b"\xde\xff", b"\x81\xa5hello\xc7\x04\x01abcd", b"\x80\x02}q\x00."],
)
def test_other_files_are_left_alone(head):
    assert not recognise(head.ljust(100, b"\0"), Path("unnamed"))


def test_only_the_heads_of_arrays_are_read(tmp_path):
    from difflens.models.formats.flax import flax
    from difflens.storage.local import File

    path = write(tmp_path / "m.msgpack", {str(n): leaf(np.zeros(1 << 18)) for n in range(8)})
    seen = []

    class Counting(File):
        def read_into(self, start, buffer):
            seen.append(len(buffer))
            return super().read_into(start, buffer)

    flax(Counting(path)).close()

    assert sum(seen) < path.stat().st_size // 8
