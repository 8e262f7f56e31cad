"""Records a loop of the zoo, and keeps beside the run what the peers' rules ask for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .loop import Loop


class Watching:
    """Hands each step on to the recorder and notes its losses."""

    def __init__(self, inner: Any) -> None:
        """Take what records, or None."""
        self._inner = inner
        self.losses: list[float] = []
        self.validated: dict[int, float] = {}

    def step(self, loss: Any = None, **scalars: Any) -> None:
        """Pass a step on."""
        if "val_loss" in scalars:
            self.validated[len(self.losses)] = scalars["val_loss"]
        self.losses.append(float(loss))
        if self._inner is not None:
            self._inner.step(loss=loss, **scalars)


@contextmanager
def recorded(loop: Loop, folder: Path) -> Iterator[Watching]:
    """Record every step of a loop into a folder; the diagnoses are asked later, in the replay."""
    from difflens.training import monitor

    watch = monitor(
        loop.model, loop.optimiser, run=folder, every=1, activations=1, diagnose_every=None
    )
    with watch as inner:
        yield Watching(inner)


@contextmanager
def unrecorded() -> Iterator[Watching]:
    """Note the losses alone, where only the result matters."""
    yield Watching(None)
