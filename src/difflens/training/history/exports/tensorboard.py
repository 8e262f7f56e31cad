"""TensorBoard: a folder with one event file; layers are tagged `FIELD/NAME`, scalars as named."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..events import encoded, first_event, record, value_head
from ..exported import spread_frames, whole_folder
from ..frame import Frame, is_missing
from . import exporter

if TYPE_CHECKING:
    from .. import FrameSource

_LATEST = 1e11  # seconds: what is beyond is no time of our era


@exporter()
def tensorboard(source: FrameSource, path: Path) -> int:
    """TensorBoard event file in a folder: scalars, as 32-bit floats."""
    wide = source.layout()
    tags = [value_head(name) for name in wide.scalars]
    tags += [value_head(f"{field}/{layer.name}") for field in wide.fields for layer in wide.layers]
    count = 0
    with whole_folder(path) as folder:
        file = None
        try:
            for frame in spread_frames(source, wide):
                count += 1
                if file is None:
                    when = _time(frame)
                    file = (folder / f"events.out.tfevents.{int(when):010d}.difflens").open("wb")
                    file.write(record(first_event(when)))
                event = encoded(_time(frame), frame.step, _values(frame, tags))
                file.write(record(event))
        finally:
            if file is not None:
                file.close()
    return count


def _time(frame: Frame) -> float:
    """Return when it was; a time that nobody recorded, or that is none, is the era's beginning."""
    return frame.wall_time if 0 <= frame.wall_time < _LATEST else 0.0


def _values(frame: Frame, tags: list[bytes]) -> list[bytes]:
    with np.errstate(over="ignore"):
        scalars = frame.scalars.astype("<f4")
    missing = np.concatenate([is_missing(frame.scalars), is_missing(frame.layers).reshape(-1)])
    numbers = np.concatenate([scalars, frame.layers.reshape(-1)]).astype("<f4").tobytes()
    return [
        tag + numbers[4 * i : 4 * i + 4]
        for i, (tag, gone) in enumerate(zip(tags, missing.tolist(), strict=True))
        if not gone
    ]
