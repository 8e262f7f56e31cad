import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanes import examples
from onnx import TensorProto, helper, numpy_helper

from difflens.core.errors import UnknownName
from difflens.models.formats import open_model
from difflens.models.formats.onnx import recognise

KINDS = {
    "F32": 1, "U8": 2, "I8": 3, "U16": 4, "I16": 5, "I32": 6, "I64": 7, "BOOL": 9, "F16": 10,
    "F64": 11, "U32": 12, "U64": 13, "C64": 14, "BF16": 16, "F8_E4M3": 17, "F8_E4M3FNUZ": 18,
    "F8_E5M2": 19, "F8_E5M2FNUZ": 20, "F4": 23, "F8_E8M0": 24,
}  # fmt: skip
ALL = {n: t for n, t in TensorProto.DataType.items() if n not in ("UNDEFINED", "STRING")}
PLAIN = {"I8": "i1", "U8": "u1", "F32": "<f4"}


def raw(name, kind, shape, data):
    tensor = TensorProto(name=name, data_type=kind, dims=shape)
    tensor.raw_data = data
    return tensor


def model(*initializers, nodes=(), **more):
    graph = helper.make_graph(list(nodes), "g", [], [], list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], **more)


def sample(path: Path, tensors):
    """Write a model with the real library; None for dtypes ONNX lacks."""
    if any(dtype not in KINDS for dtype, _, _ in tensors.values()):
        return None
    made = [raw(name, KINDS[dtype], shape, data) for name, (dtype, shape, data) in tensors.items()]
    path.write_bytes(model(*made).SerializeToString())
    return path


def whole(source, name: str) -> bytes:
    buffer = bytearray(source.tensors[name].size_bytes)
    assert len(buffer) == source.read_into(name, 0, len(buffer), memoryview(buffer))
    return bytes(buffer)


def expected(array: np.ndarray, info) -> bytes:
    """Encode what the real library read as our reader says it does."""
    if info.stored in ("COMPLEX128", None) and info.dtype != "F4":
        return array.tobytes()
    if info.dtype == "F4":
        codes = array.view(np.uint8).ravel()
        return (codes[::2] | codes[1::2] << 4).tobytes()
    return array.astype(PLAIN[info.dtype]).tobytes()


def values(kind: int, shape, seed: int) -> np.ndarray:
    count = int(np.prod(shape))
    numbers = np.random.default_rng(seed).integers(0, 4, count).astype(np.float32)
    return numbers.astype(helper.tensor_dtype_to_np_dtype(kind)).reshape(shape)


@pytest.mark.parametrize("way", ["raw", "typed", "external"])
@pytest.mark.parametrize("name", ALL)
def test_it_reads_what_the_reference_library_reads(name, way, tmp_path):
    kind = ALL[name]
    tensors = []
    for seed, shape in enumerate([(2, 5), (3,), (), (0, 2), (4, 2, 3)]):
        array = values(kind, shape, seed)
        if way == "typed":
            flat = array.ravel() if array.dtype.kind == "c" else array.astype(np.float32).ravel()
            tensors.append(helper.make_tensor(f"t{seed}", kind, shape, flat))
        else:
            tensors.append(numpy_helper.from_array(array, f"t{seed}"))
    path = tmp_path / "m.onnx"
    onnx.save(model(*tensors), path, save_as_external_data=way == "external", size_threshold=0)
    theirs = onnx.load(path)

    source = open_model(path)

    for tensor in theirs.graph.initializer:
        info = source.tensors[tensor.name]
        array = numpy_helper.to_array(tensor)
        extra = (2,) if name == "COMPLEX128" else ()
        assert array.shape + extra == info.shape
        assert expected(array, info) == whole(source, tensor.name)
    assert source.warnings == []
    source.close()


def test_every_code_of_the_small_floats_has_the_value_of_the_reference(tmp_path):
    tensors = [
        raw("e2m3", TensorProto.FLOAT6E2M3, [64], _six_bits()),
        raw("e3m2", TensorProto.FLOAT6E3M2, [64], _six_bits()),
        raw("e2m1", TensorProto.FLOAT4E2M1, [15], bytes([i | i + 1 << 4 for i in range(0, 15, 2)])),
    ]
    path = tmp_path / "m.onnx"
    path.write_bytes(model(*tensors).SerializeToString())

    source = open_model(path)

    for tensor in tensors:
        assert numpy_helper.to_array(tensor).astype("<f4").tobytes() == whole(source, tensor.name)
    source.close()


