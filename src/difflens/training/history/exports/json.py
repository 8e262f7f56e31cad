"""JSON: one object with the info, a line per frame, then notes and damage; nothing is lost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from difflens.core.whole_file import whole_file

from ..exported import spread_frames
from ..frame import Frame, is_missing
from . import exporter

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...records.runs import RunInfo
    from .. import FrameSource

_SCHEMA = 1


@exporter()
def json(source: FrameSource, path: Path) -> int:
    """JSON: info, frames, notes and damage in one object."""
    wide = source.layout()
    count = 0
    with whole_file(path) as file:
        head = msgspec.json.encode({"schema_version": _SCHEMA, "info": wide.to_dict()})
        file.write(head.removesuffix(b"}") + b',\n"frames":[')
        for count, frame in enumerate(spread_frames(source, wide), 1):
            file.write(b"\n" if count == 1 else b",\n")
            file.write(msgspec.json.encode(_frame_fields(frame, wide)))
        rest = {
            "notes": [note.to_dict() for note in source.notes],
            "damage": source.damage,
            "tail_bytes": source.tail_bytes,
        }
        file.write(b"\n],\n" + msgspec.json.encode(rest)[1:] + b"\n")
    return count


def _frame_fields(frame: Frame, wide: RunInfo) -> dict[str, Any]:
    """Return a frame by names; the values of a field are in the order of the layers."""
    return {
        "sequence": frame.sequence,
        "step": frame.step,
        "wall_time": _words(np.array([frame.wall_time]))[0],
        "monotonic_time": _words(np.array([frame.monotonic_time]))[0],
        "scalars": dict(zip(wide.scalars, _words(frame.scalars), strict=True)),
        "layers": {
            field: _words(values) for field, values in zip(wide.fields, frame.layers, strict=True)
        },
    }


def _words(values: NDArray[Any]) -> list[Any]:
    """Return numbers; what is not finite as its word, what is missing as null."""
    plain: list[Any] = values.tolist()
    for i in np.flatnonzero(~np.isfinite(values)):
        plain[i] = {np.inf: "Infinity", -np.inf: "-Infinity"}.get(plain[i], "NaN")
    for i in np.flatnonzero(is_missing(values)):
        plain[i] = None
    return plain
