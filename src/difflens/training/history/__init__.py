"""Runs: frames over steps in a file that only grows, and their history in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from difflens.core.errors import RunError

if TYPE_CHECKING:
    from ..records.runs import Note, RunInfo
    from .frame import Frame
    from .history import History


class FrameSource(Protocol):
    """Frames from somewhere: a run of ours, or a foreign log read as one."""

    path: Path
    info: RunInfo  # the layout of the frame yielded last, and before the first of all
    notes: list[Note]
    damage: list[str]
    tail_bytes: int

    def frames(self) -> Iterator[Frame]:
        """Yield what is there now; a later call goes on from there."""

    def layout(self) -> RunInfo:
        """Return what all frames hold together, wherever the layout changes."""

    def close(self) -> None:
        """Let go of the files."""


def frame_files(folder: Path) -> list[Path]:
    """Name the files of a run folder, by rank; a folder that may not be read is an error."""
    try:
        names = [each.name for each in folder.iterdir()]
    except OSError as error:  # what `glob` passes over in silence
        raise RunError(folder, (error.strerror or str(error)).lower()) from error
    return [folder / name for name in sorted(names) if fnmatchcase(name, "frames-*.dlr")]


def open_run(path: str | Path, rank: int | None = None) -> FrameSource:
    """Open a run folder, a file of one rank, or a foreign log (CSV, JSONL, TensorBoard, …)."""
    from .reader import RunReader

    path = Path(path)
    if path.is_dir():
        files = frame_files(path)
        wanted = [each for each in files if rank is None or each.stem == f"frames-{rank:03d}"]
        if wanted:
            return RunReader(wanted[0])
        if files:
            raise RunError(path, f"it has no file of rank {rank}, only {len(files)} others")
    elif path.suffix == ".dlr":
        return RunReader(path)
    from .imports import open_foreign

    return open_foreign(path)


def read_history(path: str | Path, rank: int | None = None) -> History:
    """Read a whole run in bounded memory; damage and a torn tail are reported, not raised."""
    source = open_run(path, rank)
    try:
        return history_of(source)
    finally:
        source.close()


def history_of(source: FrameSource) -> History:
    """Gather the frames a source has now."""
    from .building import Builder

    first: RunInfo | None = source.info
    builder = Builder(source.info)
    for frame in source.frames():
        if first is not None and source.info is not first:
            builder.describe(source.layout())  # room for all that will come, made once
            first = None
        builder.add(frame, source.info)
    for note in source.notes:
        builder.note(note)
    damage = [*source.damage]
    if source.tail_bytes:
        damage.append(f"{source.tail_bytes} bytes at the end are incomplete, they were left out")
    return builder.history(tuple(damage))
