"""What exported runs share: names of columns, and files that appear complete or not at all.

A scalar keeps its name where nothing can be confused with it; a field of a layer is
`layers/FIELD/NAME`. Either begins with a letter, or with `scalars/`: no spreadsheet takes a name
for a formula, and nothing has to be guarded, which would change it.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from difflens.core.errors import OutputError, RunError
from difflens.core.escape import for_csv
from difflens.core.whole_file import umask

from ..records.runs import RunInfo
from .frame import Frame, Spread, layout

if TYPE_CHECKING:
    from . import FrameSource

TIMES = ("sequence", "step", "wall_time", "monotonic_time")
_SCALAR, _LAYER = "scalars/", "layers/"


def scalar_column(name: str) -> str:
    """Name the column of a scalar.

    >>> scalar_column("loss"), scalar_column("step"), scalar_column("=1+1")
    ('loss', 'scalars/step', 'scalars/=1+1')
    """
    plain = name and name not in TIMES and not name.startswith((_SCALAR, _LAYER))
    plain = plain and for_csv(name) == name and name.isprintable() and name.strip() == name
    return name if plain else f"{_SCALAR}{name}"


def layer_column(field: str, layer: str) -> str:
    """Name the column of a field of a layer.

    >>> layer_column("grad_l2", "h.0.weight"), layer_column("a/b", "c/d")
    ('layers/grad_l2/h.0.weight', 'layers/a%2Fb/c/d')
    """
    return f"{_LAYER}{field.replace('%', '%25').replace('/', '%2F')}/{layer}"


def columns_of(info: RunInfo) -> tuple[list[str], list[str]]:
    """Name the columns of the scalars, then those of the layers, field after field."""
    return (
        [scalar_column(name) for name in info.scalars],
        [layer_column(field, layer.name) for field in info.fields for layer in info.layers],
    )


def column_from(column: str) -> tuple[str | None, str]:
    """Return the field and the layer that a column is of, or None and the scalar.

    >>> column_from("layers/a%2Fb/c/d"), column_from("scalars/step"), column_from("loss")
    (('a/b', 'c/d'), (None, 'step'), (None, 'loss'))
    """
    if column.startswith(_LAYER):
        field, _, layer = column.removeprefix(_LAYER).partition("/")
        return field.replace("%2F", "/").replace("%25", "%"), layer
    return None, column.removeprefix(_SCALAR)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Yield a folder beside the path, which takes its place at the end; one that is there stays."""
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
    waiting: Frame | None = None  # a step that was not read: the next frame may complete it
    for frame in source.frames():
        if source.info is not info:
            info = source.info
            spread = None if layout(info) == layout(wide) else _spread(source, wide)
        if waiting is not None and not (frame.is_read and frame.step == waiting.step):
            yield waiting
        wider = frame if spread is None else spread.frame(frame)
        waiting = None if frame.is_read else wider
        if frame.is_read:
            yield wider
    if waiting is not None:
        yield waiting


def _spread(source: FrameSource, wide: RunInfo) -> Spread:
    try:
        return Spread(source.info, wide)
    except KeyError as error:
        reason = "its layout changed while it was exported"
        raise RunError(source.path, reason, hint="run it again") from error
