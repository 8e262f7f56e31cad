"""Objects with state in other processes: described by how they are made, and made once in each.

A file has a descriptor, a stream the place it was unpacked to. So these pickle as the call that
makes them, and however many tasks name the same one, a process makes it once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

Made = TypeVar("Made")

_MOST = 4096  # objects that a process keeps

Call = tuple[Callable[..., Any], tuple[Any, ...]]


def make_once(make: Callable[..., Made], *arguments: Any) -> Made:
    """Make it, or return the one that was made by the same call before."""
    made: Made = _make(make, *arguments)
    return made


@lru_cache(_MOST)
def _make(make: Callable[..., Any], *arguments: Any) -> Any:
    return make(*arguments)


def forget() -> None:
    """Let go of all objects; who still holds one can use it further."""
    _make.cache_clear()


def as_call(make: Callable[..., Any], *arguments: Any) -> Call:
    """Return what `__reduce__` returns for an object that is made once per process."""
    return make_once, (make, *arguments)
