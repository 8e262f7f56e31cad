"""Records a loop of the zoo, and keeps beside the run what the peers' rules ask for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from difflens.training.records.runs import RunFinding

from .loop import Loop


class Watching:
    """Hands each step on to the recorder and notes its losses."""

    def __init__(self, inner: Any) -> None:
        """Take what records, or None."""
        self.inner = inner
        self.losses: list[float] = []
        self.alerts: list[tuple[int, str]] = []  # told while it trained: the step, and what
        self.read = 0  # steps whose layers were read
        self.validated: dict[int, float] = {}

    def step(self, loss: Any = None, **scalars: Any) -> None:
        """Pass a step on."""
        if "val_loss" in scalars:
            self.validated[len(self.losses)] = scalars["val_loss"]
        self.losses.append(float(loss))
        if self.inner is not None:
            self.inner.step(loss=loss, **scalars)


_WAYS: dict[str, dict[str, Any]] = {
    # The diagnoses are asked later, in the replay.
    "zoo": {"every": 1, "activations": 1, "diagnose_every": None},
    "every": {"every": 1, "diagnose_every": None},
    "auto": {},
}


@contextmanager
def recorded(loop: Loop, folder: Path, way: str = "zoo") -> Iterator[Watching]:
    """Record a loop into a folder: every step as the zoo does, or as the defaults have it."""
    import logging

    from difflens.training.story import monitor

    logging.getLogger("difflens").setLevel(logging.CRITICAL)
    watch = Watching(None)

    def alert(found: RunFinding) -> None:
        watch.alerts.append((len(watch.losses), found.name))

    options = {**_WAYS[way], "on_finding": alert}
    with monitor(loop.model, loop.optimiser, run=folder, **options) as inner:
        watch.inner = inner
        yield watch
        inner.flush()
        watch.read = inner.read_steps


@contextmanager
def unrecorded() -> Iterator[Watching]:
    """Note the losses alone, where only the result matters."""
    yield Watching(None)
