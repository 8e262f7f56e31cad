"""TensorBoard: event files in the run's folder, shown by `tensorboard --logdir RUN`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from . import layers_of, scalars_of, sink

if TYPE_CHECKING:
    from ..history.frame import Frame
    from ..records.runs import RunInfo


@sink()
class Tensorboard:
    """Scalars of the step, and the norm and update of each layer, as they are recorded."""

    def __init__(self, folder: Path, info: RunInfo) -> None:  # noqa: ARG002  the layout comes later
        """Begin an event file; one of an earlier part of the run stays beside it."""
        import time

        from ..history.events import first_event, record

        begun = time.time()
        folder.mkdir(parents=True, exist_ok=True)
        # Two runs begun within one second of each other must not share a file.
        path = folder / f"events.out.tfevents.{int(begun):010d}.{time.monotonic_ns()}.difflens"
        self._file = path.open("xb", buffering=0)
        self._file.write(record(first_event(begun)))

    def write(self, frame: Frame, info: RunInfo) -> None:
        """Append one event."""
        import struct

        from ..history.events import encoded, record, value_head

        numbers = scalars_of(frame, info) | layers_of(frame, info)
        values = [
            value_head(name) + struct.pack("<f", _single(value)) for name, value in numbers.items()
        ]
        self._file.write(record(encoded(frame.wall_time, frame.step, values)))

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def _single(value: float) -> float:
    """Return what a 32-bit number can hold: beyond it, infinity."""
    import numpy as np

    with np.errstate(over="ignore"):
        return float(np.float32(value))
