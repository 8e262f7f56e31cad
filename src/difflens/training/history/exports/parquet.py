"""Parquet: the columns of the CSV with their types, in groups of rows of bounded size."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from difflens.core.errors import MissingExtra
from difflens.core.whole_file import whole_file

from ..exported import TIMES, columns_of, spread_frames
from ..format import frame_size
from ..frame import Frame, is_missing
from . import exporter

if TYPE_CHECKING:
    from ...records.runs import RunInfo
    from .. import FrameSource

_GROUP = 64 << 20  # bytes of a group of rows, more or less
_MOST_ROWS = 1 << 16


@exporter()
def parquet(source: FrameSource, path: Path) -> int:
    """Parquet: a row per frame, float64 scalars and float32 layers, null if not recorded."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as tables
    except ImportError as error:
        raise MissingExtra("writing Parquet", "parquet") from error
    wide = source.layout()
    scalars, layers = columns_of(wide)
    fields = [
        pa.field(
            name,
            pa.uint64() if name == "sequence" else pa.int64() if name == "step" else pa.float64(),
        )
        for name in TIMES
    ]
    fields += [pa.field(name, pa.float64()) for name in scalars]
    fields += [pa.field(name, pa.float32()) for name in layers]
    about = {"difflens.run": msgspec.json.encode(wide)}
    schema = pa.schema(fields, metadata=about)
    count = 0
    with whole_file(path) as file, tables.ParquetWriter(file, schema) as writer:
        for group in _groups(spread_frames(source, wide), wide):
            columns = [
                pa.array(each, type=field.type, mask=mask)
                for (each, mask), field in zip(_columns(group), schema, strict=True)
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))
            count += len(group)
    return count


def _groups(frames: Iterator[Frame], wide: RunInfo) -> Iterator[list[Frame]]:
    rows = min(max(16, _GROUP // frame_size(wide)), _MOST_ROWS)
    group: list[Frame] = []
    for frame in frames:
        # Copied: a frame may be a view into a piece of the file that is much larger.
        group.append(frame._replace(scalars=frame.scalars.copy(), layers=frame.layers.copy()))
        if len(group) == rows:
            yield group
            group = []
    if group:
        yield group


def _columns(group: list[Frame]) -> Iterator[tuple[Any, Any]]:
    """Yield the values of each column and where nothing was recorded."""
    for i, dtype in enumerate((np.uint64, np.int64, np.float64, np.float64)):
        yield np.array([frame[i] for frame in group], dtype), None
    for values in (
        np.stack([frame.scalars for frame in group]),
        np.stack([frame.layers.reshape(-1) for frame in group]),
    ):
        columns = np.ascontiguousarray(values.T)
        masks = is_missing(columns)
        for column, mask in zip(columns, masks, strict=True):
            yield column, mask if mask.any() else None
