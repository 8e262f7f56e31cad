"""Which files a model was read from, so that a change of them is noticed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from difflens.core.addresses import Address, Location
from difflens.core.errors import DifflensError
from difflens.storage.places import open_file, pin

_HUB = "hf"


# Formats that keep a whole model in one file; the others have parts of it beside or below.
ONE_FILE_FORMATS = (
    *("safetensors", "gguf", "npy", "npz", "pytorch", "pytorch-legacy", "pytorch-tar"),
    *("hdf5", "keras", "flax", "mat", "frozen-graph"),
)


def identity_of(place: Location, form: str) -> str:
    """Return a hash of what tells a model's files from later ones; the empty string if unknown.

    On this machine these are names, sizes and times of the file, or of all files in its folder and
    below if the format has several; on the hub the commit; elsewhere the version of a file, while
    a model in several files has none.
    """
    is_alone = form.partition(" in ")[0] in ONE_FILE_FORMATS and place.suffix != ".json"
    try:
        if isinstance(place, Address):
            lines = _remote(place, is_alone=is_alone)
        else:
            lines = _local(place, is_alone=is_alone)
    except (DifflensError, OSError, ValueError):
        return ""
    return sha256("\n".join(lines).encode()).hexdigest()[:32] if lines else ""


def _local(path: Path, *, is_alone: bool) -> list[str]:
    folder = path if path.is_dir() else path.parent
    files = [path] if path.is_file() and is_alone else sorted(_files_below(folder))
    known = [(each.relative_to(folder), each.stat()) for each in files if each.is_file()]
    return [f"{os.fsencode(name)!r} {stat.st_size} {stat.st_mtime_ns}" for name, stat in known]


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield the files in a folder and below, but for hidden folders such as `.git`."""
    for place, folders, names in os.walk(folder):
        folders[:] = [each for each in folders if each[0] != "."]
        yield from (Path(place, name) for name in names)


def _remote(address: Address, *, is_alone: bool) -> list[str]:
    if address.scheme == _HUB:
        return [str(pin(address))]
    if not is_alone:
        return []
    file = open_file(address)
    try:
        return [str(address), repr(getattr(file, "identity", ""))]
    finally:
        file.close()


def full_path(place: Location) -> str:
    """Return an address, or a path that leads there from another folder too."""
    return str(place) if isinstance(place, Address) else str(place.absolute())
