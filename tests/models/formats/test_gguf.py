import struct
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf import GGUFEndian, GGUFReader, GGUFWriter
from gguf.constants import GGML_QUANT_SIZES
from gguf.constants import GGMLQuantizationType as Kind
from gguf.quants import dequantize, quantize
from hypothesis import given
from hypothesis import strategies as st
from lanes import examples

from difflens.core.errors import CorruptFile, MissingExtra, UnknownName
from difflens.core.records import TensorInfo
from difflens.diffs.story import diff
from difflens.models.formats import open_model
from difflens.models.formats.gguf import gguf
from difflens.models.gguf import blocks as gguf_blocks
from difflens.storage.local import File

NUMPY = {
    "F16": np.float16, "F32": np.float32, "F64": np.float64,
    "I8": np.int8, "I16": np.int16, "I32": np.int32, "I64": np.int64,
}  # fmt: skip
ENCODINGS = {
    number: encoding
    for number in range(64)
    if (encoding := gguf_blocks.block_type(number, big_endian=False))
}
DECODED = [Kind(number) for number, each in ENCODINGS.items() if each.decode]
# The bytes of each block that are 16-bit floats: random ones must not be infinite or NaN.
SCALES = {
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82],
    "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ2_XXS": [0], "IQ2_XS": [0],
    "IQ2_S": [0], "IQ3_XXS": [0], "IQ3_S": [0], "IQ1_S": [0], "IQ4_NL": [0], "IQ4_XS": [0],
    "TQ1_0": [52], "TQ2_0": [64],
}  # fmt: skip


