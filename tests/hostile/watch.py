"""Hears what our code does while it reads: an audit hook, and whose deeds it counts.

An audit hook cannot be taken away again, so there is one for the whole run; it
listens only while a test of this folder runs, and only to what our own code does.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

SOURCE = str(Path(__file__).parents[2] / "src" / "difflens")
CHILD = "hdf5_client.py"  # HDF5 is read in a child process, which this file starts
DEEDS = frozenset({
    "pickle.find_class", "os.system", "os.exec", "os.fork", "os.posix_spawn", "subprocess.Popen",
    "socket.connect", "socket.getaddrinfo", "marshal.loads", "shutil.unpack_archive",
    "mmap.__new__",
})  # fmt: skip
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Watch:
    """What our code did while it was watched."""

    def __init__(self) -> None:
        self.listening = False
        self.seen: list[str] = []

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.listening:
            return
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING
        if (writes or event in DEEDS) and self._is_ours():
            self.seen.append(f"{event} {arguments[:2]!r}"[:200])

    @staticmethod
    def _is_ours() -> bool:
        """Is the reading on the stack, and neither an import nor the child's one keeper?"""
        frame = sys._getframe(2)
        files = []
        while frame is not None:
            files.append(frame.f_code.co_filename)
            frame = frame.f_back  # type: ignore[assignment]
        reads = any(name.startswith(f"{SOURCE}/sources") for name in files)
        spared = any(name.endswith(CHILD) or "importlib" in name for name in files)
        return reads and not spared


WATCH = Watch()
sys.addaudithook(WATCH)
