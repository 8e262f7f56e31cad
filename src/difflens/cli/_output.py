"""Where results go: stdout, or a file that appears whole or not at all."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from difflens.core.errors import OutputError
from difflens.core.escape import for_terminal
from difflens.core.records import View
from difflens.core.terminal import PLAIN

_NARROW, _WIDE = 40, 200


def emit(text: str, out: str | None) -> None:
    """Write the text to stdout, or to a temporary file beside `out` that is then renamed."""
    emit_pieces([text], out)


def emit_pieces(pieces: Iterable[str], out: str | None) -> None:
    """Write a text piece by piece, as `emit` does: the whole may not fit into memory."""
    pieces = _ended(pieces)
    if out is None:
        _print(pieces)
        return
    target = Path(out)
    if target.exists() and not target.is_file():  # a device or a pipe cannot be renamed over
        _write_through(target, pieces)
        return
    from difflens.core.whole_file import whole_file

    with whole_file(out) as file:
        for piece in pieces:
            file.write(piece.encode("utf-8", "backslashreplace"))


def _ended(pieces: Iterable[str]) -> Iterator[str]:
    """Yield the pieces, and end the last line if they do not."""
    last = "\n"
    for piece in pieces:
        yield piece
        last = piece or last
    if not last.endswith("\n"):
        yield "\n"


def _print(pieces: Iterable[str]) -> None:
    if sys.stdout is None:
        raise OutputError("it is closed", where="stdout")
    raw: Any = getattr(sys.stdout, "buffer", None)
    for piece in pieces:
        if isinstance(raw, io.RawIOBase):
            # PYTHONUNBUFFERED: Python would drop in silence what a pipe or a disk did not take.
            rest = memoryview(piece.encode(sys.stdout.encoding, PLAIN))
            while rest:
                rest = rest[raw.write(rest) or 0 :]
        else:
            sys.stdout.write(piece)
    sys.stdout.flush()


def _write_through(target: Path, pieces: Iterable[str]) -> None:
    try:
        with target.open("w", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(pieces)
    except OSError as error:
        raise OutputError((error.strerror or str(error)).lower(), where=str(target)) from error


def warn(text: str) -> None:
    """Write a warning to stderr."""
    sys.stderr.write(f"difflens: warning: {for_terminal(text, 1000)}\n")


def view(*, color: str, to_file: bool, **how: Any) -> View:
    """Decide how to show: colour as the user, NO_COLOR, FORCE_COLOR and the terminal say."""
    return View(
        color=_wants_color(color, to_file=to_file),
        width=_width(),
        fitted=not to_file and _is_terminal(),
        **how,
    )


def _wants_color(color: str, *, to_file: bool) -> bool:
    if color != "auto":
        return color == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return not to_file and _is_terminal() and os.environ.get("TERM") != "dumb"


def _is_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()


def _width() -> int:
    if not _is_terminal():
        return 100
    from shutil import get_terminal_size

    return max(_NARROW, min(_WIDE, get_terminal_size().columns))
