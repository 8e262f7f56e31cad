"""Files and folders by location: one set of questions for local paths and for addresses.

What remote files need is imported with the first address.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from difflens.core.addresses import Address, Location
from difflens.core.errors import UnreadableFile
from difflens.core.protocols import ModelFile

from . import local


def pin(location: Location) -> Location:
    """Return the location that stays the same: a revision on the hub becomes a commit.

    With `HF_HUB_OFFLINE=1` it becomes the folder in the cache. Everything else is itself. Pin once,
    when a model is opened; the other functions pin too, and remember it for a minute only.
    """
    if not isinstance(location, Address):
        return location
    from .stores import STORES

    return STORES.pin(location)


def open_file(location: Location, limits: Mapping[str, int] | None = None) -> ModelFile:
    """Open a file; of a remote one, the first request brings its size, identity and beginning."""
    location = pin(location)
    if isinstance(location, Address):
        from . import remote

        return remote.open_file(location, limits)
    return local.File(location, limits)


def open_small(location: Location, limits: Mapping[str, int] | None = None) -> ModelFile:
    """Open a file such as a config; a small remote one is read at once and kept for a minute."""
    location = pin(location)
    if isinstance(location, Address):
        from .small import SMALL_FILES

        return SMALL_FILES.open(location, limits)
    return local.File(location, limits)


def gather(file: ModelFile, ranges: Iterable[tuple[int, int]]) -> None:
    """Fetch small ranges of a remote file, which are read next, all at the same time."""
    if hasattr(file, "gather"):  # a file on this machine needs no help
        file.gather(ranges)


def is_file(location: Location) -> bool:
    """Is it a file? False also if nobody knows."""
    try:
        location = pin(location)
    except UnreadableFile:
        return False
    if isinstance(location, Address):
        from . import remote

        return remote.is_file(location)
    return local.is_file(location)


def is_folder(location: Location) -> bool:
    """Is it a folder? False also if nobody knows."""
    try:
        location = pin(location)
    except UnreadableFile:
        return False
    if isinstance(location, Address):
        from . import remote

        return remote.is_folder(location)
    return local.is_folder(location)


def is_link(location: Location) -> bool:
    """Is it a symbolic link? There are none but on this machine."""
    return not isinstance(location, Address) and os.path.islink(location)  # noqa: PTH114


def names(folder: Location) -> list[str]:
    """List the files and folders in a folder, sorted, without the hidden ones."""
    folder = pin(folder)
    if isinstance(folder, Address):
        from . import remote

        every = remote.names(folder)
    else:
        every = _local_names(folder)
    return sorted(name for name in every if name[0] != ".")


def end_transfers() -> None:
    """End what is read from elsewhere now, because the program leaves; later reads work."""
    from .interruption import INTERRUPTION

    INTERRUPTION.end_transfers()


def forget() -> None:
    """Forget listings, commits and connections: the next question is asked anew."""
    from .connections import CONNECTIONS
    from .remote import PROBES
    from .small import SMALL_FILES
    from .stores import STORES

    PROBES.forget()
    SMALL_FILES.forget()
    STORES.forget()
    CONNECTIONS.close()


def _local_names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208
    except OSError as error:
        raise local.unreadable(folder, error) from error
