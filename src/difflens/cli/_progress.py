"""A progress bar on stderr for work that takes longer than a moment."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_PATIENCE = 0.5  # seconds before a bar is worth the import of rich


@contextmanager
def progress_bar(total: int = 0) -> Iterator[Bar | None]:
    """Yield a bar that is told the bytes just done; None if no one watches."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    bar = Bar(total)
    try:
        yield bar
    finally:
        bar.close()


class Bar:
    """A bar that appears once the work has taken a moment; `stage` begins it anew."""

    def __init__(self, total: int) -> None:
        """Nothing is drawn yet."""
        self._total, self._done, self._began = total, 0, time.monotonic()
        self._bar: Any = None
        self._name = ""
        self._task: Any = None

    def __call__(self, size: int) -> None:
        """Take note of the bytes just done."""
        self._done += size
        if self._bar is None:
            if time.monotonic() - self._began < _PATIENCE:
                return
            self._start()
        self._bar.update(self._task, completed=min(self._done, self._total))

    def stage(self, name: str, total: int) -> Callable[[int], None]:
        """Begin another stretch of work over so many bytes, called by its name."""
        self._total, self._done, self._name = total, 0, name
        if self._bar is not None:
            self._bar.reset(self._task, total=total, description=name)
        return self

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(binary_units=True),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task(self._name, total=self._total)
        self._bar.start()

    def close(self) -> None:
        """Take it off the screen."""
        if self._bar is not None:
            self._bar.stop()