def _six_bits() -> bytes:
    return sum(code << 6 * code for code in range(64)).to_bytes(48, "little")


@examples(60)
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=40), st.data())
def test_any_part_of_typed_integers_is_the_part_of_the_whole(tmp_path_factory, numbers, data):
    path = tmp_path_factory.mktemp("m") / "m.onnx"
    tensor = helper.make_tensor("w", TensorProto.INT64, [len(numbers)], numbers)
    path.write_bytes(model(tensor).SerializeToString())
    source = open_model(path)
    plain = np.array(numbers, "<i8").tobytes()
    start = data.draw(st.integers(0, len(plain)))
    stop = data.draw(st.integers(start, len(plain)))
    buffer = bytearray(stop - start)

    assert stop - start == source.read_into("w", start, stop, memoryview(buffer))
    assert plain[start:stop] == bytes(buffer)
    source.close()


def test_long_streams_of_typed_integers_are_found_again_from_any_place(tmp_path):
    numbers = np.random.default_rng(1).integers(-(2**31), 2**31, 200_000, np.int64)
    numbers[::3] = 1
    tensor = helper.make_tensor("w", TensorProto.INT32, [200_000], numbers.tolist())
    path = tmp_path / "m.onnx"
    path.write_bytes(model(tensor).SerializeToString())
    source = open_model(path)
    plain = numbers.astype("<i4").tobytes()

    assert plain == whole(source, "w")
    for start in (700_001, 262_143, 0, 799_990):
        buffer = bytearray(10)
        source.read_into("w", start, start + 10, memoryview(buffer))
        assert plain[start : start + 10] == bytes(buffer)
    source.close()


def test_constants_of_nodes_are_named_by_what_they_make(tmp_path):
    constants = {
        "value": numpy_helper.from_array(np.ones(2, np.float32), "ignored"),
        "value_float": 1.5,
        "value_floats": [1.0, -2.0],
        "value_int": -3,
        "value_ints": [1, 2, -1],
    }
    nodes = [helper.make_node("Constant", [], [f"c_{k}"], **{k: v}) for k, v in constants.items()]
    fill = numpy_helper.from_array(np.array([7.0], np.float32))
    nodes.append(helper.make_node("ConstantOfShape", ["s"], ["y"], name="fill", value=fill))
    path = tmp_path / "m.onnx"
    path.write_bytes(model(nodes=nodes).SerializeToString())

    source = open_model(path)

    assert np.ones(2, "<f4").tobytes() == whole(source, "c_value")
    assert np.float32(1.5).tobytes() == whole(source, "c_value_float")
    assert np.array([1, -2], "<f4").tobytes() == whole(source, "c_value_floats")
    assert np.int64(-3).tobytes() == whole(source, "c_value_int")
    assert np.array([1, 2, -1], "<i8").tobytes() == whole(source, "c_value_ints")
    assert np.float32(7).tobytes() == whole(source, "fill.value")
    assert source.tensors["c_value_int"].shape == ()
    source.close()


def branch(name, *tensors, nodes=()):
    return helper.make_graph(list(nodes), name, [], [], list(tensors))


def test_graphs_inside_nodes_are_named_by_their_path(tmp_path):
    one, two = (numpy_helper.from_array(np.array([v], np.float32), "w") for v in (1, 2))
    inner = helper.make_node("If", ["c"], ["z"], then_branch=branch("i", one), name="inner",
                             else_branch=branch("j"))  # fmt: skip
    outer = helper.make_node("If", ["c"], ["y"], then_branch=branch("t", one, nodes=[inner]),
                             else_branch=branch("e", two))  # fmt: skip
    path = tmp_path / "m.onnx"
    path.write_bytes(model(two, nodes=[outer, outer]).SerializeToString())

    source = open_model(path)

    assert list(source.tensors) == [
        "w", "y/else_branch/w", "y/then_branch/w", "y/then_branch/inner/then_branch/w",
        "y/else_branch/w~2", "y/then_branch/w~2", "y/then_branch/inner/then_branch/w~2",
    ]  # fmt: skip
    assert np.float32(1).tobytes() == whole(source, "y/then_branch/inner/then_branch/w")
    assert source.metadata["onnx.operators"] == "If 4"
    source.close()


