"""Where frames go beside the run's own file while training: one file a destination.

A sink is made on the thread of the training loop, where trackers keep what is active, and is then
handed each recorded frame on the recorder's thread. One that fails is left out with a single
warning, and the run goes on without it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ..registry import Registry

if TYPE_CHECKING:
    from ..history.frame import Frame
    from ..runs import RunInfo


class Sink(Protocol):
    """A destination of frames."""

    def write(self, frame: Frame, info: RunInfo) -> None:
        """Take one frame, laid out as the info says."""

    def close(self) -> None:
        """Write what was kept back, and let go."""


# A plug-in is called with the run's folder and its first info.
sink: Registry[Callable[[Path, RunInfo], Sink]] = Registry("sink", "difflens.sinks")
