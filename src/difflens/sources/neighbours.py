"""Other files a model names: found beside it, never elsewhere.

A name inside a file is a stranger's word. It must be a plain relative path, and what it leads
to, after every link, must lie in the model's folder, or, in a cache of Hugging Face, where each
file is a link, in the `blobs` of the same `models--` folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from ..errors import CorruptFile
from ..escape import for_terminal, visible
from ..protocols import ModelFile
from .files import File
from .limits import DEFAULTS


def neighbour(file: ModelFile, location: str) -> File:
    """Open the file a model names; what it leads to is checked before it is opened."""
    where = visible(str(file.path))
    named = f"'{for_terminal(location)}'"
    parts = PurePosixPath(location).parts
    if not location or not parts or "\0" in location or "\\" in location:
        raise CorruptFile(where, f"it names the file {named}, a relative path is wanted")
    if location[0] == "/" or location[1:2] == ":" or ".." in parts:
        raise CorruptFile(where, f"it names the file {named}, which is outside its folder")
    folder = _folder(file.path, location)
    target = os.path.realpath(folder / location)
    if not any(_is_inside(target, home) for home in _homes(folder)):
        reason = f"it names the file {named}, which leads outside its folder by a link"
        raise CorruptFile(where, reason)
    return File(Path(target), limits_of(file))


def limits_of(file: ModelFile) -> Mapping[str, int]:
    """Give the limits a file was opened under, for those opened on its behalf."""
    return {name: file.limit(name) for name in DEFAULTS}


def _folder(path: Path, location: str) -> Path:
    """Give the model's folder: of the name the user gave, or of what that is a link to."""
    folder = path.parent
    if path.is_symlink() and not os.path.lexists(folder / location):
        return Path(os.path.realpath(path)).parent
    return folder


def _homes(folder: Path) -> list[str]:
    """List the folders a neighbour may lie in."""
    real = Path(os.path.realpath(folder))
    homes = [str(real)]
    for parent in real.parents:
        if parent.name.startswith("models--"):
            homes.append(str(parent / "blobs"))
            break
    return homes


def _is_inside(target: str, home: str) -> bool:
    return target.startswith(home.rstrip(os.sep) + os.sep)
