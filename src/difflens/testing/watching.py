"""A watch over what code does to the machine while it reads: imports, programs, sockets, writes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_DEEDS = frozenset({
    "compile", "ctypes.dlopen", "exec", "import", "mmap.__new__", "os.exec", "os.fork", "os.mkdir",
    "os.posix_spawn", "os.remove", "os.rename", "os.rmdir", "os.symlink", "os.system",
    "pickle.find_class", "socket.connect", "socket.getaddrinfo", "subprocess.Popen",
})  # fmt: skip
_watchers: list[list[str]] = []
_hooked: list[bool] = []


@contextmanager
def deeds() -> Iterator[list[str]]:
    """Give a list that fills with what is done inside the block.

    Reading files is no deed, nor is starting our own interpreter alone (`-I`), which a reader may
    do to keep a parser it does not trust out of this process.
    """
    if not _hooked:  # an audit hook can never be taken out again: one for all
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
    # A number is a descriptor that is open already: a pipe to a child, no file.
    named = event == "open" and not isinstance(arguments[0], int)
    wrote = named and bool(int(arguments[2] or 0) & _WRITES)
    if (wrote or event in _DEEDS) and not _is_isolated(event, arguments):
        text = f"{event} {arguments[0] if arguments else ''!r}"
        for done in _watchers:
            done.append(text)


def _is_isolated(event: str, arguments: tuple[Any, ...]) -> bool:
    return event == "subprocess.Popen" and list(arguments[1])[:2] == [sys.executable, "-I"]