def write(path: Path, tensors, *, keys=None, **options) -> Path:
    """Write with the real library: name -> array, or (kind, array of bytes)."""
    writer = GGUFWriter(path, "llama", **options)
    if keys:
        keys(writer)
    for name, tensor in tensors.items():
        kind, array = tensor if isinstance(tensor, tuple) else (None, tensor)
        writer.add_tensor(name, array, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def sample(path: Path, tensors: dict[str, tuple[str, tuple[int, ...], bytes]]) -> Path | None:
    """Write with the real library; None if GGUF has no such dtype or rank."""
    arrays: dict[str, Any] = {}
    for name, (dtype, shape, data) in tensors.items():
        if dtype not in {*NUMPY, "BF16"} or not 1 <= len(shape) <= 4:
            return None
        if dtype == "BF16":
            bytes_shape = (*shape[:-1], 2 * shape[-1])
            arrays[name] = Kind.BF16, np.frombuffer(data, np.uint8).reshape(bytes_shape)
        else:
            arrays[name] = np.frombuffer(data, NUMPY[dtype]).reshape(shape)
    return write(path, arrays)


def part(source, name: str, start: int, stop: int) -> bytes:
    buffer = bytearray(stop - start)
    assert source.read_into(name, start, stop, memoryview(buffer)) == stop - start
    return bytes(buffer)


def whole(source, name: str) -> bytes:
    return part(source, name, 0, source.tensors[name].size_bytes)


def blocks(kind: Kind, count: int, rows: int = 1) -> np.ndarray:
    """Make random blocks whose scales are finite."""
    size = GGML_QUANT_SIZES[kind][1]
    data = np.random.default_rng(kind).integers(0, 256, (rows * count, size), np.uint8)
    for at in SCALES.get(kind.name, []):
        data[:, at + 1] &= 0xBF  # the exponent of a 16-bit float is then never full
    if kind is Kind.MXFP4:
        data[:, 0] &= 0x7F  # a scale of 8 bits of exponent alone overflows near its end
    if kind is Kind.IQ1_M:
        data[:, 55] &= 0xBF  # its scale is spread over four bytes; these are its upper bits
    return data.reshape(rows, count * size)


@pytest.mark.parametrize("dtype", [*NUMPY, "BF16"])
def test_it_reads_what_the_real_library_reads(dtype, tmp_path):
    size = 2 if dtype == "BF16" else np.dtype(NUMPY[dtype]).itemsize
    data = np.random.default_rng(1).bytes(2 * 3 * 5 * 7 * size)
    path = sample(tmp_path / "m.gguf", {"a": (dtype, (2, 3, 5, 7), data), "b": (dtype, (210,), data)})  # fmt: skip  # noqa: E501
    reader = GGUFReader(path)

    model = open_model(path)

    assert model.format == "gguf"
    assert [each.name for each in reader.tensors] == list(model.tensors)
    for tensor in reader.tensors:
        info = model.tensors[tensor.name]
        assert (dtype, None) == (info.dtype, info.stored)
        assert tuple(reversed(tensor.shape.tolist())) == info.shape
        assert tensor.data.tobytes() == whole(model, tensor.name)
    model.close()


def test_the_sizes_and_the_decoded_types_are_those_of_the_real_library():
    theirs = {kind.value: GGML_QUANT_SIZES[kind] for kind in Kind if kind is not Kind.Q8_1}
    ours = {number: (each.elements, each.size) for number, each in ENCODINGS.items()}

    assert theirs == {number: ours[number] for number in theirs}
    for kind in Kind:
        assert kind is Kind.Q8_1 or kind.name == ENCODINGS[kind].name
        if kind not in DECODED and (kind is Kind.Q8_1 or ENCODINGS[kind].is_opaque):
            with pytest.raises(NotImplementedError):
                dequantize(np.zeros((1, GGML_QUANT_SIZES[kind][1]), np.uint8), kind)


@pytest.mark.parametrize("kind", DECODED, ids=lambda kind: kind.name)
def test_decoded_blocks_equal_the_real_library_bit_for_bit_at_any_range(kind, tmp_path):
    raw = blocks(kind, 5, rows=3)
    expected = dequantize(raw, kind)
    path = write(tmp_path / "m.gguf", {"before": np.ones(3, np.float32), "w": (kind, raw)})

    model = open_model(path)

    info = model.tensors["w"]
    assert ("F32", kind.name, expected.shape) == (info.dtype, info.stored, info.shape)
    assert np.isfinite(expected).all()
    assert expected.tobytes() == whole(model, "w")
    chance = np.random.default_rng(2)
    for _ in range(40):
        start, stop = sorted(chance.integers(0, info.size_bytes + 1, 2).tolist())
        assert expected.tobytes()[start:stop] == part(model, "w", start, stop)
    assert model.warnings == []
    model.close()


@pytest.mark.parametrize("kind", DECODED, ids=lambda kind: kind.name)
def test_tensors_larger_than_a_piece_are_decoded_whole(kind, tmp_path):
    elements = GGML_QUANT_SIZES[kind][0]
    raw = blocks(kind, 2**17 * 3 // elements + 1, rows=1)
    path = write(tmp_path / "m.gguf", {"w": (kind, raw)})

    model = open_model(path)

    assert dequantize(raw, kind).tobytes() == whole(model, "w")
    model.close()


@pytest.mark.parametrize("kind", DECODED, ids=lambda kind: kind.name)
def test_any_bytes_decode_as_in_the_real_library_and_warn_nobody(kind, tmp_path):
    size = GGML_QUANT_SIZES[kind][1]
    raw = np.random.default_rng(3).integers(0, 256, (1, 300 * size), np.uint8)
    with np.errstate(all="ignore"):
        expected = dequantize(raw, kind)

    model = open_model(write(tmp_path / "m.gguf", {"w": (kind, raw)}))
    found = np.frombuffer(whole(model, "w"), np.float32).reshape(expected.shape)

    np.testing.assert_array_equal(expected, found)
    assert np.array_equal(np.signbit(expected), np.signbit(found))
    model.close()


@pytest.mark.parametrize("kind", [Kind.Q4_0, Kind.Q8_0, Kind.Q5_1, Kind.MXFP4])
def test_what_was_quantised_comes_back_with_the_error_of_its_quantisation(kind, tmp_path):
    values = np.random.default_rng(4).normal(size=(4, 64)).astype(np.float32)
    raw = quantize(values, kind)
    model = open_model(write(tmp_path / "m.gguf", {"w": (kind, raw)}))
    found = np.frombuffer(whole(model, "w"), np.float32).reshape(4, 64)

    assert np.array_equal(dequantize(raw, kind), found)
    assert np.linalg.norm(found - values) < 0.2 * np.linalg.norm(values)
    model.close()


@cache
def q4_k() -> tuple[bytes, bytes]:
    raw = blocks(Kind.Q4_K, 40)
    return raw.tobytes(), dequantize(raw, Kind.Q4_K).tobytes()


@examples(60)
@given(st.lists(st.integers(0, 40 * 1024), max_size=6))
def test_parts_put_together_are_the_whole_wherever_it_is_cut(tmp_path_factory, cuts):
    raw, expected = q4_k()
    path = tmp_path_factory.getbasetemp() / "parts.gguf"
    if not path.exists():
        write(path, {"w": (Kind.Q4_K, np.frombuffer(raw, np.uint8).reshape(1, -1))})
    model = open_model(path)
    places = [0, *sorted(cuts), len(expected)]

    assert expected == b"".join(part(model, "w", start, stop) for start, stop in pairwise(places))
    model.close()


def test_several_threads_read_one_tensor_at_once(tmp_path):
    raw = blocks(Kind.Q3_K, 4000)
    expected = dequantize(raw, Kind.Q3_K).tobytes()
    model = open_model(write(tmp_path / "m.gguf", {"w": (Kind.Q3_K, raw)}))
    ranges = [(at, min(at + 100_001, len(expected))) for at in range(0, len(expected), 100_001)]

    with ThreadPoolExecutor(8) as pool:
        parts = list(pool.map(lambda each: part(model, "w", *each), ranges * 3))

    assert expected * 3 == b"".join(parts)
    model.close()


@pytest.mark.parametrize("kind", [Kind.Q4_K, Kind.Q5_K, Kind.Q3_K])
def test_decoding_holds_pieces_and_never_a_tensor(kind, tmp_path):
    model = open_model(write(tmp_path / "m.gguf", {"w": (kind, blocks(kind, 64 * 1024))}))
    buffer = memoryview(bytearray(64 * 1024 * 1024))
    model.read_into("w", 0, 1024, buffer)  # what is imported is held for good

    tracemalloc.start()
    model.read_into("w", 0, len(buffer), buffer)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert most < 12 * 1024 * 1024
    model.close()


class Counting(File):
    reads: list[tuple[int, int]]

    def read_into(self, start: int, buffer: memoryview) -> int:
        self.reads = [*getattr(self, "reads", []), (start, len(buffer))]
        return super().read_into(start, buffer)


def test_plain_tensors_are_read_in_one_go_and_opening_reads_the_header_alone(tmp_path):
    path = write(tmp_path / "m.gguf", {"w": np.zeros(10**6, np.float16)})
    file = Counting(path)
    model = gguf(file)
    assert sum(size for _, size in file.reads) < 50_000
    file.reads = []

    part(model, "w", 7, 1_000_007)

    assert [size for _, size in file.reads] == [1_000_000]
    model.close()


def test_it_says_where_a_tensor_lies_unless_it_must_be_decoded(tmp_path):
    array = np.arange(8, dtype=np.float32)
    tensors = {"plain": array, "blocks": (Kind.Q8_0, blocks(Kind.Q8_0, 1))}
    path = write(tmp_path / "m.gguf", tensors)
    model = open_model(path)

    file, begin = model.encoding("plain").place()

    assert file.path == path
    assert file.read(begin, begin + 32) == array.tobytes()
    assert not hasattr(model.encoding("blocks"), "place")
    model.close()


def keys(writer: GGUFWriter) -> None:
    writer.add_name("Größe")
    writer.add_file_type(7)
    writer.add_uint8("x.u8", 255)
    writer.add_int8("x.i8", -128)
    writer.add_uint16("x.u16", 65535)
    writer.add_int16("x.i16", -5)
    writer.add_uint32("x.u32", 2**32 - 1)
    writer.add_int32("x.i32", -(2**31))
    writer.add_uint64("x.u64", 2**64 - 1)
    writer.add_int64("x.i64", -(2**63))
    writer.add_float32("x.f32", 1e-5)
    writer.add_float64("x.f64", 0.1)
    writer.add_bool("x.bool", val=True)
    writer.add_array("x.short", [1, 2, 3])
    writer.add_array("x.words", ["a", 'b"', "ü"])
    writer.add_array("x.truths", [True, False])
    writer.add_token_list([f"token {i}" for i in range(1000)])
    writer.add_token_scores([0.5] * 1000)
    writer.add_chat_template("{{ messages[0] }}\n")


def test_all_metadata_is_text_and_long_arrays_are_their_length(tmp_path):
    model = open_model(write(tmp_path / "m.gguf", {}, keys=keys))

    assert model.metadata == {
        "general.architecture": "llama",
        "general.name": "Größe",
        "general.file_type": "7",
        "x.u8": "255",
        "x.i8": "-128",
        "x.u16": "65535",
        "x.i16": "-5",
        "x.u32": "4294967295",
        "x.i32": "-2147483648",
        "x.u64": "18446744073709551615",
        "x.i64": "-9223372036854775808",
        "x.f32": "1e-05",
        "x.f64": "0.1",
        "x.bool": "true",
        "x.short": "[1, 2, 3]",
        "x.words": '["a", "b\\"", "ü"]',
        "x.truths": "[true, false]",
        "tokenizer.ggml.tokens": "[1000 strings]",
        "tokenizer.ggml.scores": "[1000 float32]",
        "tokenizer.chat_template": "{{ messages[0] }}\n",
    }
    assert list(model.tensors) == []
    model.close()


@examples(200)
@given(st.floats(width=32))
def test_a_32_bit_float_is_shown_so_that_it_can_be_read_back(tmp_path_factory, number):
    path = tmp_path_factory.getbasetemp() / "float.gguf"
    write(path, {}, keys=lambda writer: writer.add_float32("x", number))

    model = open_model(path)

    shown = float(model.metadata["x"])
    assert struct.pack("<f", shown) == struct.pack("<f", number) or number != number  # noqa: PLR0124
    model.close()


ARRAYS = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.arange(5, dtype=np.int64)}


def test_version_2_is_read_as_version_3(tmp_path):
    path = write(tmp_path / "m.gguf", ARRAYS, keys=keys)
    third = open_model(path)
    data = bytearray(path.read_bytes())
    data[4] = 2
    other = tmp_path / "second.gguf"
    other.write_bytes(data)

    second = open_model(other)

    assert (third.metadata, third.tensors) == (second.metadata, second.tensors)
    assert GGUFReader(other).fields["GGUF.version"].contents() == 2
    assert [whole(third, name) for name in third.tensors] == [
        whole(second, name) for name in ARRAYS
    ]
    second.close()
    third.close()


@pytest.mark.parametrize("order", ["<", ">"])
def test_version_1_has_lengths_of_32_bits(order, tmp_path):
    def word(value: bytes) -> bytes:
        return struct.pack(f"{order}I", len(value)) + value

    data = b"GGUF" + struct.pack(f"{order}III", 1, 1, 3)
    data += word(b"name") + struct.pack(f"{order}I", 8) + word(b"old")
    data += word(b"words") + struct.pack(f"{order}III", 9, 8, 300) + word(b"ab") * 300
    data += word(b"n") + struct.pack(f"{order}IIIi", 9, 5, 1, -3)
    data += word(b"w") + struct.pack(f"{order}IIIIQ", 2, 3, 2, 0, 0)
    data += bytes(-len(data) % 32) + struct.pack(f"{order}6f", *range(6))
    path = tmp_path / "m.gguf"
    path.write_bytes(data)

    model = open_model(path)

    assert model.metadata == {"name": "old", "words": "[300 strings]", "n": "[-3]"}
    assert model.tensors["w"].shape == (2, 3)
    assert whole(model, "w") == struct.pack("<6f", *range(6))
    model.close()


@pytest.mark.parametrize("dtype", [*NUMPY, "BF16"])
def test_big_endian_numbers_are_swapped(dtype, tmp_path):
    if dtype == "BF16":
        array = np.arange(35, dtype=np.uint16).reshape(5, 7)
        tensor = Kind.BF16, array
    else:
        tensor = array = np.arange(35).reshape(5, 7).astype(NUMPY[dtype])
    path = write(tmp_path / "m.gguf", {"w": tensor}, keys=keys, endianess=GGUFEndian.BIG)
    little = open_model(write(tmp_path / "little.gguf", {}, keys=keys))

    model = open_model(path)

    assert array.tobytes() == whole(model, "w")
    assert array.tobytes()[3:17] == part(model, "w", 3, 17)
    assert model.tensors["w"].dtype == dtype
    assert model.tensors["w"].shape == (5, 7)
    assert model.tensors["w"].stored == (None if dtype == "I8" else f"{dtype} big-endian")
    assert model.metadata == little.metadata
    model.close()
    little.close()


@pytest.mark.parametrize("kind", DECODED, ids=lambda kind: kind.name)
def test_big_endian_blocks_are_those_of_the_real_converter_or_bytes(kind, tmp_path):
    converter = pytest.importorskip("gguf.scripts.gguf_convert_endian")
    raw = blocks(kind, 3)
    swapped, size = raw.copy(), GGML_QUANT_SIZES[kind][1]
    swap = converter.byteswap_tensors.get(kind)
    for at in range(0, swapped.size if swap else 0, size):
        swap(type("Tensor", (), {"data": swapped[0]}), at)
    path = write(tmp_path / "m.gguf", {"w": (kind, swapped)}, endianess=GGUFEndian.BIG)

    model = open_model(path)

    if swap:
        assert dequantize(raw, kind).tobytes() == whole(model, "w")
        assert model.warnings == []
    else:
        assert swapped.tobytes() == whole(model, "w")
        assert f"big-endian file's {kind.name} blocks cannot be decoded" in model.warnings[0]
    model.close()


def test_blocks_nobody_decodes_are_compared_as_bytes_and_told_once(tmp_path):
    raw = blocks(Kind.Q8_K, 2, rows=3)
    path = write(tmp_path / "m.gguf", {"a": (Kind.Q8_K, raw), "b": (Kind.Q8_K, raw)})

    model = open_model(path)

    assert model.warnings == ["Q8_K blocks cannot be decoded, they are compared as bytes: 'a', 'b'"]
    assert TensorInfo("a", "U8", (3, 584), "Q8_K") == model.tensors["a"]
    assert raw.tobytes() == whole(model, "a") == whole(model, "b")
    model.close()


def test_without_the_package_files_open_and_only_its_blocks_ask_for_it(tmp_path, monkeypatch):
    tensors = {
        "rare": (Kind.Q3_K, blocks(Kind.Q3_K, 1)),
        "common": (Kind.Q4_K, blocks(Kind.Q4_K, 1)),
        "plain": np.ones(3, np.float32),
    }
    path = write(tmp_path / "m.gguf", tensors)
    for name in ("gguf", "gguf.quants", "gguf.constants"):
        monkeypatch.setitem(sys.modules, name, None)

    model = open_model(path)

    assert [each.stored for each in model.tensors.values()] == ["Q3_K", "Q4_K", None]
    assert len(whole(model, "common")) == 1024
    assert len(whole(model, "plain")) == 12
    with pytest.raises(MissingExtra) as caught:
        whole(model, "rare")
    assert str(caught.value) == "decoding Q3_K needs an extra: pip install 'difflens[gguf]'"
    model.close()


def test_a_package_too_old_for_a_type_is_told(tmp_path, monkeypatch):
    path = write(tmp_path / "m.gguf", {"w": (Kind.NVFP4, blocks(Kind.NVFP4, 1))})
    monkeypatch.setattr("gguf.constants.GGMLQuantizationType", {})
    model = open_model(path)

    with pytest.raises(MissingExtra, match=r"NVFP4 with gguf 0\.19 or later"):
        whole(model, "w")
    model.close()


@pytest.mark.parametrize("alignment", [8, 64, 4096])
def test_another_alignment_moves_the_data(alignment, tmp_path):
    path = write(
        tmp_path / "m.gguf", ARRAYS, keys=lambda writer: writer.add_custom_alignment(alignment)
    )
    model = open_model(path)

    assert model.metadata["general.alignment"] == str(alignment)
    assert [array.tobytes() for array in ARRAYS.values()] == [whole(model, name) for name in ARRAYS]
    model.close()


def split(folder: Path, tensors=None, **options) -> list[Path]:
    names = tensors or {f"t{i}": np.full(5, i, np.float32) for i in range(5)}
    write(folder / "model.gguf", names, keys=keys, split_max_tensors=2, **options)
    return sorted(folder.glob("*.gguf"))


def test_a_split_model_is_opened_whole_by_its_first_file(tmp_path):
    paths = split(tmp_path)
    together = write(tmp_path / "one.gguf", {f"t{i}": np.full(5, i, np.float32) for i in range(5)}, keys=keys)  # fmt: skip  # noqa: E501

    model, other = open_model(paths[0]), open_model(together)

    assert len(paths) == 3
    assert model.format == "gguf"
    assert dict(model.tensors) == dict(other.tensors)
    assert dict(model.metadata) == dict(other.metadata)
    assert model.warnings == []
    assert [whole(other, name) for name in other.tensors] == [
        whole(model, f"t{i}") for i in range(5)
    ]
    model.confirm()
    model.close()
    other.close()


def test_a_later_part_of_a_split_model_names_the_first(tmp_path):
    paths = split(tmp_path)

    with pytest.raises(CorruptFile, match="part 2 of 3") as caught:
        open_model(paths[1])
    assert caught.value.hint == "name the first part: model-00001-of-00003.gguf"


def test_parts_that_were_swapped_or_lack_tensors_are_refused(tmp_path):
    paths = split(tmp_path)
    second, third = paths[1].read_bytes(), paths[2].read_bytes()
    paths[1].write_bytes(third)
    paths[2].write_bytes(second)
    with pytest.raises(CorruptFile, match=r"00002-of-00003\.gguf' calls itself part 3 of 3"):
        open_model(paths[0])

    (tmp_path / "other").mkdir()
    fewer = {f"t{i}": np.full(5, i, np.float32) for i in range(6)}
    paths[1].write_bytes(second)
    paths[2].write_bytes(split(tmp_path / "other", fewer)[2].read_bytes())
    with pytest.raises(CorruptFile, match=r"hold 6 tensors, split\.tensors\.count is 5"):
        open_model(paths[0])


def test_a_renamed_part_cannot_find_the_others(tmp_path):
    path = split(tmp_path)[0].rename(tmp_path / "mine.gguf")

    with pytest.raises(CorruptFile, match="one of 3 files"):
        open_model(path)


def test_a_hole_between_tensors_is_told(tmp_path):
    path = write(tmp_path / "m.gguf", ARRAYS)
    data = bytearray(path.read_bytes())
    at = data.index(struct.pack("<IQI", 1, 5, Kind.I64)) + 16
    assert struct.unpack_from("<Q", data, at) == (32,)
    struct.pack_into("<Q", data, at, 64)
    path.write_bytes(data[:-64] + bytes(32) + data[-64:])

    model = open_model(path)

    assert model.warnings == ["32 bytes between the tensors belong to none of them"]
    assert [array.tobytes() for array in ARRAYS.values()] == [whole(model, name) for name in ARRAYS]
    model.close()


def test_an_unknown_tensor_is_answered_with_the_nearest(tmp_path):
    model = open_model(write(tmp_path / "m.gguf", {"weight": np.ones(2, np.float32)}))

    with pytest.raises(UnknownName) as caught:
        whole(model, "weight") and model.read_into("wieght", 0, 1, memoryview(bytearray(1)))
    assert caught.value.hint == "did you mean weight?"
    model.close()


@pytest.mark.parametrize(("start", "stop"), [(-1, 2), (0, 1025), (3, 2), (0, 1024)])
def test_bytes_beyond_the_tensor_or_the_buffer_are_not_read(start, stop, tmp_path):
    model = open_model(write(tmp_path / "m.gguf", {"w": (Kind.Q4_K, blocks(Kind.Q4_K, 1))}))

    with pytest.raises(ValueError, match="cannot read"):
        model.read_into("w", start, stop, memoryview(bytearray(100)))
    model.close()


def test_the_same_tensors_in_safetensors_and_gguf_are_identical(tmp_path):
    from safetensors.numpy import save_file

    arrays = {"w": np.random.default_rng(5).normal(size=(8, 16)).astype(np.float16)}
    save_file(arrays, tmp_path / "m.safetensors")

    result = diff(tmp_path / "m.safetensors", write(tmp_path / "m.gguf", arrays))

    assert [delta.kind for delta in result.deltas] == ["identical"]


def test_a_quantised_model_is_compared_by_its_values(tmp_path):
    values = np.random.default_rng(6).normal(size=(16, 512)).astype(np.float32)
    left = write(tmp_path / "left.gguf", {"w": values})
    right = write(tmp_path / "right.gguf", {"w": (Kind.Q8_0, quantize(values, Kind.Q8_0))})

    (delta,) = diff(left, right).deltas

    assert delta.kind == "changed"
    assert 0.001 < delta.relative_l2 < 0.01
