import subprocess
import sys

import pytest
from models.formats.test_safetensors import sample

from difflens.core.errors import UnknownFormat, UnknownName, UnreadableFile
from difflens.core.protocols import TensorSource
from difflens.models.formats import open_model, readers, source

A = {"a": ("U8", (2,), b"aa")}


def test_what_is_opened_keeps_the_contract(tmp_path):
    model = open_model(str(sample(tmp_path / "m.safetensors", A)))

    assert isinstance(model, TensorSource)
    model.close()


def test_an_unknown_format_is_named_by_its_first_bytes(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(b"\x7fELF" + bytes(60))

    with pytest.raises(UnknownFormat, match="it looks like an ELF program") as caught:
        open_model(path)
    assert "difflens list formats" in caught.value.hint

    path.write_bytes(bytes(range(1, 60)))
    with pytest.raises(UnknownFormat, match="it begins with 01 02 03 04 05 06 07 08"):
        open_model(path)


def test_a_reader_can_be_forced_by_name(tmp_path):
    open_model(sample(tmp_path / "m", A), format="safetensors").close()
    with pytest.raises(UnknownName, match="no format is called 'pickle'"):
        open_model(sample(tmp_path / "m", A), format="pickle")


def test_no_path_is_not_the_current_folder():
    with pytest.raises(UnreadableFile, match="empty"):
        open_model("")


def test_our_own_readers_are_those_the_registry_lists():
    assert [entry.name for entry in readers()] == [entry.name for entry in source]


def test_opening_imports_no_numpy_no_pickle_and_looks_for_no_strangers(tmp_path):
    sample(tmp_path / "model.safetensors", A)
    code = (
        "import sys; from difflens.models.formats import open_model; "
        f"open_model({str(tmp_path)!r}); open_model({str(tmp_path / 'model.safetensors')!r}); "
        "print({'numpy', 'pickle', 'torch', 'importlib.metadata'} & set(sys.modules))"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=_environment()
    ).stdout

    assert output.strip() == "set()"


def _environment() -> dict[str, str]:
    return {"PYTHONPATH": ":".join(filter(None, sys.path))}
