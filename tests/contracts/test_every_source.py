"""What is true of every format: the laws of `difflens.testing`, on a sample of its own test."""

from pathlib import Path

import pytest
from contracts.plugins import TESTS, load

from difflens.core.errors import CorruptFile
from difflens.models.formats import source
from difflens.testing import SOURCE_LAWS, check_source

ENTRIES = list(source)


def sample_of(name: str):
    path = TESTS / "models" / "formats" / f"test_{name.replace('-', '_')}.py"
    assert path.is_file(), f"{name} has no test: write {path.relative_to(TESTS.parent)}"
    module = load(path, f"sample_of_{name}")
    assert hasattr(module, "sample"), f"{path.name} has no sample(path, tensors)"
    return module.sample


@pytest.mark.parametrize("law", SOURCE_LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_every_source_keeps_the_contract(entry, law):
    check_source(entry.plugin, sample_of(entry.name), laws=(law,))


class Broken:
    """A source that does everything wrong a law looks for."""

    format = "broken"
    metadata: dict[str, str] = {}  # noqa: RUF012

    def __init__(self, file):
        from difflens.core.records import TensorInfo

        self.warnings = []
        self._bytes = file.read(0, file.size)  # the whole file, and the descriptor is kept
        self._file = file
        self.tensors = {"data": TensorInfo("weights", "F64", (8,))}
        Path(str(file.path) + ".cache").write_text("seen")

    def read_into(self, name, start, stop, buffer):
        del name
        buffer[:] = bytes(len(buffer))
        return stop - start

    def confirm(self):
        pass

    def close(self):
        pass


def sample(path, tensors):
    ((dtype, _, data),) = tensors.values()
    if dtype != "F32":
        return None
    path.write_bytes(b"BROK" + data)
    return path


@pytest.fixture
def broken():
    def opener(file):
        return Broken(file)

    opener.__module__ = "somewhere.broken"
    source(recognise=lambda head, _path: head[:4] in (b"BROK", b"GGUF"))(opener)
    yield opener
    del source._entries["broken"]


@pytest.mark.parametrize("law", SOURCE_LAWS, ids=lambda law: law.__name__)
def test_a_source_that_breaks_every_law_is_caught_by_each(broken, law):
    with pytest.raises(AssertionError):
        check_source(broken, sample, laws=(law,))


def test_a_sample_that_writes_nothing_proves_nothing():
    entry = source["safetensors"]

    with pytest.raises(AssertionError, match="could write no dtype"):
        check_source(entry.plugin, lambda _path, _tensors: None)


def test_what_is_not_registered_is_no_plug_in():
    with pytest.raises(AssertionError, match="is not a registered format"):
        check_source(lambda _file: None, sample)


def test_a_refusal_is_one_of_our_errors(tmp_path):
    """What the laws count as refused is what the command line tells in one line."""
    path = tmp_path / "m.safetensors"
    path.write_bytes(b"\x02" + bytes(7) + b"[]")

    with pytest.raises(CorruptFile):
        source["safetensors"].plugin(load_file(path))


def load_file(path):
    from difflens.storage.local import File

    return File(path)
