"""Finds the rows of a tensor in another one: put in another order, or more or fewer of them."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

from difflens.core.protocols import TensorSource
from difflens.core.records import TensorInfo

from .chunks import read_range
from .recipes import Rows, row_bytes

_MOST_ROWS = 1 << 18  # more would take too much memory
_PIECE = 1 << 20


def find_rows(
    base: TensorSource, target: TensorSource, origin: TensorInfo, info: TensorInfo
) -> Rows:
    """Return which row of the base each row of the target is; one without a twin is its namesake.

    Rows are twins where all their bits are equal.
    """
    width, rows, limit = row_bytes(info), info.shape[0], origin.shape[0]
    places: dict[bytes, int] = {}
    if max(rows, limit) <= _MOST_ROWS:
        for number, key in enumerate(_keys(base, origin, width)):
            places.setdefault(key, number)
    runs: list[tuple[int, int]] = []
    keys = _keys(target, info, width) if places else (b"" for _ in range(rows))
    for number, key in enumerate(keys):
        twin = places.get(key, number)
        first = twin + 1 if twin < limit else 0
        before, count = runs[-1] if runs else (0, 0)
        if runs and first == (before + count if before else 0):
            runs[-1] = before, count + 1
        else:
            runs.append((first, 1))
    return Rows(width, tuple(runs))


def _keys(source: TensorSource, info: TensorInfo, width: int) -> Iterator[bytes]:
    """Yield the digest of every row."""
    step = max(_PIECE // width, 1) * width
    for start in range(0, info.size_bytes, step):
        stop = min(start + step, info.size_bytes)
        view = read_range(source, info.name, start, stop, memoryview(bytearray(stop - start)))
        for at in range(0, stop - start, width):
            yield blake2b(view[at : at + width], digest_size=12).digest()
