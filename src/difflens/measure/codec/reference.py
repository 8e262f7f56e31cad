"""The codec in NumPy: the fallback where nothing was compiled, the oracle where it was."""

from __future__ import annotations

import numpy as np

from difflens.core.crc32c import crc32c

from . import dense, sparse
from .predict import add_product, scale
from .words import Buffer, Kind, words_of

__all__ = ["NAME", "add_product", "crc32c", "decode", "encode", "scale"]

NAME = "numpy"
_RAW, _SPARSE, _DENSE, _ALONE = range(4)
_CHEAP, _ALWAYS = 1, 2
_MOST = 1 << 22
_DAMAGED = "the chunk is damaged"


def encode(base: Buffer | None, target: Buffer, kind: Kind, back: int) -> bytes:
    """Code a chunk against another one, or alone where the base is None."""
    right = words_of(target, kind, _MOST)
    left = None if base is None else words_of(base, kind, _MOST)
    size, n = len(right) * kind[0], len(right)
    best = b""
    if left is not None:
        if len(left) != n:
            raise ValueError("the base has another size than the target")
        if np.array_equal(left, right):
            return b""
        best = sparse.encode(left, right, kind, back)
        if best and len(best) < n // 64 + 16:
            return best
        best = _better(best, dense.encode(left, right, kind, back), size, back)
    can_be_alone = left is None or back != _ALWAYS
    if can_be_alone and (left is None or len(best) > size // 2):
        best = _better(best, dense.encode_alone(right, kind), size, back)
    if can_be_alone and len(best) > size:
        best = _better(best, bytes([_RAW]) + bytes(memoryview(target).cast("B")), size, back)
    return best


def decode(data: Buffer, base: Buffer | None, out: Buffer, kind: Kind, backwards: bool) -> None:
    """Fill `out`; ValueError where the data are damaged."""
    data, view = bytes(data), memoryview(out).cast("B")
    n = len(words_of(view, kind, _MOST))
    left = None if base is None else words_of(base, kind, _MOST)
    if left is not None and len(left) != n:
        raise ValueError("the base has another size than the target")
    method = data[0] & 7 if data else None
    if method in (_RAW, _ALONE) and backwards:
        raise ValueError("the chunk cannot be applied backwards")
    if method == _RAW and data[0] == 0 and len(data) == len(view) + 1:
        view[:] = data[1:]
        return
    if method == _ALONE:
        view[:] = dense.decode_alone(data, n, kind).tobytes()
        return
    if left is None or method not in (None, _SPARSE, _DENSE):
        raise ValueError(_DAMAGED)
    if method == _SPARSE:
        left = sparse.decode(data, left, kind, backwards)
    elif method == _DENSE:
        left = dense.decode(data, left, kind, backwards)
    view[:] = left.tobytes()


def _better(first: bytes, second: bytes, size: int, back: int) -> bytes:
    """Return the shorter one; data that run backwards may take a tenth more where that is cheap."""
    if not first:
        return second
    if back == _CHEAP and _runs_back(first) != _runs_back(second):
        these, others = (first, second) if _runs_back(first) else (second, first)
        most = min(len(others) + len(others) // 10 + 64, size + size // 1000 + 64)
        return these if len(these) <= most else others
    return second if len(second) < len(first) else first


def _runs_back(data: bytes) -> bool:
    return data[0] & 7 in (_SPARSE, _DENSE) and bool(data[0] >> 6 & 1)
