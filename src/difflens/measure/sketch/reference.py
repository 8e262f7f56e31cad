"""The sketch in NumPy: the fallback where nothing was compiled, the oracle where it was.

It adds row after row, as the compiled one does, so that both give the same bits.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

NAME = "numpy"

BUCKETS, _WORDS = 1024, 32
_VIEWS = {
    f"{kind}{8 * size}": f"<{kind.lower()}{size}"
    for kind, sizes in (("F", (2, 4, 8)), ("I", (2, 4, 8)), ("U", (2, 4, 8)))
    for size in sizes
}
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_SHIFTS = np.arange(BUCKETS // _WORDS, dtype=np.uint32)[:, None]
_TOP = np.uint32(0x80000000)
_TOGETHER = 256  # rows that are in memory at a time

_Bytes = bytes | bytearray | memoryview


def add(data: _Bytes, form: str, row: int, table: _Bytes, sums: bytearray) -> None:
    """Add encoded elements, from row `row` on, to 1024 sums of F64."""
    values = _decode(np.frombuffer(data, np.uint8), form, np.frombuffer(table, np.float64))
    if row < 0 or len(sums) != 8 * BUCKETS:
        raise ValueError(f"row {row} and {len(sums)} bytes of sums cannot be")
    total = np.frombuffer(sums, np.float64)
    for start in range(0, len(values), _TOGETHER * BUCKETS):
        some = values[start : start + _TOGETHER * BUCKETS]
        _add_rows(some, row + start // BUCKETS, total)


def _add_rows(values: NDArray[np.float64], row: int, total: NDArray[np.float64]) -> None:
    count = -(-len(values) // BUCKETS)
    rows = np.zeros(count * BUCKETS)
    rows[: len(values)] = np.where(np.isfinite(values), values, 0.0)
    signs, rotations = _randomness(np.arange(row, row + count, dtype=np.uint64))
    signed = np.where(signs, -rows.reshape(count, BUCKETS), rows.reshape(count, BUCKETS))
    for each, rotation in zip(signed, rotations.tolist(), strict=True):
        total += np.roll(each, rotation)


def _randomness(rows: NDArray[np.uint64]) -> tuple[NDArray[np.bool_], NDArray[np.uint64]]:
    """Return which elements of each row change their sign, and by how much rows are rotated."""
    each = np.arange(_WORDS // 2 + 1, dtype=np.uint64)
    counters: NDArray[np.uint64] = rows[:, None] * np.uint64(len(each)) + each
    drawn = _draw(counters)
    words = np.ascontiguousarray(drawn[:, :-1]).astype("<u8").view("<u4")
    signs = (words[:, None, :] << _SHIFTS & _TOP) != 0
    rotations = np.where(rows == 0, np.uint64(0), drawn[:, -1] >> np.uint64(54))
    return signs.reshape(len(rows), BUCKETS), rotations


def _draw(counters: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return splitmix64 of the counters."""
    z = (counters + np.uint64(1)) * _GOLDEN
    z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    mixed: NDArray[np.uint64] = z ^ z >> np.uint64(31)
    return mixed


def _decode(codes: NDArray[np.uint8], form: str, table: NDArray[np.float64]) -> NDArray[Any]:
    if form == "BYTES" and len(table) == 256:
        return table[codes]
    if form == "NIBBLES" and len(table) == 16:
        return table[np.stack((codes & 15, codes >> 4), axis=-1).reshape(-1)]
    if form == "BF16":
        if len(codes) % 2:
            raise ValueError(f"{len(codes)} bytes are no whole number of elements")
        wide = codes.view("<u2").astype(np.uint32) << np.uint32(16)
        return wide.view(np.float32).astype(np.float64)
    if form not in _VIEWS or len(table):
        raise ValueError("the sketch cannot read such elements")
    return codes.view(_VIEWS[form]).astype(np.float64)
