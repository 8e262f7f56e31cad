"""Table O of the specification: ONNX files that lie, point elsewhere, or never end."""

import os
import random
import resource
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from hostile.files import MARKER, read
from hostile.fuzz import mutants
from hostile.wire import number, text, varint
from onnx import TensorProto, helper, numpy_helper

from difflens.core.errors import DifflensError
from difflens.models.formats import open_model
from difflens.testing.laws import deeds

CANARY = b"CANARY-CANARY-16"
LONGEST_SECONDS = 10
MOST_BYTES = 600 << 20


def model(*tensors: TensorProto, nodes=()) -> bytes:
    graph = helper.make_graph(list(nodes), "g", [], [], list(tensors))
    opsets = [helper.make_opsetid("", 21)]
    return helper.make_model(graph, opset_imports=opsets).SerializeToString()


def proto(kind=TensorProto.FLOAT, dims=(4,), name="w", **fields) -> TensorProto:
    return TensorProto(name=name, data_type=kind, dims=dims, **fields)


def external(*keys: tuple[str, str], dims=(4,)) -> TensorProto:
    tensor = proto(dims=dims, data_location=TensorProto.EXTERNAL)
    for key, value in keys:
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value
    return tensor


def written(folder: Path, data: bytes) -> Path:
    folder.mkdir(exist_ok=True, parents=True)
    path = folder / "model.onnx"
    path.write_bytes(data)
    return path


def refused(path: Path, word: str) -> None:
    before = sorted(path.parent.parent.rglob("*"))
    with pytest.raises(DifflensError):
        open_model(path)  # our own late imports are over after this
    start = time.monotonic()
    with deeds() as done, pytest.raises(DifflensError) as caught:
        open_model(path)
    text = str(caught.value)
    assert word in text
    assert text.isprintable()
    assert "invalid" not in text.lower()
    assert "CANARY" not in text
    assert len(caught.value.reason) < 700
    assert time.monotonic() - start < LONGEST_SECONDS
    assert done == []
    assert before == sorted(path.parent.parent.rglob("*"))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a model's folder beside a file that must not be read."""
    (tmp_path / "s").write_bytes(CANARY)
    (tmp_path / "in" / "sub").mkdir(parents=True)
    (tmp_path / "in" / "data").write_bytes(bytes(range(16)) * 2)
    return tmp_path / "in"


@pytest.mark.parametrize(
    ("location", "word"),
    [
        ("../s", "outside its folder"),
        ("/etc/hostname", "outside its folder"),
        ("sub/../../s", "outside its folder"),
        ("..\\s", "a relative path"),
        ("C:\\s", "a relative path"),
        ("C:s", "outside its folder"),
        ("", "a relative path"),
        (".", "a relative path"),
        ("a\0b", "a relative path"),
    ],
)
def test_o01_a_location_outside_the_folder_is_refused(location, word, place):
    refused(written(place, model(external(("location", location)))), word)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("offset", "-8"), ("offset", "1e3"), ("offset", " 8"), ("offset", "0x8"),
        ("offset", str(2**64)), ("length", "-1"), ("offset", "\uff18"), ("offset", ""),
    ],
)  # fmt: skip
def test_o02_an_offset_that_is_no_plain_number_is_refused(key, value, place):
    tensor = external(("location", "data"), (key, value))
    refused(written(place, model(tensor)), "a whole number is wanted")


@pytest.mark.parametrize("offset", ["17", str(2**63 - 1)])
def test_o02_a_range_past_the_end_is_refused(offset, place):
    tensor = external(("location", "data"), ("offset", offset), ("length", "16"))
    refused(written(place, model(tensor)), "of 'data', which has 32")


@pytest.mark.parametrize(
    ("tensor", "word"),
    [
        (external(("location", "data"), ("length", "12")), "takes 16 bytes"),
        (proto(raw_data=bytes(15)), "its raw_data has 15"),
        (proto(raw_data=bytes(17)), "its raw_data has 17"),
        (proto(raw_data=bytes(16), float_data=[0] * 4), "given twice"),
        (proto(float_data=[0] * 3), "there are 3"),
        (proto(float_data=[0] * 5), "there are 5"),
        (proto(TensorProto.INT32, int32_data=[1] * 5), "there are 5"),
        (proto(TensorProto.INT32, int64_data=[1] * 4), "int32_data is wanted"),
        (proto(), "no values"),
    ],
)
def test_o03_values_that_disagree_with_the_shape_are_refused(tensor, word, place):
    refused(written(place, model(tensor)), word)


