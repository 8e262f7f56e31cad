import json
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hostile.files import many
from hypothesis import given
from hypothesis import strategies as st
from lanes import examples
from safetensors import deserialize
from safetensors.numpy import save

from difflens.core.dtypes import BITS
from difflens.core.errors import CorruptFile, DifflensError, UnknownName
from difflens.models.formats import open_model
from difflens.models.formats.safetensors import Header, _parse_any, _parse_usual

NUMPY = {
    "BOOL": np.bool_, "U8": np.uint8, "I8": np.int8, "U16": np.uint16, "I16": np.int16,
    "U32": np.uint32, "I32": np.int32, "U64": np.uint64, "I64": np.int64,
    "F16": np.float16, "F32": np.float32, "F64": np.float64, "C64": np.complex64,
    "BF16": ml_dtypes.bfloat16, "F8_E4M3": ml_dtypes.float8_e4m3fn,
    "F8_E5M2": ml_dtypes.float8_e5m2,
}  # fmt: skip


def sample(path: Path, tensors: dict[str, tuple[str, tuple[int, ...], bytes]]) -> Path:
    """Write a file by hand: name -> dtype, shape, encoded bytes."""
    entries, place = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        offsets = [place, place + len(data)]
        entries[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": offsets}
        place += len(data)
    header = json.dumps(entries).encode()
    data = b"".join(data for _, _, data in tensors.values())
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)
    return path


def whole(source, name: str) -> bytes:
    buffer = bytearray(source.tensors[name].size_bytes)
    source.read_into(name, 0, len(buffer), memoryview(buffer))
    return bytes(buffer)


@pytest.mark.parametrize("dtype", NUMPY)
def test_it_reads_what_the_reference_library_wrote(dtype, tmp_path):
    array = np.arange(24).reshape(2, 3, 4).astype(NUMPY[dtype])
    path = tmp_path / "model.safetensors"
    path.write_bytes(
        save({"w": array, "scalar": np.array(array[0, 0, 1])}, metadata={"made": "here"})
    )

    model = open_model(path)

    assert (dtype, (2, 3, 4)) == (model.tensors["w"].dtype, model.tensors["w"].shape)
    assert array.tobytes() == whole(model, "w")
    assert model.tensors["scalar"].shape == ()
    assert model.metadata == {"made": "here"}
    assert model.format == "safetensors"
    model.close()


@pytest.mark.parametrize("dtype", BITS)
def test_every_dtype_opens_with_its_size(dtype, tmp_path):
    data = bytes(range(BITS[dtype]))
    model = open_model(sample(tmp_path / "m.safetensors", {"w": (dtype, (2, 4), data)}))

    assert data == whole(model, "w")
    model.close()


shapes = st.lists(st.integers(0, 4), max_size=4).map(tuple)


@examples(60)
@given(
    st.dictionaries(st.text(max_size=8).filter(lambda n: n != "__metadata__"), shapes, max_size=5)
)
def test_any_valid_file_round_trips(tmp_path_factory, named):
    arrays = {name: np.full(shape, i, np.uint8) for i, (name, shape) in enumerate(named.items())}
    path = tmp_path_factory.mktemp("m") / "model.safetensors"
    path.write_bytes(save(arrays))

    model = open_model(path)

    assert {name: array.tobytes() for name, array in arrays.items()} == {
        name: whole(model, name) for name in model.tensors
    }
    model.close()


def test_a_part_of_a_tensor_is_read_from_its_place(tmp_path):
    path = sample(
        tmp_path / "m.safetensors", {"a": ("U8", (2,), b"xy"), "b": ("U8", (4,), b"0123")}
    )
    model = open_model(path)
    buffer = bytearray(4)

    assert model.read_into("b", 1, 3, memoryview(buffer)) == 2
    assert bytes(buffer) == b"12\0\0"
    model.close()


