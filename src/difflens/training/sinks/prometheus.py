"""Prometheus: the latest numbers as a text file that a collector scrapes.

A file for the node exporter's textfile collector was taken, not a port: a training job that opens
ports needs a firewall rule, a second job needs a second port, and the last numbers of a job that
ended are gone with it.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from . import GRADIENT, UPDATE, layers_of, scalars_of, sink

if TYPE_CHECKING:
    from ..history.frame import Frame
    from ..records.runs import RunInfo

FILE = "metrics.prom"
_EVERY_SECONDS = 1.0
_HELP = {
    "difflens_step": "The step of the latest frame.",
    "difflens_scalar": "A number recorded at the latest step.",
    "difflens_grad_norm": "L2 norm of a layer's gradient at the latest step.",
    "difflens_update_ratio": "L2 norm of a layer's update over that of its weights.",
    "difflens_wall_time_seconds": "When the latest frame was recorded.",
}


@sink()
class Prometheus:
    """The latest frame as `metrics.prom` in the run's folder, rewritten about once a second."""

    def __init__(self, folder: Path, info: RunInfo) -> None:
        """Nothing is written before the first frame."""
        self._path, self._run = folder / FILE, info.name or folder.name
        self._latest: tuple[Frame, RunInfo] | None = None
        self._written = 0.0

    def write(self, frame: Frame, info: RunInfo) -> None:
        """Keep the frame; write it where the file is older than a second."""
        self._latest = (frame, info)
        if time.monotonic() - self._written >= _EVERY_SECONDS:
            self._replace()

    def _replace(self) -> None:
        if self._latest is None:
            return
        beside = self._path.with_suffix(f".{os.getpid()}")
        beside.write_text(exposition(*self._latest, self._run), "utf-8")
        beside.replace(self._path)
        self._latest, self._written = None, time.monotonic()

    def close(self) -> None:
        """Write the last frame."""
        self._replace()


def exposition(frame: Frame, info: RunInfo, run: str) -> str:
    """Return a frame in Prometheus' text format, names as labels."""
    rows: dict[str, list[tuple[dict[str, str], float]]] = {name: [] for name in _HELP}
    rows["difflens_step"].append(({}, frame.step))
    rows["difflens_wall_time_seconds"].append(({}, frame.wall_time))
    for name, value in scalars_of(frame, info).items():
        rows["difflens_scalar"].append(({"name": name}, value))
    for name, value in layers_of(frame, info).items():
        kind, _, layer = name.partition("/")
        metric = {GRADIENT: "difflens_grad_norm", UPDATE: "difflens_update_ratio"}[kind]
        rows[metric].append(({"layer": layer}, value))
    lines = []
    for metric, values in rows.items():
        if values:
            lines += [f"# HELP {metric} {_HELP[metric]}", f"# TYPE {metric} gauge"]
            lines += [
                f"{metric}{_labels({'run': run} | labels)} {_number(value)}"
                for labels, value in values
            ]
    return "\n".join(lines) + "\n"


def _labels(labels: dict[str, str]) -> str:
    return "{" + ",".join(f'{key}="{_escaped(value)}"' for key, value in labels.items()) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    if value != value:  # noqa: PLR0124  the one number that is not itself
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    return repr(float(value))