def test_o03_raw_values_given_twice_are_refused(place):
    twice = number(1, 4) + number(2, 1) + text(8, "w") + text(9, bytes(16)) * 2
    data = number(1, 8) + text(7, text(5, twice)) + text(8, number(2, 21))
    refused(written(place, data), "raw_data is given twice")


@pytest.mark.parametrize(
    ("name", "word"), [("sub", "a folder"), ("pipe", "a pipe"), ("no", "no such")]
)
def test_o04_external_data_that_is_no_file_is_refused(name, word, place):
    os.mkfifo(place / "pipe")
    refused(written(place, model(external(("location", name)))), word)


def test_o05_a_link_out_of_the_folder_is_refused(place, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "data").write_bytes(CANARY)
    (place / "link").symlink_to(tmp_path / "out")
    (place / "file").symlink_to(tmp_path / "s")
    for location in ("link/data", "file"):
        refused(written(place, model(external(("location", location)))), "by a link")


def test_o05_a_link_within_the_folder_is_followed(place):
    (place / "link").symlink_to(place / "data")
    source = open_model(written(place, model(external(("location", "link")))))

    assert bytes(range(16)) == read(source, "w")
    source.close()


def test_o06_links_into_the_blobs_of_the_same_model_are_followed(tmp_path):
    root = tmp_path / "models--org--name"
    snapshot = root / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (root / "blobs").mkdir()
    (root / "blobs" / "1").write_bytes(model(external(("location", "model.onnx_data"))))
    (root / "blobs" / "2").write_bytes(bytes(range(16)))
    (snapshot / "model.onnx").symlink_to("../../blobs/1")
    (snapshot / "model.onnx_data").symlink_to("../../blobs/2")

    source = open_model(snapshot / "model.onnx")

    assert bytes(range(16)) == read(source, "w")
    source.close()


def test_o06_the_blobs_of_another_model_are_refused(tmp_path):
    other = tmp_path / "models--org--other" / "blobs"
    other.mkdir(parents=True)
    (other / "2").write_bytes(CANARY)
    snapshot = tmp_path / "models--org--name" / "snapshots" / "abc"
    path = written(snapshot, model(external(("location", "model.onnx_data"))))
    (snapshot / "model.onnx_data").symlink_to(other / "2")
    refused(path, "by a link")


def test_a_link_the_user_names_finds_the_data_beside_the_file_it_leads_to(place, tmp_path):
    written(place, model(external(("location", "data"))))
    (tmp_path / "mine.onnx").symlink_to(place / "model.onnx")

    source = open_model(tmp_path / "mine.onnx")

    assert bytes(range(16)) == read(source, "w")
    source.close()


def test_o07_an_unknown_key_is_ignored_with_a_warning(place):
    tensor = external(("location", "data"), ("__class__", "os"))
    source = open_model(written(place, model(tensor)))

    assert bytes(range(16)) == read(source, "w")
    assert "unknown key '__class__'" in source.warnings[0]
    source.close()


def test_o07_a_key_given_twice_is_refused(place):
    refused(written(place, model(external(("location", "data"), ("location", "data")))), "twice")
    refused(written(place, model(external(("offset", "0")))), "without a location")


@pytest.mark.parametrize(
    ("dims", "word"),
    [
        ((-1,), "dimension -1"), ((2**62, 4), "overflow"), ((1,) * 1000, "rank"),
        ((2**62, 2**62, 0), "overflow"),
    ],
)  # fmt: skip
def test_o08_dimensions_that_are_none_are_refused(dims, word, place):
    refused(written(place, model(proto(dims=dims, raw_data=bytes(4)))), word)


