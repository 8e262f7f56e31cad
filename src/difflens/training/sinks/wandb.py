"""Weights & Biases: the numbers of each step, logged to the run that is active, or a new one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from difflens.core.errors import MissingExtra

from . import layers_of, scalars_of, sink

if TYPE_CHECKING:
    from ..history.frame import Frame
    from ..records.runs import RunInfo


@sink()
class Wandb:
    """Numbers of the active W&B run; without an account it records offline."""

    def __init__(self, folder: Path, info: RunInfo) -> None:
        """Find the active run, or begin one: offline unless the user's settings say otherwise."""
        try:
            import wandb
        except ImportError as error:
            raise MissingExtra("a live export to Weights & Biases", "wandb") from error
        self._begun: Any = None
        self._run: Any = wandb.run
        mode: Any = os.environ.get("WANDB_MODE", "offline")
        if self._run is None:
            self._begun = self._run = wandb.init(
                project="difflens",
                name=info.name or folder.name,
                dir=str(folder),
                mode=mode,
                settings=wandb.Settings(silent=True, console="off"),
            )
        self._run.define_metric("difflens/*", step_metric="difflens/step")

    def write(self, frame: Frame, info: RunInfo) -> None:
        """Log a frame under `difflens/`, against its own step: the run may have another counter."""
        numbers = scalars_of(frame, info) | layers_of(frame, info)
        metrics = {f"difflens/{name}": value for name, value in numbers.items()}
        self._run.log(metrics | {"difflens/step": frame.step})

    def close(self) -> None:
        """End the run if it was begun here."""
        if self._begun is not None:
            self._begun.finish()
