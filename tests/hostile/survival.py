"""Opens damaged copies of a good file, one after another: clean errors or right values, soon."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from hostile.fuzz import mutants

from difflens.core.errors import DifflensError
from difflens.core.escape import visible
from difflens.models.formats import open_model

LONGEST_SECONDS = 10
MANY = int(os.environ.get("DIFFLENS_FUZZ", "5000"))

Values = dict[str, bytes]


def values(path: Path) -> Values:
    """Read a model whole."""
    model = open_model(path)
    try:
        found = {}
        for name, info in model.tensors.items():
            buffer = bytearray(info.size_bytes)
            assert model.read_into(name, 0, len(buffer), memoryview(buffer)) == len(buffer)
            found[name] = bytes(buffer)
        model.confirm()
        return found
    finally:
        model.close()


def survive(
    copies: Iterable[bytes], path: Path, agrees: Callable[[bytes, Values], bool] | None = None
) -> int:
    """Count the copies that opened; what opened must agree with the reference."""
    opened = 0
    for data in copies:
        path.write_bytes(data)
        began = time.monotonic()
        try:
            found = values(path)
        except DifflensError as error:
            said = str(error)
        else:
            said = ""
            opened += 1
            assert agrees is None or agrees(data, found)
        assert visible(said) == said
        assert "invalid" not in said
        assert time.monotonic() - began < LONGEST_SECONDS
    return opened


def cut(good: bytes) -> Iterator[bytes]:
    """Yield the file cut at every byte."""
    return (good[:length] for length in range(len(good)))


def damaged(good: bytes, seed: int, count: int) -> Iterator[bytes]:
    """Yield mutants of the house."""
    return mutants(good, seed, count)
