"""`trainer_state.json`: what the Trainer of Hugging Face logged, also in a checkpoint's folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from difflens.core.errors import RunError

from ..foreign import Gathered
from . import importer
from .jsonl import add_numbers

if TYPE_CHECKING:
    from .. import FrameSource

NAME = "trainer_state.json"
_LARGEST = 1 << 27  # bytes


def _recognise(path: Path, head: bytes) -> bool:
    """Is it called so, does it hold a log history, or is it the folder of one?"""
    if not head:
        return path.is_dir() and (path / NAME).is_file()
    return head.lstrip()[:1] == b"{" and (path.name == NAME or b'"log_history"' in head)


@importer(recognise=_recognise)
def trainer_state(path: Path) -> FrameSource:
    """trainer_state.json of Hugging Face: loss, learning_rate, grad_norm, eval_loss."""
    file = path / NAME if path.is_dir() else path
    history = _history(file)
    gathered = Gathered(path if path.is_dir() else file, "trainer_state.json")
    for number, entry in enumerate(history, 1):
        where = f"entry {number} of log_history"
        if not isinstance(entry, dict):
            raise RunError(file, f"{where}: an object is wanted")
        numbers = {name: value for name, value in entry.items() if name != "layers"}
        add_numbers(numbers, gathered, where)
    return gathered.finish()


def _history(file: Path) -> list[Any]:
    try:
        size = file.stat().st_size
        if size > _LARGEST:
            raise RunError(file, f"too large: {size} bytes, the limit is {_LARGEST}")
        state = json.loads(file.read_text("utf-8"))
    except OSError as error:
        raise RunError(file, (error.strerror or str(error)).lower()) from error
    except (ValueError, RecursionError) as error:
        raise RunError(file, "it is not JSON") from error
    history = state.get("log_history") if isinstance(state, dict) else None
    if not isinstance(history, list):
        raise RunError(file, "it has no list log_history")
    return history
