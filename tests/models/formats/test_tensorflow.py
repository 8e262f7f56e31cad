import struct
from pathlib import Path

import numpy as np
import pytest
from hostile.wire import TENSORFLOW, block, checkpoint, entry, header, sealed, table, varint

from difflens.core.errors import CorruptFile, DifflensError
from difflens.models.formats import open_model
from difflens.models.formats.tensorflow import recognise
from difflens.models.tensorflow.tensors import key_of

FIXTURES = Path(__file__).parents[2] / "fixtures" / "tensorflow"


def sample(path: Path, tensors):
    """Write an index and its shard by hand; None for dtypes TensorFlow lacks."""
    if any(dtype not in TENSORFLOW for dtype, _, _ in tensors.values()):
        return None
    index, data = checkpoint(tensors)
    path.write_bytes(index)
    (path.parent / f"{path.stem}.data-00000-of-00001").write_bytes(data)
    return path


def whole(source, name: str) -> bytes:
    buffer = bytearray(source.tensors[name].size_bytes)
    assert len(buffer) == source.read_into(name, 0, len(buffer), memoryview(buffer))
    return bytes(buffer)


@pytest.mark.parametrize(
    ("prefix", "folder"),
    [
        ("dtypes/model", "dtypes"),
        ("slices/model", "slices"),
        ("object_graph/ckpt-2", "object_graph"),
        ("saved_model/variables/variables", "saved_model"),
        ("keras_saved_model/variables/variables", "keras_saved_model"),
    ],
)
def test_it_reads_what_tensorflow_wrote_and_read_back(prefix, folder):
    expected = np.load(FIXTURES / folder / "expected.npz")

    source = open_model(FIXTURES / f"{prefix}.index")

    assert len(expected.files) > 1
    for key in expected.files:
        name = key.removesuffix("/.ATTRIBUTES/VARIABLE_VALUE")
        array, info = expected[key], source.tensors[name]
        assert array.shape == info.shape[: array.ndim]
        assert array.tobytes() == whole(source, name)
    source.verify()
    source.confirm()
    source.close()


def test_types_of_few_bits_are_read_as_the_bytes_they_are_kept_in():
    source = open_model(FIXTURES / "dtypes" / "model.index")

    assert (source.tensors["int4/w"].dtype, source.tensors["int4/w"].stored) == ("I8", "INT4")
    assert bytes([0, 1, 2, 3, 4, 5]) == whole(source, "int4/w") == whole(source, "uint4/w")
    source.close()


def test_any_part_of_a_sliced_tensor_is_the_part_of_the_whole():
    source = open_model(FIXTURES / "slices" / "model.index")
    plain = np.load(FIXTURES / "slices" / "expected.npz")["axis1"].tobytes()

    for start in range(0, len(plain), 61):
        for stop in (start, start + 1, start + 400, len(plain)):
            buffer = bytearray(min(stop, len(plain)) - start)
            source.read_into("axis1", start, start + len(buffer), memoryview(buffer))
            assert plain[start : start + len(buffer)] == bytes(buffer)
    source.close()


def test_names_of_an_object_graph_are_paths_without_their_ending():
    source = open_model(FIXTURES / "object_graph")

    assert list(source.tensors) == ["layer/bias", "layer/kernel", "save_counter", "step"]
    assert struct.pack("<q", 8) == whole(source, "step")
    assert source.warnings == []
    source.close()


@pytest.mark.parametrize("name", ["ckpt-1", "ckpt-1.index", "", "checkpoint"])
def test_a_checkpoint_is_named_by_prefix_index_or_folder(name):
    source = open_model(FIXTURES / "object_graph" / name)

    assert struct.pack("<q", 7 if "ckpt" in name else 8) == whole(source, "step")
    source.close()


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('model_checkpoint_path: "../../x"', "'x', which is not there"),
        ('model_checkpoint_path: ""', "not there"),
        ("nothing", "names no"),
    ],
)
def test_a_checkpoint_file_can_name_only_what_lies_beside_it(text, word, tmp_path):
    (tmp_path / "checkpoint").write_text(text)

    with pytest.raises(CorruptFile, match=word):
        open_model(tmp_path)
    with pytest.raises(DifflensError):
        open_model(tmp_path / "no")


@pytest.mark.parametrize("dtype", ["F32", "F16", "C64", "I64", "U8"])
def test_big_endian_values_are_turned_around(dtype, tmp_path):
    width = {"F32": 4, "F16": 2, "C64": 4, "I64": 8, "U8": 1}[dtype]
    data = bytes(range(48))
    count = len(data) // (8 if dtype == "C64" else width)
    entries = {b"": header(1, 1), b"w": entry(TENSORFLOW[dtype], (count,), 0, data)}
    path = tmp_path / "m.index"
    path.write_bytes(table(block(entries)))
    (tmp_path / "m.data-00000-of-00001").write_bytes(data)
    plain = np.frombuffer(data, f">u{width}").astype(f"<u{width}").tobytes()

    source = open_model(path)

    assert plain == whole(source, "w")
    part = bytearray(9)
    source.read_into("w", 5, 14, memoryview(part))
    assert plain[5:14] == bytes(part)
    source.verify()
    source.close()


def test_a_packed_index_is_recognised_and_read(tmp_path):
    index, data = checkpoint({"w": ("F32", (2,), b"12345678")})
    plain = index[: index.index(struct.pack("<II", 0, 1)) + 8]
    packed = varint(len(plain)) + bytes([60 << 2, len(plain) - 1]) + plain
    path = tmp_path / "m.index"
    path.write_bytes(table(sealed(packed, 1)))
    (tmp_path / "m.data-00000-of-00001").write_bytes(data)

    source = open_model(path)

    assert whole(source, "w") == b"12345678"
    source.close()


def test_a_flipped_bit_of_the_values_is_found_by_verify(tmp_path):
    path = sample(tmp_path / "m.index", {"w": ("F32", (4000,), bytes(range(250)) * 64)})
    shard = tmp_path / "m.data-00000-of-00001"
    good = shard.read_bytes()
    for place in (0, 7777, 15_999):
        data = bytearray(good)
        data[place] ^= 4
        shard.write_bytes(data)
        source = open_model(path)
        with pytest.raises(CorruptFile, match="tensor 'w' has the checksum"):
            source.verify()
        source.close()


def test_a_name_that_ends_like_an_attribute_keeps_its_ending_where_two_would_be_one(tmp_path):
    ending = "w/.ATTRIBUTES/VARIABLE_VALUE"
    tensors = {"w": ("U8", (1,), b"a"), ending: ("U8", (1,), b"b")}

    source = open_model(sample(tmp_path / "m.index", tensors))

    assert {"w", ending} == set(source.tensors)
    source.close()


@pytest.mark.parametrize(
    ("extents", "key"),
    [
        ([(0, 3), (0, -1)], "007700010102808380 7f"),
        ([(64, 200)], "00770001 0101 c040 c0c8"),
        ([(8192, 1_000_000)], "00770001 0101 e02000 ef4240"),
    ],
)
def test_keys_of_slices_sort_as_their_numbers_do(extents, key):
    assert bytes.fromhex(key.replace(" ", "")) == key_of(b"w", extents)


@pytest.mark.parametrize(
    "head", [b"", b"\0\0", bytes(64), b"\0\0\x08" + b"x" * 20, b"\0\0\x04\x08\x01\x08\x01", b"text"]
)
def test_other_bytes_are_left_alone(head):
    assert not recognise(head, Path("m.index"))
