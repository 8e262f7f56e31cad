"""What all laws share: a broken law is one sentence, raised; and a watch over what code does.

The watch sees imports, programs, sockets and writes while a plug-in runs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from difflens.core.registry import Entry, Registry

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_DEEDS = frozenset(
    """
    compile ctypes.dlopen exec import mmap.__new__ os.exec os.fork os.mkdir os.posix_spawn
    os.remove os.rename os.rmdir os.symlink os.system pickle.find_class socket.connect
    socket.getaddrinfo subprocess.Popen
""".split()
)
_watchers: list[list[str]] = []
_hooked: list[bool] = []


def hold(condition: object, sentence: str) -> None:
    """Raise with the sentence unless the condition is true; works with `python -O` too."""
    if not condition:
        raise AssertionError(sentence)


def registered(registry: Registry[Any], plugin: Any) -> Entry:
    """Return the entry of a plug-in; raise if it is not registered."""
    for entry in registry:
        if entry.plugin is plugin:
            return entry
    known = ", ".join(registry.names())
    raise AssertionError(f"{plugin!r} is not a registered {registry.kind}; registered are: {known}")


def is_described(entry: Entry) -> None:
    """Check that `difflens list` has one line to show for it."""
    hold(entry.summary, f"{entry.name}: its docstring is empty, and is what `difflens list` shows")
    hold(len(entry.summary) <= 100, f"{entry.name}: the first line of its docstring is too long")


@contextmanager
def deeds() -> Iterator[list[str]]:
    """Yield a list that is filled with what the block does.

    Reading files does not count, nor does starting our own interpreter isolated (`-I`): a reader
    may do that to run an untrusted parser outside of this process.
    """
    if not _hooked:  # an audit hook cannot be removed, so there is one for all
        sys.addaudithook(_note)
        _hooked.append(True)
    done: list[str] = []
    _watchers.append(done)
    try:
        yield done
    finally:
        _watchers.remove(done)


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if not _watchers:
        return
    # A number is a descriptor that is already open: a pipe to a child, not a file.
    named = event == "open" and not isinstance(arguments[0], int)
    wrote = named and bool(int(arguments[2] or 0) & _WRITES)
    if (wrote or event in _DEEDS) and not _is_isolated(event, arguments):
        text = f"{event} {arguments[0] if arguments else ''!r}"
        for done in _watchers:
            done.append(text)


def _is_isolated(event: str, arguments: tuple[Any, ...]) -> bool:
    return event == "subprocess.Popen" and list(arguments[1])[:2] == [sys.executable, "-I"]
