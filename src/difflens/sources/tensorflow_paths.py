"""Which checkpoint is meant: a prefix, an index, a `checkpoint` file, or the folder it lies in.

checkpoint        text: model_checkpoint_path: "ckpt-2", which is the prefix of
ckpt-2.index      and its shards
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from ..errors import CorruptFile
from ..escape import for_terminal, visible
from .files import File, is_file
from .tensorflow import Checkpoint

_STATE = "checkpoint"
_LATEST = re.compile(r'^model_checkpoint_path: *"([^"\\\n]*)"', re.MULTILINE)


def index_of(path: Path) -> Path | None:
    """Give the index file a prefix stands for: `model` for `model.index`."""
    beside = path.parent / f"{path.name}.index"
    return beside if path.name and is_file(beside) else None


def is_checkpoint(path: Path) -> bool:
    """Does this name a checkpoint: a prefix, or a folder whose `checkpoint` file says which?"""
    return index_of(path) is not None or is_file(path / _STATE)


def open_checkpoint(path: Path, limits: Mapping[str, int]) -> Checkpoint:
    """Open the checkpoint that a prefix, an index, a `checkpoint` file or a folder names."""
    if path.name == _STATE and is_file(path):
        path = path.parent
    index = path if path.suffix == ".index" and is_file(path) else index_of(path)
    file = File(index or _latest(path, limits), limits)
    try:
        return Checkpoint(file)
    except BaseException:
        file.close()
        raise


def _latest(folder: Path, limits: Mapping[str, int]) -> Path:
    """Read which checkpoint of a folder is the latest; only one that lies there can be meant."""
    where = visible(str(folder / _STATE))
    file = File(folder / _STATE, limits)
    try:
        text = file.read(0, min(file.size, 1 << 20)).decode("utf-8", "replace")
    finally:
        file.close()
    found = _LATEST.search(text)
    if not found:
        raise CorruptFile(where, "it names no model_checkpoint_path")
    name = found.group(1).rpartition("/")[2]  # an absolute path is that of the writer's machine
    index = index_of(folder / name) if name else None
    if index is None:
        reason = f"it names the checkpoint '{for_terminal(name)}', which is not there"
        raise CorruptFile(where, reason, hint="name the .index file itself")
    return index
