"""JSON lines: an object per step, scalars by name, layers below `layers` or as `grad_norm/NAME`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from difflens.core.errors import RunError

from ..foreign import STEPS, WALL_TIMES, Column, Gathered, Lines, column_of, number_of, step_of
from . import importer

if TYPE_CHECKING:
    from .. import FrameSource

_DEEPEST = 4
_TIMES = (*WALL_TIMES, "sequence", "monotonic_time")


def _recognise(path: Path, head: bytes) -> bool:
    """Is its first line an object by itself, or does its name say so?"""
    if head.lstrip(b"\xef\xbb\xbf \r\n\t")[:1] != b"{":
        return False
    if path.suffix.lower() in (".jsonl", ".ndjson"):
        return True
    first, end, _ = head.partition(b"\n")
    parsed = _parsed(first.decode("utf-8-sig", "replace")) if end else None
    return isinstance(parsed, dict) and any(name in parsed for name in STEPS)


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


@importer(recognise=_recognise)
def jsonl(path: Path) -> FrameSource:
    """JSON lines: one object per step."""
    gathered, lines = Gathered(path, "JSONL"), Lines(path)
    for line in lines:
        if not line.strip():
            continue
        parsed = _parsed(line)
        if parsed is None and not lines.whole:  # its writer has not finished it
            gathered.tail_bytes = len(line.encode())
            break
        if not isinstance(parsed, dict):
            raise RunError(path, f"line {lines.number}: a JSON object is wanted")
        add_numbers(parsed, gathered, f"line {lines.number}")
    return gathered.finish()


def add_numbers(found: dict[str, Any], gathered: Gathered, where: str) -> None:
    """Add the numbers of one object that was logged."""
    key = next((name for name in STEPS if name in found), None)
    if key is None:
        raise RunError(gathered.path, f"{where}: nothing says the step", hint=f"as {STEPS[0]}")
    step = step_of(found[key], gathered.path, where)
    wall = next((number_of(found[name]) for name in WALL_TIMES if name in found), None)
    for column, value in _values({name: each for name, each in found.items() if name != key}):
        number = number_of(value)
        if number is None:
            gathered.refuse(column[1])
        else:
            gathered.add(step, column, number, wall)


def _values(found: dict[str, Any]) -> Iterator[tuple[Column, Any]]:
    layers = found.get("layers")
    if isinstance(layers, dict):
        for layer, fields in layers.items():
            if isinstance(fields, dict):
                for field, value in fields.items():
                    if value is not None:
                        yield (column_of(f"{field}/x")[0] or field or "value", layer), value
            elif fields is not None:
                yield ("grad_l2", layer), fields
    else:
        layers = None
    for name, value in found.items():
        if name not in _TIMES and not (name == "layers" and layers is not None):
            yield from _flat(name, value, 0)


def _flat(name: str, value: Any, depth: int) -> Iterator[tuple[Column, Any]]:
    """Yield the numbers of nested objects by their paths."""
    if isinstance(value, dict) and depth < _DEEPEST:
        for key, inner in value.items():
            yield from _flat(f"{name}/{key}", inner, depth + 1)
    elif value is not None:
        yield column_of(name), value
