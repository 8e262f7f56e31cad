"""TLS over a socket, many records at a time.

The socket of Python's `ssl` asks the system twice for each record of 16 KiB. Here one call brings
up to 256 KiB, which takes a quarter less processor time (docs/decisions.md).
"""

from __future__ import annotations

import io
import socket
import ssl
from collections.abc import Callable
from typing import Any, TypeVar, cast

_AT_ONCE = 256 * 1024

Result = TypeVar("Result")


class EncryptedSocket:
    """What `http.client` asks of a socket, encrypted."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, name: str) -> None:
        """Agree with the server on a key, and check who it is."""
        self._sock = sock
        self._received, self._to_send = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._received, self._to_send, server_hostname=name)
        self._buffer = memoryview(bytearray(_AT_ONCE))
        self._exchange(self._tls.do_handshake)

    def sendall(self, data: bytes) -> None:
        """Encrypt and send."""
        self._exchange(lambda: self._tls.write(data))

    def recv_into(self, buffer: memoryview) -> int:
        """Wait for some bytes, and take all that came with them; 0 at the end."""
        count = 0
        try:
            count = self._exchange(lambda: self._read(buffer))
            while count and (rest := buffer[count:]):
                more = self._read(rest)
                count += more
                if not more:
                    break
        except (ssl.SSLWantReadError, ssl.SSLZeroReturnError, ssl.SSLEOFError):
            pass  # no further record is here as a whole
        return count

    def makefile(self, mode: str) -> io.BufferedReader:
        """Return a file that reads from it."""
        del mode
        return io.BufferedReader(_Reader(self))

    def shutdown(self, how: int) -> None:
        """Wake whoever reads from it."""
        self._sock.shutdown(how)

    def close(self) -> None:
        """Close the connection."""
        self._sock.close()

    def _read(self, buffer: memoryview) -> int:
        return cast("int", self._tls.read(len(buffer), buffer))  # bytes only without a buffer

    def _exchange(self, act: Callable[[], Result]) -> Result:
        """Do something that needs the server, as often as it needs more from it."""
        while True:
            try:
                result = act()
            except ssl.SSLWantReadError:
                self._send()
                self._receive()
            else:
                self._send()
                return result

    def _send(self) -> None:
        if self._to_send.pending:
            self._sock.sendall(self._to_send.read())

    def _receive(self) -> None:
        count = self._sock.recv_into(self._buffer)
        if count:
            self._received.write(self._buffer[:count])
        else:
            self._received.write_eof()


class _Reader(io.RawIOBase):
    """The reading side, as a file."""

    def __init__(self, sock: EncryptedSocket) -> None:
        self._sock = sock

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read some bytes; 0 at the end."""
        return self._sock.recv_into(memoryview(buffer))
