from pathlib import Path

import numpy as np
import pytest
from hostile.wire import TENSORFLOW, constant, node, number, text

from difflens.core.errors import CorruptFile, LimitExceeded
from difflens.models.formats import open_model
from difflens.models.formats.frozen_graph import recognise

FIXTURES = Path(__file__).parents[2] / "fixtures" / "tensorflow" / "frozen_graph"
END = text(4, number(1, 1987))


def sample(path: Path, tensors):
    """Write a graph of constants by hand; None for dtypes TensorFlow lacks."""
    if any(dtype not in TENSORFLOW for dtype, _, _ in tensors.values()):
        return None
    nodes = (
        constant(name, TENSORFLOW[dtype], shape, text(4, data))
        for name, (dtype, shape, data) in tensors.items()
    )
    path.write_bytes(b"".join(nodes) + END)
    return path


def whole(source, name: str) -> bytes:
    buffer = bytearray(source.tensors[name].size_bytes)
    assert len(buffer) == source.read_into(name, 0, len(buffer), memoryview(buffer))
    return bytes(buffer)


def opened(tmp_path, data: bytes):
    path = tmp_path / "m.pb"
    path.write_bytes(data)
    return open_model(path)


def test_constants_of_every_type_equal_what_tensorflow_put_in():
    expected = np.load(FIXTURES / "expected.npz")

    source = open_model(FIXTURES / "constants.pb")

    assert set(source.tensors) == set(expected.files)
    for name in expected.files:
        array, info = expected[name], source.tensors[name]
        assert array.shape == info.shape[: array.ndim]
        assert array.tobytes() == whole(source, name)
    assert source.warnings == ["not read, because of what they hold: 'words (STRING)'"]
    source.close()


def test_a_frozen_model_holds_its_weights_as_constants():
    source = open_model(FIXTURES / "frozen.pb")

    assert np.arange(12, dtype="<f4").tobytes() == whole(source, "matmul/ReadVariableOp/resource")
    assert source.metadata["graph.inputs"] == "x F32 [?, 3]"
    assert "MatMul 1" in source.metadata["graph.operators"]
    assert source.format == "frozen-graph"
    source.close()


@pytest.mark.parametrize(
    ("values", "plain"),
    [
        (b"", [0, 0, 0, 0]),
        (text(5, np.float32(2).tobytes()), [2, 2, 2, 2]),
        (text(5, np.array([1, 3], "<f4").tobytes()), [1, 3, 3, 3]),
        (b"\x2d" + np.float32(5).tobytes() + b"\x2d" + np.float32(6).tobytes(), [5, 6, 6, 6]),
    ],
)
def test_the_last_value_stands_for_the_rest(values, plain, tmp_path):
    source = opened(tmp_path, constant("w", 1, (4,), values) + END)
    plain = np.array(plain, "<f4").tobytes()

    assert plain == whole(source, "w")
    for start in range(16):
        part = bytearray(16 - start)
        source.read_into("w", start, 16, memoryview(part))
        assert plain[start:] == bytes(part)
    source.close()


def test_functions_of_the_library_are_walked(tmp_path):
    inner = constant("k", 3, (1,), number(7, 9))
    function = text(1, text(1, "f")) + text(3, inner[2:])
    data = node("x", "Placeholder") + text(2, text(1, function)) + END

    source = opened(tmp_path, data)

    assert np.int32(9).tobytes() == whole(source, "f/k")
    source.close()


def test_a_graph_without_a_version_is_read_with_a_warning(tmp_path):
    source = opened(tmp_path, constant("w", 3, (1,), number(7, 9)))

    assert source.warnings == ["the graph names no version, its end may be missing"]
    source.close()


@pytest.mark.parametrize(
    ("data", "error", "word"),
    [
        (constant("w", 1, (4,), text(4, bytes(15))), CorruptFile, "takes 16 bytes"),
        (constant("w", 1, (1,), text(5, bytes(8))), CorruptFile, "takes 4 bytes"),
        (constant("w", 1, (1,), text(5, bytes(4)) + text(4, bytes(4))), CorruptFile, "twice"),
        (constant("w", 1, (1,), number(7, 1)), CorruptFile, "another type"),
        (constant("w", 1, (-1,), b""), CorruptFile, "whole sizes"),
        (constant("w", 1, (2**62, 4), b""), CorruptFile, "overflow"),
        (constant("w", 1, (1,) * 100, b""), LimitExceeded, "rank"),
        (constant("w", 1, (2**40,), text(5, bytes(4))), LimitExceeded, "stand for"),
        (constant("w", 3, (1,), b"") * 2, CorruptFile, "twice"),
    ],
)
def test_a_constant_that_contradicts_itself_is_refused(data, error, word, tmp_path):
    with pytest.raises(error, match=word):
        opened(tmp_path, data + END)


@pytest.mark.parametrize(
    "head", [b"", b"\x0a", b"\x0a\x05\x0a\x03abc", b"\x0a\x0b\x0a\x03abc\x15\0\0\0\0", bytes(64),
             b"\x0a\x0a\x0a\x03abc\x12\x03rel", b"text that is long enough"]
)  # fmt: skip
def test_other_bytes_are_left_alone(head):
    assert not recognise(head, Path("m.pb"))
