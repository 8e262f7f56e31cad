"""NumPy arrays: one array a file, called by the file's stem."""

from __future__ import annotations

from difflens.core.addresses import Location
from difflens.core.errors import UnknownFormat
from difflens.core.escape import for_terminal, visible
from difflens.core.protocols import ModelFile

from ..containers.encodings import EncodedSource
from ..containers.npy_header import MAGIC, Opaque, read_array
from . import source


def recognise(head: bytes, path: Location) -> bool:
    """Are these the first bytes of a NumPy array?"""
    del path
    return head.startswith(MAGIC)


@source(recognise=recognise, suffixes=(".npy",))
def npy(file: ModelFile) -> EncodedSource:
    """NumPy: one array, with a short header in front."""
    where = visible(str(file.path))
    name = file.path.name.partition(".npy")[0] or "data"  # also of a.npy.gz
    model = EncodedSource(file, "npy")
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