@pytest.mark.parametrize(("start", "stop"), [(-1, 2), (0, 5), (3, 2), (0, 4)])
def test_bytes_beyond_the_tensor_or_the_buffer_are_not_read(start, stop, tmp_path):
    path = sample(tmp_path / "m.safetensors", {"a": ("U8", (4,), b"0123"), "b": ("U8", (1,), b"x")})
    model = open_model(path)

    with pytest.raises(ValueError, match="cannot read"):
        model.read_into("a", start, stop, memoryview(bytearray(3)))
    model.close()


def test_a_tensor_that_is_not_there_is_answered_with_the_nearest(tmp_path):
    model = open_model(sample(tmp_path / "m.safetensors", {"weight": ("U8", (1,), b"x")}))

    with pytest.raises(UnknownName) as caught:
        model.read_into("wieght", 0, 1, memoryview(bytearray(1)))
    assert caught.value.hint == "did you mean weight?"
    model.close()


def test_a_file_cut_at_any_byte_is_refused(tmp_path):
    path = sample(
        tmp_path / "m.safetensors", {"a": ("F32", (2,), bytes(8)), "b": ("U8", (3,), b"xyz")}
    )
    good = path.read_bytes()
    for length in range(len(good)):
        path.write_bytes(good[:length])
        with pytest.raises(CorruptFile):
            open_model(path)


def test_a_message_names_the_tensor_and_both_sizes(tmp_path):
    path = sample(tmp_path / "m.safetensors", {"x\x1b": ("F32", (2,), bytes(8))})
    good = path.read_bytes()
    path.write_bytes(good[:-3])

    with pytest.raises(CorruptFile) as caught:
        open_model(path)
    expected = f"tensor 'x\\x1b' ends at byte {len(good)}, the file has {len(good) - 3}"
    assert expected == caught.value.reason
    assert caught.value.hint == "the download may be incomplete"


def test_tensors_come_in_the_order_of_their_bytes(tmp_path):
    path = sample(tmp_path / "m.safetensors", {"b": ("U8", (1,), b"x"), "a": ("U8", (1,), b"y")})
    header = json.loads(path.read_bytes()[8:-2])
    text = json.dumps(dict(sorted(header.items()))).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"xy")

    model = open_model(path)

    assert list(model.tensors) == ["b", "a"]
    assert whole(model, "a") == b"y"
    model.close()


def test_it_is_recognised_by_content_whatever_its_name(tmp_path):
    model = open_model(sample(tmp_path / "weights.bin", {"a": ("U8", (1,), b"x")}))

    assert model.format == "safetensors"
    model.close()


def test_limits_can_be_raised_and_lowered(tmp_path):
    path = sample(tmp_path / "m.safetensors", {"a": ("U8", (1,) * 70, b"x")})

    with pytest.raises(DifflensError, match="rank 70, the limit is 64"):
        open_model(path)
    open_model(path, limits={"rank": 70}).close()
    with pytest.raises(DifflensError, match="header too large"):
        open_model(path, limits={"rank": 70, "json_header": 20})


mutations = st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=6)


@examples(400)
@given(mutations, st.integers(0, 3))
def test_a_damaged_file_opens_or_is_refused_and_nothing_else(tmp_path_factory, changes, kind):
    path = tmp_path_factory.getbasetemp() / "damaged.safetensors"
    tensors = {
        "a": ("F32", (2,), bytes(8)),
        "b": ("BF16", (1, 3), b"xyzxyz"),
        "c": ("U8", (0,), b""),
    }
    content = bytearray(sample(path, tensors).read_bytes())
    for where, value in changes:
        place = where % len(content)
        match kind:
            case 0:
                content[place] = value
            case 1:
                content[place] = b'{}[]":,0123456789.-eE\\u'[value % 23]
            case 2:
                content.insert(place, value)
            case _:
                del content[place : place + value % 5]
    path.write_bytes(content)
    try:
        model = open_model(path)
    except DifflensError as error:
        assert str(error).isprintable()  # noqa: PT017  either way is right
    else:
        reference = {name: bytes(each["data"]) for name, each in deserialize(bytes(content))}
        assert reference == {name: whole(model, name) for name in model.tensors}
        model.close()


FIRST = b'{"dtype":"U8","shape":[1],"data_offsets":[0,1]}'
SECOND = b'{"dtype":"U8","shape":[1],"data_offsets":[1,2]}'
LIMITS = {"depth": 64, "rank": 64}


