"""The files of an animator: written whole, folders made on the way."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ..errors import OutputError, RunError
from ..whole import whole_file


def write(path: str | Path, pieces: Iterable[bytes]) -> None:
    """Write pieces to a temporary file beside the target, then rename it; folders are made."""
    try:
        Path(os.path.realpath(path)).parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError((error.strerror or str(error)).lower(), where=str(path)) from error
    with whole_file(path) as file:
        file.writelines(pieces)


def read(path: str | Path) -> bytes:
    """Read a file."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise RunError(path, (error.strerror or str(error)).lower()) from error
