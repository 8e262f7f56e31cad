"""Runs written for other programs: one file per format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from difflens.core.registry import Registry

if TYPE_CHECKING:
    from .. import FrameSource

# A plug-in streams a source into a file (or folder) that appears whole or not at all, and gives
# how many frames it wrote.
exporter: Registry[Callable[[FrameSource, Path], int]] = Registry(
    "export", __name__, "difflens.history.exports"
)


def export_run(source: FrameSource, to: str, path: str | Path) -> int:
    """Write a run in the format of that name; give how many frames it has."""
    entry = exporter[to]
    written: int = entry.plugin(source, Path(path))
    return written
