"""NumPy arrays: one array a file, called by the file's stem."""

from __future__ import annotations

from pathlib import Path

from ..errors import UnknownFormat
from ..escape import for_terminal, visible
from ..protocols import ModelFile
from . import source
from .containers.encoded import Encoded
from .npy_header import MAGIC, Opaque, read_array


def recognise(head: bytes, path: Path) -> bool:
    """Are these the first bytes of a NumPy array?"""
    del path
    return head.startswith(MAGIC)


@source(recognise=recognise, suffixes=(".npy",))
def npy(file: ModelFile) -> Encoded:
    """NumPy: one array, with a short header in front."""
    where = visible(str(file.path))
    name = file.path.name.partition(".npy")[0] or "data"  # also of a.npy.gz
    model = Encoded(file, "npy")
    found = read_array(file, name, where)
    if isinstance(found, Opaque):
        if found.refused:
            raise UnknownFormat(where, f"it holds {found.what}, a pickle, which is never loaded")
        model.warnings.append(f"'{for_terminal(name)}' holds {found.what}: left out")
        return model
    if found.end < file.size:
        left = file.size - found.end
        model.warnings.append(f"{left} bytes after the array's end were not read")
    model.add(found.info, found.encoding)
    return model
