"""Files and folders by location: one set of questions for local paths and for addresses."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from difflens.core.addresses import Address, Location
from difflens.core.protocols import ModelFile

from . import local


def open_file(location: Location, limits: Mapping[str, int] | None = None) -> ModelFile:
    """Open a file; of a remote one, the first request brings its size, identity and beginning."""
    if isinstance(location, Address):
        from . import remote

        return remote.open_file(location, limits)
    return local.File(location, limits)


def is_file(location: Location) -> bool:
    """Is it a file? False also if nobody knows."""
    if isinstance(location, Address):
        from . import remote

        return remote.is_file(location)
    return local.is_file(location)


def is_folder(location: Location) -> bool:
    """Is it a folder? False also if nobody knows."""
    if isinstance(location, Address):
        from . import remote

        return remote.is_folder(location)
    return local.is_folder(location)


def names(folder: Location) -> list[str]:
    """List the files and folders in a folder, sorted, without the hidden ones."""
    if isinstance(folder, Address):
        from . import remote

        every = remote.names(folder)
    else:
        every = _local_names(folder)
    return sorted(name for name in every if name[0] != ".")


def _local_names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208
    except OSError as error:
        raise local.unreadable(folder, error) from error