FRONT = number(1, 8) + text(2, "by hand")


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (FRONT + text(7, b"\x0a\x05ab") + text(8, b""), "what holds it"),
        (FRONT + text(7, b"\x0a\x00") + b"\x08" + b"\xff" * 11, "ten bytes"),
        (FRONT + text(7, b"\x0a\x00") + b"\x0b" * 100_000, "deeper than 100"),
        (FRONT + b"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x0a", "what holds it"),
        (FRONT + text(7, b"\x0a\x00") + b"\0", "no field tag"),
        (FRONT + text(7, b"\x0a\x00"), "no operator set"),
        (FRONT + text(7, b"\x0a\x00") * 2, "second graph"),
    ],
)
def test_o09_a_field_that_does_not_end_is_refused(data, word, place):
    refused(written(place, data), word)


def test_o09_a_million_unknown_fields_are_passed_over(place):
    unknown = (varint(99 << 3) + b"\x01") * 1_000_000
    good = model(proto(raw_data=bytes(range(16))))
    start = time.monotonic()
    source = open_model(written(place, good + unknown))

    assert bytes(range(16)) == read(source, "w")
    assert time.monotonic() - start < 20
    source.close()


def test_o10_two_initializers_of_one_name_are_refused(place):
    tensor = proto(raw_data=bytes(16))
    refused(written(place, model(tensor, tensor)), "'w' is given twice")
    refused(written(place, model(proto(name="", raw_data=bytes(16)))), "no name")


def test_o11_small_types_are_read_lowest_bits_first(place):
    tensors = [
        proto(TensorProto.INT4, (3,), "int4", raw_data=b"\x21\x0f"),
        proto(TensorProto.UINT4, (3,), "uint4", int32_data=[0x21, 0x0F]),
        proto(TensorProto.FLOAT8E4M3FN, (2,), "f8", raw_data=b"\x7e\xff"),
        proto(TensorProto.BFLOAT16, (2,), "bf16", int32_data=[0x3F80, 0xFF80]),
    ]
    source = open_model(written(place, model(*tensors)))

    assert bytes([1, 2, 0xFF]) == read(source, "int4")
    assert bytes([1, 2, 15]) == read(source, "uint4")
    assert read(source, "f8") == b"\x7e\xff"
    assert read(source, "bf16") == b"\x80\x3f\x80\xff"
    source.close()


def nested(depth: int) -> bytes:
    """Write If in If by hand: the reference library stops at a hundred."""
    graph = text(2, "leaf")
    for _ in range(depth):
        node = text(4, "If") + text(5, text(1, "then_branch") + text(6, graph))
        graph = text(1, node) + text(2, "g")
    return FRONT + text(7, graph) + text(8, number(2, 21))


def test_o12_sub_graphs_a_thousand_deep_are_refused_without_recursion(place):
    refused(written(place, nested(1000)), "deeper than 100")
    open_model(written(place, nested(30))).close()
    open_model(place / "model.onnx", limits={"protobuf_depth": 10_000}).close()


def test_o13_strings_sparse_tensors_and_custom_operators_are_opaque(place):
    words = helper.make_tensor("words", TensorProto.STRING, [2], [b"a", b"b"])
    payload = f"cos\nmkdir\n(V{place / MARKER}\ntR."
    node = helper.make_node("PyFunc", [], ["y"], domain="ai.onnx.contrib", code=payload)
    good = proto(raw_data=bytes(16))
    graph = helper.make_graph([node], "g", [], [], [words, good])
    sparse = graph.sparse_initializer.add()
    sparse.values.CopyFrom(proto(dims=(1,), name="thin", raw_data=bytes(4)))
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])

    source = open_model(written(place, made.SerializeToString()))

    assert list(source.tensors) == ["w"]
    assert [warning.partition("hold ")[2] for warning in source.warnings] == [
        "strings: 'words'",
        "sparse tensors: 'thin'",
    ]
    assert source.metadata["onnx.operators"] == "ai.onnx.contrib.PyFunc 1"
    assert not (place / MARKER).exists()
    source.close()


def test_a_type_nobody_knows_is_named_and_left_out(place):
    strange = proto(dims=(1,), name="odd", raw_data=b"x")
    strange.data_type = 99
    source = open_model(written(place, model(strange, proto(raw_data=bytes(16)))))

    assert "'odd (type 99)'" in source.warnings[0]
    source.close()


