"""A run folder: a foreign log made into one, or a damaged run without its damage."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ...records.runs import Note
from ..exported import whole_folder
from ..writer import RunWriter
from . import exporter

if TYPE_CHECKING:
    from .. import FrameSource


@exporter()
def run(source: FrameSource, path: Path) -> int:
    """A run folder of difflens: what other commands take as RUN."""
    count = 0
    with whole_folder(path) as folder:
        info = msgspec.structs.replace(source.info, rank=0, ranks=1)
        with RunWriter(folder, info, announce=False) as writer:
            here = source.info
            for frame in source.frames():
                count += 1
                if source.info is not here:
                    here = source.info
                    writer.describe(msgspec.structs.replace(here, rank=0, ranks=1))
                writer.sequence = max(writer.sequence, frame.sequence)  # gaps stay visible
                writer.append(
                    frame.step,
                    frame.scalars,
                    frame.layers,
                    wall_time=frame.wall_time,
                    monotonic_time=frame.monotonic_time,
                    is_read=frame.is_read,
                )
            for note in source.notes:
                writer.keep(note)
            for damage in source.damage:
                writer.keep(Note("damage", damage))
            if not any(note.what == "ended" for note in source.notes):
                writer.keep(Note("ended", "converted", writer.sequence))
    return count
