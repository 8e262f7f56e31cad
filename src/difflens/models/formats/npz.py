"""NumPy archives: a zip whose members are arrays, stored or deflated.

name.npy    one array each: its own header, its numbers; the tensor is called `name`
others      left out with a warning
"""

from __future__ import annotations

from difflens.core.addresses import Location
from difflens.core.errors import CorruptFile
from difflens.core.escape import for_terminal, visible
from difflens.core.protocols import ModelFile

from ..containers import zip as archive
from ..containers.encodings import EncodedSource
from ..containers.npy_header import MAGIC, Opaque, read_array
from . import source


def recognise(head: bytes, path: Location) -> bool:
    """Is this a zip whose first file is an array, or is it called one and its files lie loose?"""
    if head.startswith(b"PK\x05\x06"):
        return path.suffix == ".npz"
    first = head[30 : 30 + int.from_bytes(head[26:28], "little")]
    loose = path.suffix == ".npz" and b"/" not in first.removesuffix(b"/")
    return head.startswith(b"PK\x03\x04") and (first.endswith(b".npy") or loose)


@source(recognise=recognise, suffixes=(".npz",))
def npz(file: ModelFile) -> EncodedSource:
    """NumPy archive: a zip of arrays, stored or deflated."""
    model = EncodedSource(file, "npz")
    where = visible(str(file.path))
    other: list[str] = []
    opaque: list[str] = []
    longer: list[str] = []
    for key, member in archive.members(file).items():
        name = key.removesuffix(".npy")
        if name == key:
            other.append(name)
            continue
        opened = archive.open_member(file, member)
        if opened.read(0, min(6, opened.size)) != MAGIC:
            raise CorruptFile(where, f"'{for_terminal(key)}' is called an array and is none")
        found = read_array(opened, name, where)
        opened.close()  # a deflated one has begun to unpack; it begins again when it is read
        if isinstance(found, Opaque):
            opaque.append(f"{name}: {found.what}")
            model.refused.extend([f"{key} (pickled {found.what})"] if found.refused else [])
            continue
        if found.end < opened.size:
            longer.append(name)
        model.opened.append(opened)
        model.add(found.info, found.encoding)
    model.warn("no arrays, left out", other)
    model.warn("no tensors, left out", opaque)
    model.warn("bytes after the array's end were not read", longer)
    return model
