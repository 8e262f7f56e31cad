"""Keeps OpenBLAS to one thread while our own threads call it.

Two layers of threads fight for the same cores: on two of them, eigenvalues of a 1024 x 1024 matrix
took six times as long. One thread a matrix also gives the same bits whatever their number. The
road not taken is `threadpoolctl`, a dependency for one call; other libraries than OpenBLAS are
left as they are.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

_PREFIXES = ("scipy_openblas", "openblas")
_SUFFIXES = ("64_", "")
_lock = Lock()
_inside = 0
_before: list[int] = []


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Let BLAS use the calling thread alone, and give its threads back afterwards."""
    _enter()
    try:
        yield
    finally:
        _leave()


def _enter() -> None:
    global _inside, _before  # noqa: PLW0603  the library's setting is one for the process
    with _lock:
        if _inside == 0:
            _before = [get() for get, _ in _controls()]
            for _, put in _controls():
                put(1)
        _inside += 1


def _leave() -> None:
    global _inside  # noqa: PLW0603
    with _lock:
        _inside -= 1
        if _inside == 0:
            for (_, put), count in zip(_controls(), _before, strict=True):
                put(count)


@cache
def _controls() -> tuple[tuple[Any, Any], ...]:
    """Find how many threads each OpenBLAS that came with NumPy or SciPy has, and how to say it."""
    found = []
    for path in _libraries():
        with suppress(OSError):
            library = ctypes.CDLL(str(path))
            found += [
                (getattr(library, f"{prefix}_get_num_threads{suffix}"), put)
                for prefix in _PREFIXES
                for suffix in _SUFFIXES
                if (put := getattr(library, f"{prefix}_set_num_threads{suffix}", None))
            ][:1]
    return tuple(found)


def _libraries() -> list[Path]:
    import numpy as np

    packages = Path(np.__file__).parents[1]
    places = [packages / "numpy.libs", packages / "scipy.libs"]
    places += [packages / name / ".dylibs" for name in ("numpy", "scipy")]
    return sorted(path for place in places for path in place.glob("*openblas*"))
