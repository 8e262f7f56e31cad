"""MLflow: the numbers of each step as metrics of the run that is active, or of a new one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from difflens.core.errors import MissingExtra

from . import layers_of, scalars_of, sink

if TYPE_CHECKING:
    from ..history.frame import Frame
    from ..records.runs import RunInfo

_BATCH = 1000  # metrics that MLflow takes in one call
_EVERY = 10  # steps between two rows of per-layer numbers: a call per layer and step would be slow


@sink()
class Mlflow:
    """Metrics of the active MLflow run; per-layer ones at every tenth step."""

    def __init__(self, folder: Path, info: RunInfo) -> None:
        """Find the active run, or begin one named after this."""
        try:
            import mlflow
            from mlflow.entities import Metric
        except ImportError as error:
            raise MissingExtra("a live export to MLflow", "mlflow") from error
        self._metric = Metric
        self._client: Any = mlflow.MlflowClient()
        active: Any = mlflow.active_run()  # a thread's own: a sink is made on the user's thread
        self._is_ours = active is None
        if active is None:  # not start_run: it would stay active for whatever the user does next
            experiment = os.environ.get("MLFLOW_EXPERIMENT_ID", "0")
            active = self._client.create_run(experiment, run_name=info.name or folder.name)
        self._run_id: str = active.info.run_id
        self._waiting: list[Any] = []

    def write(self, frame: Frame, info: RunInfo) -> None:
        """Queue a frame's numbers; MLflow takes a thousand at once."""
        numbers = scalars_of(frame, info)
        if frame.sequence % _EVERY == 0:
            numbers |= layers_of(frame, info)
        moment = int(frame.wall_time * 1000)
        self._waiting += [
            self._metric(_allowed(name), value, moment, frame.step)
            for name, value in numbers.items()
        ]
        if len(self._waiting) >= _BATCH:
            self._send()

    def _send(self) -> None:
        while self._waiting:
            now, self._waiting = self._waiting[:_BATCH], self._waiting[_BATCH:]
            self._client.log_batch(self._run_id, metrics=now)

    def close(self) -> None:
        """Send the rest, and end the run if it was begun here."""
        self._send()
        if self._is_ours:
            self._client.set_terminated(self._run_id)


def _allowed(name: str) -> str:
    """Write a name with the letters MLflow takes."""
    return "".join(each if each.isalnum() or each in "_-. /" else "_" for each in name)[:250]