def test_functions_and_training_graphs_are_walked(tmp_path):
    made = model(numpy_helper.from_array(np.ones(1, np.float32), "w"))
    constant = helper.make_node("Constant", [], ["k"], value_float=2.0)
    opsets = [helper.make_opsetid("", 21)]
    made.functions.append(helper.make_function("my", "f", [], ["k"], [constant], opsets))
    training = made.training_info.add()
    training.algorithm.initializer.append(numpy_helper.from_array(np.ones(3, np.int8), "m"))
    path = tmp_path / "m.onnx"
    path.write_bytes(made.SerializeToString())

    source = open_model(path)

    assert list(source.tensors) == ["w", "training_info0/algorithm/m", "functions/my/f/k"]
    source.close()


def test_the_graph_is_summed_up_as_metadata(tmp_path):
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3, None])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.INT64, [1])]
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Relu", ["a"], ["y"]),
             helper.make_node("Thing", ["a"], ["b"], domain="my.domain")]  # fmt: skip
    made = helper.make_model(
        helper.make_graph(nodes, "main", inputs, outputs),
        producer_name="me", producer_version="3", opset_imports=[helper.make_opsetid("", 21)],
    )  # fmt: skip
    helper.set_model_props(made, {"author": "x"})
    path = tmp_path / "m.onnx"
    path.write_bytes(made.SerializeToString())

    source = open_model(path)

    assert source.metadata["onnx.inputs"] == "x FLOAT [batch, 3, ?]"
    assert source.metadata["onnx.outputs"] == "y INT64 [1]"
    assert source.metadata["onnx.operators"] == "Relu 2, my.domain.Thing 1"
    assert source.metadata["onnx.opset"] == "ai.onnx 21"
    assert source.metadata["onnx.producer"] == "me 3"
    assert source.metadata["author"] == "x"
    source.close()


def test_two_names_on_one_range_of_external_data_are_aliases(tmp_path):
    path = tmp_path / "m.onnx"
    made = model(*(numpy_helper.from_array(np.ones(4, np.float32), name) for name in "ab"))
    onnx.save(made, path, save_as_external_data=True, size_threshold=0, location="d")
    made = onnx.load(path, load_external_data=False)
    for tensor in made.graph.initializer:
        for key in tensor.external_data:
            if key.key == "offset":
                key.value = "0"
    path.write_bytes(made.SerializeToString())

    source = open_model(path)

    assert source.aliases == {"b": "a"}
    source.close()


def test_a_file_over_four_gigabytes_is_opened_by_its_heads(tmp_path):
    """The big tensor is a hole in a sparse file; what follows it is found behind it."""
    from hostile.wire import number, text, varint

    size = 5 << 30
    tail = text(1, b"") + text(5, raw("small", 1, [1], b"\0\0\x80\x3f").SerializeToString())
    head_of_big = number(1, size // 4) + number(2, 1) + text(8, "big") + b"\x4a" + varint(size)
    big = varint(5 << 3 | 2) + varint(len(head_of_big) + size) + head_of_big
    front = number(1, 8) + varint(7 << 3 | 2) + varint(len(big) + size + len(tail)) + big
    path = tmp_path / "m.onnx"
    with path.open("wb") as stream:
        stream.write(front)
        stream.seek(len(front) + size)
        stream.write(tail + text(8, number(2, 21)))

    source = open_model(path)

    assert (size // 4,) == source.tensors["big"].shape
    assert np.float32(1).tobytes() == whole(source, "small")
    source.close()


@pytest.mark.parametrize(("start", "stop"), [(-1, 2), (0, 5), (3, 2), (0, 4)])
def test_bytes_beyond_the_tensor_or_the_buffer_are_not_read(start, stop, tmp_path):
    source = open_model(sample(tmp_path / "m.onnx", {"a": ("U8", (4,), b"0123")}))

    with pytest.raises(ValueError, match="cannot read"):
        source.read_into("a", start, stop, memoryview(bytearray(3)))
    with pytest.raises(UnknownName):
        source.read_into("b", 0, 1, memoryview(bytearray(3)))
    source.close()


@pytest.mark.parametrize(
    "head",
    [
        b"\x08\x01\x12\x05hello", b"\x08\x08\x12\x03\x0a\x01x", b"\x08\x08", b"\x80\x02}q\x00.",
        os.urandom(0), b"hello world, this is text", b"\x08\xff\x7f\x3a\x02\x0a\x00",
        b"\x08\x08\x3a\x05\x05\x05\x05\x05\x05", b"\x3a\x02\x0a\x00", b"\x08\x02\x10\x01",
    ],
)  # fmt: skip
def test_other_bytes_are_left_alone(head):
    assert not recognise(head, Path("m.onnx"))
