"""Which files a model was read from, so that a change of them is noticed."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

from difflens.core.addresses import locate


def identity_of(path: str) -> str:
    """Return names, sizes and times of a model's files as one hash; the empty string if unknown.

    Of a folder, all files count that lie directly in it.
    """
    location = locate(path)
    if not isinstance(location, Path):
        return ""
    try:
        files = sorted(location.iterdir()) if location.is_dir() else [location]
        known = [(each.name, each.stat()) for each in files if each.is_file()]
    except (OSError, ValueError):
        return ""
    lines = (f"{os.fsencode(name)!r} {stat.st_size} {stat.st_mtime_ns}\n" for name, stat in known)
    return sha256("".join(lines).encode()).hexdigest()[:32]


def full_path(path: str) -> str:
    """Return an address or a path that leads there from another folder too."""
    location = locate(path)
    return str(location.absolute()) if isinstance(location, Path) else str(location)
