"""Runs written for other programs: one file a format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ...registry import Registry

if TYPE_CHECKING:
    from .. import FrameSource

# A plug-in streams a source into a file (or folder) that appears whole or not at all.
exporter: Registry[Callable[[FrameSource, Path], None]] = Registry(
    "export", "difflens.history.exports"
)
