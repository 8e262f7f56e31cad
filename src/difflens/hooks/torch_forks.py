"""Tells the hooks that a fork inherits that they are elsewhere: they record nothing there.

Asking the system for the process at every step would be a call each time.
"""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Inherited(Protocol):
    """What a fork may inherit."""

    is_elsewhere: bool


_at_home: WeakSet[Inherited] = WeakSet()


def at_home(hook: Inherited) -> None:
    """Remember a hook as one of this process, for as long as it lives."""
    _at_home.add(hook)


def _stay_behind() -> None:
    for each in list(_at_home):
        each.is_elsewhere = True


os.register_at_fork(after_in_child=_stay_behind)
