"""Foreign logs read as runs: one file per format, chosen by what it recognises."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from difflens.core.errors import RunError
from difflens.core.registry import Registry

if TYPE_CHECKING:
    from .. import FrameSource

# Registered with `recognise(path, head) -> bool`; head is the first 64 KiB, b"" of a folder.
importer: Registry[Callable[[Path], FrameSource]] = Registry(
    "run format", __name__, "difflens.history.imports"
)
HEAD = 1 << 16


def open_foreign(path: Path) -> FrameSource:
    """Open a log that difflens did not write, as a run."""
    head = b""
    try:
        if not path.is_dir():
            with path.open("rb") as file:
                head = file.read(HEAD)
    except OSError as error:
        raise RunError(path, (error.strerror or str(error)).lower()) from error
    for entry in importer:
        if entry.options["recognise"](path, head):
            return entry.plugin(path)
    known = ", ".join(entry.name for entry in importer)
    raise RunError(path, "it is no run that can be read", hint=f"a run folder, or one of: {known}")