def test_values_written_one_by_one_are_read_and_counted(place):
    one_by_one = b"".join(b"\x25" + np.float32(value).tobytes() for value in range(4))
    head = number(2, 1) + text(8, "w")
    tail = text(8, number(2, 21))
    good = FRONT + text(7, text(5, number(1, 4) + head + one_by_one)) + tail
    source = open_model(written(place, good))

    assert np.arange(4, dtype="<f4").tobytes() == read(source, "w")
    source.close()
    many = number(1, 400_000) + head + one_by_one * 100_000
    refused(written(place, FRONT + text(7, text(5, many)) + tail), "one by one")


def small() -> bytes:
    """Make a small model with everything a reader looks into."""
    branch = helper.make_graph([], "b", [], [], [numpy_helper.from_array(np.ones(2, "f4"), "w")])
    nodes = [
        helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch),
        helper.make_node("Constant", [], ["k"], value_floats=[1.0, 2.0]),
    ]
    tensors = [
        numpy_helper.from_array(np.arange(6, dtype="f4").reshape(2, 3), "w"),
        helper.make_tensor("i", TensorProto.INT32, [3], [1, -2, 300]),
        helper.make_tensor("q", TensorProto.INT4, [3], [1, -2, 3]),
        external(("location", "data"), ("offset", "4"), ("length", "16")),
    ]
    tensors[-1].name = "e"
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])]
    graph = helper.make_graph(nodes, "g", inputs, [], tensors)
    return helper.make_model(
        graph, producer_name="me", opset_imports=[helper.make_opsetid("", 21)]
    ).SerializeToString()


def aimed(good: bytes, seed: int, count: int):
    """Yield copies with a length or a tag changed, where messages begin."""
    chance = random.Random(seed)
    for _ in range(count):
        data = bytearray(good)
        at = chance.randrange(len(data))
        wild = chance.choice(
            (varint(2**63), varint(2**32), b"\xff" * 10, b"\x0b", b"\x0c", b"\x7f")
        )
        data[at : at + chance.choice((0, 1, 2))] = wild
        yield bytes(data)


def survive(place: Path, seed: int, count: int) -> int:
    good, opened = small(), 0
    half = count // 2
    for data in [*mutants(good, seed, count - half), *aimed(good, seed, half)]:
        path = written(place, data)
        start = time.monotonic()
        try:
            source = open_model(path, format="onnx")
        except DifflensError as error:
            assert str(error).isprintable()  # noqa: PT017
            continue
        opened += 1
        _read_all(source)
        source.close()
        assert time.monotonic() - start < LONGEST_SECONDS
    return opened


def _read_all(source) -> None:
    for name, info in source.tensors.items():
        assert info.size_bytes < 1 << 20
        try:
            read(source, name)
        except DifflensError as error:
            assert str(error).isprintable()  # noqa: PT017


def test_a_thousand_mutants_give_clean_errors_or_open(place):
    assert 0 < survive(place, seed=1, count=1000) < 1000


@pytest.mark.slow
def test_five_thousand_mutants(place):
    count = int(os.environ.get("DIFFLENS_FUZZ", "5000"))
    survive(place, seed=int(os.environ.get("DIFFLENS_SEED", "2")), count=count)

    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 < MOST_BYTES


def test_a_file_cut_at_any_byte_is_refused(place):
    good = small()
    open_model(written(place, good)).close()
    assert len(good) < 4096
    for end in range(len(good)):
        with pytest.raises(DifflensError):
            open_model(written(place, good[:end]))


def test_what_we_open_the_reference_library_opens_alike(place):
    """Mutants that both open have the same names and shapes."""
    good, agreed = small(), 0
    for data in mutants(good, 5, 300):
        try:
            source = open_model(written(place, data), format="onnx")
        except DifflensError:
            continue
        try:
            theirs = onnx.load(place / "model.onnx", load_external_data=False)
        except Exception:  # noqa: BLE001, S112  theirs may refuse for other reasons
            continue
        for tensor in theirs.graph.initializer:
            if tensor.name in source.tensors:
                assert tuple(tensor.dims) == source.tensors[tensor.name].shape[: len(tensor.dims)]
                agreed += 1
        source.close()
    assert agreed > 0
