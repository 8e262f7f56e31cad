"""HDF5: Keras `.h5` and `.weights.h5`, MATLAB 7.3 `.mat`, and any file of numeric datasets.

    byte 0 or 512, 1024, 2048 ...   signature, superblock: where the data end, where the root is
    anywhere                        groups: names and the addresses of their objects
                                    datasets: type, shape, where the values are
                                    values: in one piece, or in chunks that may be packed

What is in one piece is read here; HDF5's library reads the rest, in a process of its own, because
a damaged file may crash it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from struct import unpack_from
from typing import Any, NamedTuple

from ..dtypes import BITS
from ..errors import CorruptFile, LimitExceeded, UnknownName
from ..escape import for_terminal, visible
from ..protocols import ModelFile
from ..records import TensorInfo
from . import source
from .containers.stream import Unpacked
from .hdf5_client import Child
from .refusals import looks_like
from .strict_json import LARGEST

SIGNATURE = b"\x89HDF\r\n\x1a\n"
_MATLAB = b"MATLAB 7.3 MAT-file"
_USER_BLOCKS = (512, 1024, 2048)
_MOST_HELD = 512 << 20
_LONGEST_TEXT = 1 << 16
_CUT = "the download may be incomplete"


def recognise(head: bytes, _path: Path) -> bool:
    """Is the signature at the start, or behind a user block that is nothing else?"""
    if head.startswith(SIGNATURE):
        return True
    if not any(head.startswith(SIGNATURE, place) for place in _USER_BLOCKS):
        return False
    # A tar or a zip may hold an HDF5 file just there; a header of safetensors may too.
    return looks_like(head[:256]) in (None, "text") and looks_like(head) != "a tar archive" and (
        head[4:9] != b"\0\0\0\0{"
    )


@source(
    recognise=recognise,
    suffixes=(".h5", ".hdf5", ".weights.h5", ".mat"),
    child="difflens.sources.hdf5_child",
)
def hdf5(file: ModelFile) -> Hdf5:
    """HDF5: Keras .h5 and .weights.h5, MATLAB 7.3, any numeric datasets."""
    return Hdf5(file)


class _Place(NamedTuple):
    """Where a tensor's bytes are: in the file, or for the child to give."""

    index: int
    offset: int | None
    size: int


class Hdf5:
    """An open HDF5 file."""

    format = "hdf5"

    def __init__(self, file: ModelFile) -> None:
        """Have the child list the datasets; it lives on only if a tensor needs it."""
        self._file, self._where = file, visible(str(file.path))
        self._held = isinstance(file, Unpacked)
        _check_ends(file, self._where, self._held)
        self.warnings: list[str] = []
        self.aliases: dict[str, str] = {}
        self.metadata: dict[str, str] = {}
        self.texts: dict[str, str] = {}
        self._places: dict[str, _Place] = {}
        self._tensors: dict[str, TensorInfo] = {}
        self.tensors: Mapping[str, TensorInfo] = self._tensors
        matlab = file.size >= 512 and file.read(0, len(_MATLAB)) == _MATLAB
        self._child = Child(file, held=self._held, matlab=matlab)
        try:
            self._take_all()
        except BaseException:
            self._child.close()
            raise
        if all(place.offset is not None for place in self._places.values()):
            self._child.close()

    def read_into(self, name: str, start: int, stop: int, buffer: memoryview) -> int:
        """Fill the buffer with bytes [start, stop) of the tensor and say how many."""
        try:
            place = self._places[name]
        except KeyError:
            raise UnknownName("tensor", name, self.tensors) from None
        if not 0 <= start <= stop <= place.size or stop - start > len(buffer):
            wanted = f"[{start}, {stop}) of {place.size} bytes into a buffer of {len(buffer)}"
            raise ValueError(f"tensor {name!r}: cannot read {wanted}")
        if place.offset is not None:
            return self._file.read_into(place.offset + start, buffer[: stop - start])
        return self._child.read_into(place.index, start, stop, buffer)

    def confirm(self) -> None:
        """Raise `ChangedWhileReading` if the file is not the one that was opened."""
        self._file.confirm()

    def close(self) -> None:
        """End the child, give the descriptor back."""
        self._child.close()
        self._file.close()
