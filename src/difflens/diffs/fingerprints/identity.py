"""Which files a model was read from, so that a change of them is noticed."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

from difflens.core.addresses import Address, Location
from difflens.core.errors import DifflensError
from difflens.storage.places import open_file, pin

_HUB = "hf"


def identity_of(place: Location) -> str:
    """Return a hash of what tells a model's files from later ones; the empty string if unknown.

    On this machine these are names, sizes and times, of a folder those of all files directly in
    it; on the hub the commit; elsewhere the version of a file, while a folder has none.
    """
    try:
        lines = _remote(place) if isinstance(place, Address) else _local(place)
    except (DifflensError, OSError, ValueError):
        return ""
    return sha256("\n".join(lines).encode()).hexdigest()[:32] if lines else ""


def _local(path: Path) -> list[str]:
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    known = [(each.name, each.stat()) for each in files if each.is_file()]
    return [f"{os.fsencode(name)!r} {stat.st_size} {stat.st_mtime_ns}" for name, stat in known]


def _remote(address: Address) -> list[str]:
    if address.scheme == _HUB:
        return [str(pin(address))]
    file = open_file(address)
    try:
        return [str(address), repr(getattr(file, "identity", ""))]
    finally:
        file.close()


def full_path(place: Location) -> str:
    """Return an address, or a path that leads there from another folder too."""
    return str(place) if isinstance(place, Address) else str(place.absolute())
