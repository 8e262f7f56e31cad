from pathlib import Path

import numpy as np
import pytest
from hostile.wire import TENSORFLOW, checkpoint, constant, node, number, saved_model, text

from difflens.core.errors import CorruptFile
from difflens.models.formats import open_model
from difflens.models.formats.saved_model import recognise

FIXTURES = Path(__file__).parents[2] / "fixtures" / "tensorflow"
GRAPH = node("v", "VarHandleOp")


def sample(path: Path, tensors):
    """Write a graph and its folder of variables by hand; None for dtypes TensorFlow lacks."""
    if any(dtype not in TENSORFLOW for dtype, _, _ in tensors.values()):
        return None
    index, data = checkpoint(tensors)
    folder = path.parent / "variables"
    folder.mkdir(exist_ok=True)
    (folder / "variables.index").write_bytes(index)
    (folder / "variables.data-00000-of-00001").write_bytes(data)
    path.write_bytes(saved_model(GRAPH))
    return path


def whole(source, name: str) -> bytes:
    buffer = bytearray(source.tensors[name].size_bytes)
    assert len(buffer) == source.read_into(name, 0, len(buffer), memoryview(buffer))
    return bytes(buffer)


@pytest.mark.parametrize("folder", ["saved_model", "keras_saved_model"])
def test_the_variables_are_what_tensorflow_read_back(folder):
    expected = np.load(FIXTURES / folder / "expected.npz")

    source = open_model(FIXTURES / folder)

    for key in expected.files:
        name = key.removesuffix("/.ATTRIBUTES/VARIABLE_VALUE")
        assert expected[key].tobytes() == whole(source, name)
    assert source.metadata["saved_model.tags"] == "serve"
    assert "serving_default(" in source.metadata["saved_model.signatures"]
    assert "MatMul" in source.metadata["saved_model.operators"]
    assert source.warnings == []
    source.verify()
    source.confirm()
    source.close()


def test_signatures_are_told_with_their_types():
    source = open_model(FIXTURES / "saved_model" / "saved_model.pb")

    said = "serving_default(x F32 [?, 3]) -> (output_0 F32 [?, 4])"
    assert said in source.metadata["saved_model.signatures"]
    assert source.format == "saved-model"
    source.close()


def test_constants_are_the_tensors_where_there_are_no_variables(tmp_path):
    path = tmp_path / "saved_model.pb"
    path.write_bytes(saved_model(constant("w", 1, (2,), text(4, b"12345678"))))

    source = open_model(path)

    assert whole(source, "w") == b"12345678"
    source.verify()
    source.close()


def test_many_constants_beside_variables_are_told(tmp_path):
    path = sample(tmp_path / "saved_model.pb", {"w": ("U8", (1,), b"x")})
    path.write_bytes(saved_model(constant("big", 1, (2**19,), b"") + GRAPH))

    source = open_model(path)

    assert list(source.tensors) == ["w"]
    assert "1 constants of 2097152 bytes" in source.warnings[0]
    source.close()


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (saved_model(GRAPH), "variables.index is not there"),
        (4 * number(1, 1), "no graph"),
        (number(1, 2) + saved_model()[2:], "schema version is 2"),
    ],
)
def test_a_model_without_its_parts_is_refused(data, word, tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(data)

    with pytest.raises(CorruptFile, match=word):
        open_model(tmp_path)


@pytest.mark.parametrize(
    "head", [b"", b"\x08\x01\x12", b"\x08\x01\x12\x05hello", b"\x08\x08\x12\x05onnxx", bytes(64)]
)
def test_other_bytes_are_left_alone(head):
    assert not recognise(head, Path("saved_model.pb"))
