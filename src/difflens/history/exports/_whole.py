"""Folders that appear whole or not at all, and frames spread over all columns."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import OutputError, RunError
from ...runs import RunInfo
from ...whole import umask
from ..frame import Frame
from ..layout import Spread, layout

if TYPE_CHECKING:
    from .. import FrameSource


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Give a folder beside the path, which takes its place at the end; one that is there stays."""
    temporary: Path | None = None
    try:
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise OutputError("it is there already", where=str(path), hint="name another folder")
        temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix="."))
        yield temporary
        temporary.chmod(0o777 & ~umask())
        temporary.replace(path)
    except BaseException as error:
        if temporary:
            shutil.rmtree(temporary, ignore_errors=True)
        if not isinstance(error, OSError):
            raise
        raise OutputError((error.strerror or str(error)).lower(), where=str(path)) from error


def spread_frames(source: FrameSource, wide: RunInfo) -> Iterator[Frame]:
    """Yield the frames, each with a place for every column of the whole run."""
    info, spread = None, None
    for frame in source.frames():
        if source.info is not info:
            info = source.info
            spread = None if layout(info) == layout(wide) else _spread(source, wide)
        yield frame if spread is None else spread.frame(frame)


def _spread(source: FrameSource, wide: RunInfo) -> Spread:
    try:
        return Spread(source.info, wide)
    except KeyError as error:
        reason = "its layout changed while it was exported"
        raise RunError(source.path, reason, hint="run it again") from error
