"""TensorBoard: scalars of event files, one file or all of a folder; tags name layers or scalars."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from difflens.core.errors import RunError
from difflens.core.escape import for_terminal

from ..events import Damaged, event_of, is_event_file, records
from ..foreign import Column, Gathered, column_of
from . import importer

if TYPE_CHECKING:
    from .. import FrameSource

_PATTERN = "*tfevents*"
_MOST_DAMAGE = 20


def _recognise(path: Path, head: bytes) -> bool:
    """Is it an event file, or a folder that holds some?"""
    if path.is_dir():
        return any(path.glob(_PATTERN)) or any(path.glob(f"*/{_PATTERN}"))
    return "tfevents" in path.name or is_event_file(head)


@importer(recognise=_recognise)
def tensorboard(path: Path) -> FrameSource:
    """TensorBoard event files: `grad_norm/LAYER` and the like are layers, other tags scalars."""
    gathered = Gathered(path, "TensorBoard")
    columns: dict[str, Column] = {}
    others = 0
    for file in _files(path):
        others += _read(file, gathered, columns)
    if others:
        gathered.damage.append(f"{others} summaries are no scalars, they were left out")
    return gathered.finish()


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(path.glob(_PATTERN))
    if files:
        return files
    folders = sorted({each.parent for each in path.glob(f"*/{_PATTERN}")})
    if len(folders) > 1:
        names = ", ".join(for_terminal(each.name, 80) for each in folders[:10])
        raise RunError(path, f"it holds {len(folders)} runs", hint=f"name one of: {names}")
    return sorted(folders[0].glob(_PATTERN))


def _read(path: Path, gathered: Gathered, columns: dict[str, Column]) -> int:
    """Read one file; give how many summaries were no scalars."""
    others, bad, number, read = 0, 0, 0, 0
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            for number, data in enumerate(records(file, size), 1):
                read = file.tell()
                try:
                    if data is None:
                        raise Damaged("its checksum is another")
                    event = event_of(data)
                except Damaged as error:
                    bad += 1
                    if bad <= _MOST_DAMAGE:
                        gathered.damage.append(f"{path.name}: record {number}: {error}")
                    continue
                others += event.others
                for tag, value in event.values:
                    if tag not in columns:
                        columns[tag] = column_of(tag)
                    gathered.add(event.step, columns[tag], value, event.wall_time)
        gathered.tail_bytes += size - read
    except Damaged as error:
        gathered.damage.append(f"{path.name}: {error}, the rest was left out")
    except OSError as error:
        raise RunError(path, (error.strerror or str(error)).lower()) from error
    return others
