"""Files that are written completely or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from .errors import OutputError


@contextmanager
def whole_file(path: str | Path) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces the path when it is complete; a link stays a link."""
    import tempfile  # takes 5 ms, which output to stdout does not need

    temporary: Path | None = None
    target = Path(os.path.realpath(path))
    try:
        if target.is_dir():
            raise OutputError("it is a folder", where=str(path))
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".", delete=False) as file:
            temporary = Path(file.name)
            yield file  # type: ignore[misc]
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~umask())
        temporary.replace(target)
    except BaseException as error:  # Ctrl-C as well leaves nothing behind
        if temporary:
            temporary.unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        raise OutputError((error.strerror or str(error)).lower(), where=str(path)) from error


def umask() -> int:
    """Return the file mode mask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
