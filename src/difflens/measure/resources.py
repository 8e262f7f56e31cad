"""Limits for measures that run side by side: one thread each for OpenBLAS, one share of memory.

Two layers of threads fight for the same cores: on two of them, eigenvalues of a 1024 x 1024 matrix
took six times as long. One thread per matrix also gives the same bits whatever their number.
`threadpoolctl` would be a dependency for one call; other libraries than OpenBLAS are left as they
are.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from threading import Condition, Lock
from typing import Any

_PREFIXES = ("scipy_openblas", "openblas")
_SUFFIXES = ("64_", "")
_lock = Lock()
_inside = 0
_before: list[tuple[Any, int]] = []


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
            _before = [(put, get()) for get, put in _controls()]
            for put, _ in _before:
                put(1)
        _inside += 1


def _leave() -> None:
    global _inside  # noqa: PLW0603
    with _lock:
        _inside -= 1
        if _inside == 0:
            for put, count in _before:
                put(count)


def _controls() -> list[tuple[Any, Any]]:
    """Find the functions that get and set the threads of each OpenBLAS of NumPy and SciPy.

    SciPy's is left alone where nobody has imported SciPy: opening it takes 20 ms.
    """
    packages = ("numpy", "scipy") if "scipy" in sys.modules else ("numpy",)
    return [each for package in packages for each in _controls_of(package)]


@cache
def _controls_of(package: str) -> tuple[tuple[Any, Any], ...]:
    import ctypes  # opens the process itself, which a refused file must not lead to

    controls = []
    for path in _libraries(package):
        with suppress(OSError):
            library = ctypes.CDLL(str(path))
            controls += [
                (getattr(library, f"{prefix}_get_num_threads{suffix}"), put)
                for prefix in _PREFIXES
                for suffix in _SUFFIXES
                if (put := getattr(library, f"{prefix}_set_num_threads{suffix}", None))
            ][:1]
    return tuple(controls)


def _libraries(package: str) -> list[Path]:
    import numpy as np

    packages = Path(np.__file__).parents[1]
    places = packages / f"{package}.libs", packages / package / ".dylibs"
    return sorted(path for place in places for path in place.glob("*openblas*"))


LIMIT = 600 << 20  # bytes that whole-tensor measures may hold together


class MemoryLimit:
    """A number of bytes to share; a measure that needs more than is free waits, or runs alone."""

    def __init__(self, limit: int = LIMIT) -> None:
        """Begin with all of it free."""
        self.limit = limit
        self._used = 0
        self._changed = Condition()

    @contextmanager
    def __call__(self, size_bytes: int) -> Iterator[None]:
        """Reserve bytes; what needs more than the limit runs while nothing else does.

        >>> memory = MemoryLimit(10)
        >>> with memory(7):
        ...     memory.used
        7
        """
        with self._changed:
            self._changed.wait_for(lambda: not self._used or self._used + size_bytes <= self.limit)
            self._used += size_bytes
        try:
            yield
        finally:
            with self._changed:
                self._used -= size_bytes
                self._changed.notify_all()

    @property
    def used(self) -> int:
        """How many bytes are held now."""
        return self._used


memory = MemoryLimit()
