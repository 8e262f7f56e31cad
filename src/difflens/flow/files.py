"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from ..errors import OutputError, RunError


def write(path: str | Path, pieces: Iterable[bytes]) -> None:
    """Write pieces to a temporary file beside the target, then rename it; folders are made."""
    target = Path(os.path.realpath(path))
    temporary = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as stream:
            temporary = Path(stream.name)
            stream.writelines(pieces)
            stream.flush()
            os.fsync(stream.fileno())
        mask = os.umask(0o077)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        temporary.replace(target)
    except BaseException as error:  # Ctrl-C as well leaves nothing behind
        if temporary:
            temporary.unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        raise OutputError((error.strerror or str(error)).lower(), where=str(path)) from error


def read(path: str | Path) -> bytes:
    """Read a file."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise RunError(path, (error.strerror or str(error)).lower()) from error
