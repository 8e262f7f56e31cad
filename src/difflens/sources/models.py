"""Every model below a folder, for comparing two trees of models."""

import os
from collections.abc import Iterator
from pathlib import Path

from .files import unreadable
from .folders import is_whole, suffixes

_INDEX = ".index.json"


def model_files(folder: str | Path) -> list[str]:
    """List the models below a folder by relative name, sorted.

    A folder with an index, or one that is a checkpoint itself, is one model, `.` where it is
    the folder itself. Links to folders are not followed, hidden files and folders are left out.
    """
    folder = Path(folder)
    return sorted(_models(folder, suffixes()))


def _models(folder: Path, known: tuple[str, ...]) -> Iterator[str]:
    def refuse(error: OSError) -> None:
        raise unreadable(Path(error.filename or folder), error) from error

    for here, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if name[0] != "."]
        place = Path(here).relative_to(folder)
        if any(name.endswith(_INDEX) for name in files) or is_whole(Path(here)):
            yield str(place)
            folders[:] = [] if is_whole(Path(here)) else folders
            continue
        yield from (str(place / name) for name in files if name[0] != "." and name.endswith(known))
