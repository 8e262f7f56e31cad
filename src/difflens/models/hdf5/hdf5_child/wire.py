"""What the child says and hears, and the file it is allowed to see."""

import json
import os
import struct
from typing import Any

HEADER = struct.Struct("<cQQ")
LENGTH = struct.Struct("<Q")

_BLOCK = 1 << 16  # HDF5 reads its headers in crumbs: so much is asked for at a time
_MOST_BLOCKS = 64


class Refusal(Exception):
    """What the parent raises: a kind of error it knows, the words, the hint."""

    def __init__(self, kind: str, reason: str, hint: str = "") -> None:
        """Keep the parts."""
        super().__init__(reason)
        self.kind, self.reason, self.hint = kind, reason, hint


def receive_into(view: memoryview) -> None:
    """Wait for that many bytes; a parent that is gone ends us."""
    while view:
        got = os.readv(0, [view])
        if not got:
            os._exit(0)
        view = view[got:]


def receive() -> Any:
    """Wait for a request."""
    head = bytearray(LENGTH.size)
    receive_into(memoryview(head))
    body = bytearray(LENGTH.unpack(head)[0])
    receive_into(memoryview(body))
    return json.loads(body)


def send(kind: bytes, first: int, second: int = 0, body: bytes | memoryview = b"") -> None:
    """Say one thing to the parent."""
    for part in (HEADER.pack(kind, first, second), body):
        view = memoryview(part)
        while view:
            view = view[os.write(1, view) :]


def say(**what: Any) -> None:
    """Send JSON."""
    body = json.dumps(what).encode()
    send(b"j", len(body), 0, body)


class Remote:
    """The file as h5py wants one; its bytes are asked for, or were held from the start."""

    def __init__(self, size: int, held: bytearray | None) -> None:
        """Store the size; nothing is read yet."""
        self._size, self._at, self._held = size, 0, held
        self._blocks: dict[int, memoryview] = {}

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move to a place."""
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def tell(self) -> int:
        """Return the place."""
        return self._at

    def read(self, size: int) -> bytes:
        """Return bytes; h5py takes for a file what can do this."""
        data = bytearray(size)
        self.readinto(data)
        return bytes(data)

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer; HDF5 has no right to bytes past the end, so there are no zeros there."""
        view = memoryview(buffer).cast("B")
        wanted, start = len(view), self._at
        if start + wanted > self._size:
            raise OSError(f"it wants bytes up to {start + wanted}, the file has {self._size}")
        self._at += wanted
        if wanted >= _BLOCK:
            self._fetch(start, view)
            return wanted
        while view:
            index, skipped = divmod(start, _BLOCK)
            part = self._block(index)[skipped : skipped + len(view)]
            view[: len(part)] = part
            view, start = view[len(part) :], start + len(part)
        return wanted

    def _block(self, index: int) -> memoryview:
        if index not in self._blocks:
            if len(self._blocks) >= _MOST_BLOCKS:
                self._blocks.clear()
            start = index * _BLOCK
            block = memoryview(bytearray(min(_BLOCK, self._size - start)))
            self._fetch(start, block)
            self._blocks[index] = block
        return self._blocks[index]

    def _fetch(self, start: int, view: memoryview) -> None:
        if self._held is not None:
            view[:] = memoryview(self._held)[start : start + len(view)]
            return
        send(b"r", start, len(view))
        receive_into(view)