def both_ways(header: bytes) -> tuple[Header | None, Header | None]:
    """Read a header entry by entry, and as one tree; None where a reader does not take it."""
    try:
        strict = _parse_any(header, "m", **LIMITS)
    except DifflensError:
        strict = None
    return _parse_usual(header, "m", **LIMITS), strict


headers = st.dictionaries(
    st.text(st.characters(codec="utf-8", exclude_characters='\\"', min_codepoint=32), max_size=9),
    st.tuples(st.sampled_from(sorted(BITS)), st.lists(st.integers(0, 9), max_size=3)),
    max_size=6,
)


def spelled(
    tensors: dict[str, Any], metadata: dict[str, str] | None, separators: tuple[str, str]
) -> bytes:
    """Write a header as a writer would; dtypes of odd bits take several whole bytes."""
    entries, place = {} if metadata is None else {"__metadata__": metadata}, 0
    for name, (dtype, shape) in tensors.items():
        whole_bytes = [*shape, 4] if BITS[dtype] % 8 else shape
        size = int(np.prod(whole_bytes, dtype=int)) * BITS[dtype] // 8
        offsets = [place, place + size]
        entries[name] = {"dtype": dtype, "shape": whole_bytes, "data_offsets": offsets}
        place += size
    return json.dumps(entries, separators=separators, ensure_ascii=False).encode()


@given(headers, st.none() | st.just({}) | st.just({"format": "pt"}), st.booleans())
def test_the_usual_spelling_is_read_entry_by_entry_to_the_same_end(tensors, metadata, spaced):
    header = spelled(tensors, metadata, (", ", ": ") if spaced else (",", ":"))

    usual, strict = both_ways(header + b"   ")

    assert usual == strict
    assert usual is not None or "__metadata__" in tensors


@examples(600)
@given(headers, st.booleans(), mutations, st.integers(0, 3))
def test_what_is_not_quite_json_is_never_read_entry_by_entry(tensors, described, changes, kind):
    content = bytearray(spelled(tensors, {"k": "v"} if described else None, (",", ":")))
    for where, value in changes[:2]:
        place = where % max(1, len(content))
        some = b'{}[]":,0123456789.- \\eE\0'[value % 24]
        match kind:
            case 0:
                content[place : place + 1] = bytes([some])
            case 1:
                content.insert(place, some)
            case 2:  # an entry twice, a bracket too many
                content[place:place] = content[place : place + value]
            case _:
                del content[place : place + value % 5]
    usual, strict = both_ways(bytes(content))

    assert usual is None or usual == strict


@pytest.mark.parametrize(
    "header",
    [
        b'{"a":%b,"a":%b}' % (FIRST, SECOND),
        b'{"a":%b"b":%b}' % (FIRST, SECOND),
        b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,01]}}',
        b'{"a":{"dtype":"U8","shape":[01],"data_offsets":[0,1]}}',
        b'{"a":{"dtype":"U8","shape":[1,],"data_offsets":[0,1]}}',
        b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},}',
        b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}}',
        b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}',
        b'{"\xff":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}',
        b'{"__metadata__":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}',
        b'{"__metadata__":{"a":1}}',
        b'{"__metadata__":{"a":"1","a":"2"}}',
    ],
)
def test_the_quick_reader_takes_nothing_that_the_strict_one_refuses(header):
    assert both_ways(header) == (None, None)


@pytest.mark.slow
def test_a_million_tensors_open_within_20_seconds_and_1500_megabytes(tmp_path):
    path = many(1_000_000)(tmp_path)
    code = (
        "import resource, time; from difflens.models.formats import open_model; "
        "start = time.monotonic(); "
        f"print(len(open_model({str(path)!r}).tensors), time.monotonic() - start, "
        "resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)"
    )
    environment = {"PYTHONPATH": ":".join(filter(None, sys.path))}
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    ).stdout
    count, seconds, megabytes = map(float, output.split())

    assert count == 1_000_000
    assert seconds < 20
    assert megabytes < 1500
