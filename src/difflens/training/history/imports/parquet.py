"""Parquet: what `export --to parquet` wrote, some rows at a time.

The info is in the file's metadata and says which columns there must be. Rows are counted against
the bytes of the file, and only the packing that the exporter uses is unpacked: so what a file
declares cannot cost more than it holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from difflens.core.errors import MissingExtra, RunError
from difflens.core.escape import for_terminal

from ...records.runs import Note, RunInfo
from ..exported import TIMES, columns_of
from ..format import frame_size, info_of
from ..frame import MISSING, MISSING_SCALAR, Frame, is_any_recorded
from . import importer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .. import FrameSource

_BATCH = 16 << 20  # bytes of the rows that are unpacked at once, more or less
_MOST_ROWS = 1 << 14
_PACKINGS = {"SNAPPY", "UNCOMPRESSED"}
_KEY = b"difflens.run"
_HINT = "only what `difflens export --to parquet` wrote can be read"


def _recognise(_path: Path, head: bytes) -> bool:
    """Does it begin with the four letters of Parquet?"""
    return head.startswith(b"PAR1")


@importer(recognise=_recognise)
def parquet(path: Path) -> FrameSource:
    """Parquet of `difflens export --to parquet`."""
    try:
        import pyarrow.parquet as tables
    except ImportError as error:
        raise MissingExtra("reading Parquet", "parquet") from error
    with _one_line_errors(path):
        return _Exported(path, tables.ParquetFile(path))


class _Exported:
    """The run in the file."""

    def __init__(self, path: Path, file: Any) -> None:
        self.path, self._file = path, file
        self.notes: list[Note] = [Note("imported", "read from an exported Parquet file")]
        self.damage: list[str] = []
        self.tail_bytes = 0
        self.info = self._checked()
        rows = min(max(1, _BATCH // frame_size(self.info)), _MOST_ROWS)
        self._batches = file.iter_batches(batch_size=rows, use_threads=False)

    def _checked(self) -> RunInfo:
        about, schema = self._file.metadata, self._file.schema_arrow
        payload = (about.metadata or {}).get(_KEY)
        info = None if payload is None else info_of(memoryview(payload))
        if info is None:
            raise RunError(self.path, "its metadata hold no info of a run", hint=_HINT)
        scalars, layers = columns_of(info)
        names = [*TIMES, *scalars, *layers]
        kinds = ["uint64", "int64", "double", "double"]
        kinds += ["double"] * len(scalars) + ["float"] * len(layers)
        if schema.names != names or list(map(str, schema.types)) != kinds:
            raise RunError(self.path, "its columns are not those of the info", hint=_HINT)
        size = self.path.stat().st_size
        if about.num_rows > size:  # no two rows have one sequence: each takes a byte at least
            raise RunError(self.path, f"{about.num_rows} rows in {size} bytes", hint=_HINT)
        for group in map(about.row_group, range(about.num_row_groups)):
            packings = {group.column(i).compression for i in range(group.num_columns)}
            if packings - _PACKINGS:
                text = for_terminal(", ".join(sorted(packings - _PACKINGS)))
                raise RunError(self.path, f"it is packed by {text}", hint=_HINT)
        return info

    def layout(self) -> RunInfo:
        """Return what all frames hold together."""
        return self.info

    def frames(self) -> Iterator[Frame]:
        """Yield a frame per row."""
        scalars = len(TIMES) + len(self.info.scalars)
        shape = len(self.info.fields), len(self.info.layers)
        while (batch := self._next()) is not None:
            columns = batch.columns
            if any(each.null_count for each in columns[: len(TIMES)]):
                raise RunError(self.path, "a row without sequence, step or time", hint=_HINT)
            times = [column.to_numpy(zero_copy_only=False).tolist() for column in columns[:4]]
            values = _block(columns[len(TIMES) : scalars], batch.num_rows, MISSING_SCALAR)
            block = _block(columns[scalars:], batch.num_rows, MISSING)
            for row, (sequence, step, wall, monotonic) in enumerate(zip(*times, strict=True)):
                layers = block[row].reshape(shape)
                read = self.info.schema < 2 or is_any_recorded(layers)
                yield Frame(sequence, step, wall, monotonic, values[row], layers, read)

    def _next(self) -> Any:
        with _one_line_errors(self.path):
            return next(self._batches, None)

    def close(self) -> None:
        """Close the file, however far it was read."""
        self._file.close()


def _block(columns: list[Any], rows: int, missing: Any) -> NDArray[Any]:
    """Return the columns as rows of numbers; null is what was not recorded."""
    block = np.empty((rows, len(columns)), missing.dtype)
    for i, column in enumerate(columns):
        if column.null_count:
            block[:, i] = column.fill_null(0).to_numpy(zero_copy_only=False)
            block[column.is_null().to_numpy(zero_copy_only=False), i] = missing
        else:
            block[:, i] = column.to_numpy(zero_copy_only=False)
    return block


@contextmanager
def _one_line_errors(path: Path) -> Iterator[None]:
    """Turn any error of the library into one line."""
    try:
        yield
    except (RunError, MemoryError):
        raise
    except Exception as error:
        text = (str(error).splitlines() or [type(error).__name__])[0]
        reason = f"it cannot be read as Parquet: {for_terminal(text, 200)}"
        raise RunError(path, reason) from error
