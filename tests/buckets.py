"""Files elsewhere without a server: a dict of bytes behind the functions of `storage.remote`.

It counts what a server would be asked: a listing for each folder, a request for each file that is
opened, and one for each further block of bytes. `tests/storage` has real servers.
"""

import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from contracts.plugins import TESTS, load

import difflens.storage
from difflens.core.addresses import Address
from difflens.core.errors import UnreadableFile
from difflens.core.limits import DEFAULTS
from difflens.models.formats import source

HEAD = BLOCK = 128 * 1024


class FarFile:
    """A file of a bucket, with what was fetched of it so far."""

    def __init__(self, bucket: "Bucket", path: Address, limits) -> None:
        self.path, self._bucket, self._limits = path, bucket, limits or {}
        self._data = bucket.files[str(path)]
        self.size = len(self._data)
        self.identity = self._data
        self.is_closed = False
        self._blocks = {range(HEAD)}

    @property
    def content_key(self) -> str | None:
        return self._bucket.hashes.get(str(self.path))

    def read(self, start: int, stop: int) -> bytes:
        buffer = bytearray(stop - start)
        self.read_into(start, memoryview(buffer))
        return bytes(buffer)

    def read_into(self, start: int, buffer: memoryview) -> int:
        assert not self.is_closed
        stop = start + len(buffer)
        assert 0 <= start <= stop <= self.size
        if not any(start in block and stop <= block.stop for block in self._blocks):
            self._blocks.add(range(start, max(stop, start + BLOCK)))
            self._bucket.asked.append(str(self.path))
        buffer[:] = self._data[start:stop]
        return len(buffer)

    def limit(self, name: str) -> int:
        return self._limits.get(name, DEFAULTS[name])

    def confirm(self) -> None:
        pass

    def close(self) -> None:
        self.is_closed = True


class Bucket:
    """Files by address."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.hashes: dict[str, str] = {}
        self.asked: list[str] = []
        self.opened: list[FarFile] = []
        self._listed: set[str] = set()
        self._lock = threading.Lock()

    def put(self, path: Path, address: str) -> str:
        """Store a file, or all files of a folder, and return the address."""
        if path.is_dir():
            for each in path.rglob("*"):
                if each.is_file():
                    self.put(each, f"{address}/{each.relative_to(path).as_posix()}")
        else:
            self.files[address] = path.read_bytes()
        return address

    def open_file(self, address: Address, limits=None) -> FarFile:
        with self._lock:
            self.asked.append(str(address))
        if str(address) not in self.files:
            raise UnreadableFile(address, "no such file")
        file = FarFile(self, address, limits)
        self.opened.append(file)
        return file

    def names(self, folder: Address) -> list[str]:
        self._list(folder)
        begin = f"{folder}/"
        return list(
            {key[len(begin) :].partition("/")[0] for key in self.files if key.startswith(begin)}
        )

    def is_file(self, address: Address) -> bool:
        self._list(address.parent)
        return str(address) in self.files

    def is_folder(self, address: Address) -> bool:
        if str(address.parent) not in self._listed:
            self._list(address)
        return any(key.startswith(f"{address}/") for key in self.files)

    def _list(self, folder: Address) -> None:
        if str(folder) not in self._listed:
            self._listed.add(str(folder))
            self.asked.append(f"{folder}/")


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Bucket:
    """Let a bucket stand for every storage."""
    made = Bucket()
    remote = SimpleNamespace(
        **{name: getattr(made, name) for name in ("open_file", "names", "is_file", "is_folder")}
    )
    monkeypatch.setitem(__import__("sys").modules, "difflens.storage.remote", remote)
    monkeypatch.setattr(difflens.storage, "remote", remote, raising=False)
    return made


DATA = {"data": ("F32", (8,), np.arange(8, dtype=np.float32).tobytes())}


@pytest.fixture(params=[entry.name for entry in source])
def sample_path(request, tmp_path):
    """A sample of each format, written by the test of that format."""
    name = request.param
    test = load(TESTS / "models" / "formats" / f"test_{name.replace('-', '_')}.py", f"far_{name}")
    endings = source[name].options.get("suffixes") or (".bin",)
    path = test.sample(tmp_path / f"model{endings[0]}", DATA)
    if path is None:
        path = test.sample(tmp_path / f"model{endings[0]}", {"data": ("U8", (8,), bytes(range(8)))})
    return path
