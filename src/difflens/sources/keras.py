"""Keras 3 models: a zip of a config and of weights.

metadata.json       the version of Keras, the date
config.json         the layers, as text: nothing of it is made or run
model.weights.h5    HDF5, as `hdf5` reads it
assets/             not read
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import CorruptFile, DifflensError
from ..escape import for_terminal, visible
from ..protocols import ModelFile
from ..records import TensorInfo
from . import source, strict_json
from .containers.zip import Member, members, open_member
from .hdf5 import Hdf5, shortened
from .keras_config import LARGEST, look_through

_WEIGHTS, _CONFIG, _METADATA = "model.weights.h5", "config.json", "metadata.json"
_OURS = {name.encode() for name in (_WEIGHTS, _CONFIG, _METADATA)}


def recognise(head: bytes, path: Path) -> bool:
    """Is this a zip that begins with the members Keras writes?"""
    names = _first_names(head)
    if not names or names[0] not in _OURS:
        return False
    # A config.json alone may be anybody's; with another of these members it is Keras's.
    return (
        names[0] == _WEIGHTS.encode()
        or len(_OURS.intersection(names)) > 1
        or b'"keras_version"' in head[:256]
        or path.suffix == ".keras"
    )


def _first_names(head: bytes) -> list[bytes]:
    """Give the names of the members whose local headers are in the head."""
    if not head.startswith(b"PK\x03\x04"):
        return []
    names, place = [], 0
    while 0 <= place <= len(head) - 30:
        length = int.from_bytes(head[place + 26 : place + 28], "little")
        names.append(head[place + 30 : place + 30 + length])
        place = head.find(b"PK\x03\x04", place + 30 + length)
    return names


@source(recognise=recognise, suffixes=(".keras",), child="difflens.sources.hdf5_child")
def keras(file: ModelFile) -> Keras:
    """Keras 3: a zip of config.json and HDF5 weights."""
    return Keras(file)


class Keras:
    """An open `.keras` file."""

    format = "keras"

    def __init__(self, file: ModelFile) -> None:
        """Read the config as text, and have the weights listed."""
        self._file, self._where = file, visible(str(file.path))
        found = members(file)
        others = [name for name in found if name.endswith((".weights.h5", ".weights.npz"))]
        if others != [_WEIGHTS]:
            said = ", ".join(f"'{for_terminal(name)}'" for name in others[:5]) or "none"
            raise CorruptFile(
                self._where, f"one {_WEIGHTS} is wanted in the archive, found: {said}"
            )
        if _CONFIG not in found:
            raise CorruptFile(self._where, f"the archive has no {_CONFIG}, a Keras model has one")
        self.warnings: list[str] = []
        self.metadata: dict[str, str] = {}
        self.refused = self._read_config(found[_CONFIG])
        if _METADATA in found:
            self._read_metadata(found[_METADATA])
        self._begin = found[_WEIGHTS].offset
        self._weights = Hdf5(open_member(file, found[_WEIGHTS]))
        self.tensors: Mapping[str, TensorInfo] = self._weights.tensors
        self.aliases = self._weights.aliases
        self.warnings += self._weights.warnings
        self.metadata |= self._weights.metadata

    def read_into(self, name: str, start: int, stop: int, buffer: memoryview) -> int:
        """Fill the buffer with bytes [start, stop) of the tensor and say how many."""
        return self._weights.read_into(name, start, stop, buffer)

    def place(self, name: str) -> tuple[ModelFile, int] | None:
        """Say in which file a tensor lies, and at which byte; None where the child must give it."""
        found = self._weights.place(name)
        return (self._file, self._begin + found[1]) if found else None

    def confirm(self) -> None:
        """Raise `ChangedWhileReading` if the file is not the one that was opened."""
        self._file.confirm()

    def close(self) -> None:
        """End the child, give the descriptor back."""
        self._weights.close()
        self._file.close()

    def _read_config(self, member: Member) -> list[str]:
        """Keep the config as text; name what in it would run code or open files."""
        text = self._text(member)
        self.metadata["config"] = shortened(text, member.size)
        if member.size > LARGEST:
            self.warnings.append("the Keras config is too long to look through for code")
            return []
        return look_through(text, self.warnings)

    def _read_metadata(self, member: Member) -> None:
        try:
            depth = self._file.limit("json_depth")
            said: Any = strict_json.parse(
                self._text(member).encode(), self._where, depth=depth, floats=True
            )
        except DifflensError as error:
            self.warnings.append(f"{_METADATA} was not read: {error.reason}")
            return
        for key, value in said.items() if isinstance(said, dict) else ():
            if isinstance(value, str):
                self.metadata[key] = shortened(value, len(value))

    def _text(self, member: Member) -> str:
        """Give the beginning of a member as text; its end is not needed to show it."""
        opened = open_member(self._file, member)
        try:
            data = opened.read(0, min(member.size, LARGEST))
        finally:
            opened.close()
        return data.decode("utf-8", "backslashreplace")
