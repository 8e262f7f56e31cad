"""The parent's end of the HDF5 process: starts it, sends it bytes, limits its time, ends it.

The child holds neither the file nor its path: it asks for bytes, and is given those of the file
that is open here. So whatever is wrong with HDF5's library, it can see this one file.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn
from weakref import finalize

from difflens.core.errors import (
    CorruptFile,
    DifflensError,
    LimitExceeded,
    MissingExtra,
    UnknownFormat,
)
from difflens.core.escape import for_terminal, visible
from difflens.core.protocols import ModelFile

from .hdf5_child.wire import HEADER, LENGTH

if TYPE_CHECKING:
    from subprocess import Popen

_BOOT = "import sys; sys.path.extend(sys.argv[1:]); from hdf5_child.__main__ import main; main()"
_MEMORY = 2 << 30  # of addresses: libraries take a part, the largest chunk needs three times itself
_STEP = 1 << 20
_LONGEST_JSON = 64 << 20
_INHERITED = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")
_ENVIRONMENT = {
    "HDF5_PLUGIN_PATH": os.devnull,
    "HDF5_PLUGIN_PRELOAD": "::",  # no filter plug-in at all
    "HDF5_USE_FILE_LOCKING": "FALSE",
    "OPENBLAS_NUM_THREADS": "1",
}
_ERRORS = {"corrupt": CorruptFile, "limit": LimitExceeded, "unknown": UnknownFormat}


class Child:
    """A process that reads one HDF5 file for us, one request at a time."""

    def __init__(self, file: ModelFile, *, held: bool, matlab: bool) -> None:
        """Start it; `held` sends the complete file first, if it cannot be read at any place."""
        self.file, self._where = file, visible(str(file.path))
        self._seconds = file.limit("hdf5_seconds")
        self._lock = threading.RLock()
        self._failed: BaseException | None = None
        self._step = memoryview(bytearray(min(_STEP, file.size)))
        self._pipes = _start(self._where)
        self._end = finalize(self, self._pipes.end)
        self._deadline = monotonic() + self._seconds
        options = {
            "size": file.size,
            "held": held,
            "matlab": matlab,
            "memory": _MEMORY + (file.size if held else 0),
            "seconds": self._seconds,
            "bytes": file.limit("hdf5_bytes"),
            "ratio": file.limit("hdf5_ratio"),
        }
        with self._failing():
            self._request(options)
            if held:
                self._send_file(0, file.size)

    def listing(self) -> Iterator[dict[str, Any]]:
        """Yield what the child says of the file, until it has said all."""
        with self._lock, self._failing():
            self._request({"do": "list"})
            while True:
                said = self._receive_message(memoryview(b""))
                if isinstance(said, dict):
                    yield said
                    if "end" in said:
                        return

    def read_into(self, index: int, start: int, stop: int, buffer: memoryview) -> int:
        """Fill the buffer with bytes [start, stop) of the dataset."""
        with self._lock, self._failing():
            self._request({"do": "read", "index": index, "start": start, "stop": stop})
            done = 0
            while done < stop - start:
                said = self._receive_message(buffer[done : stop - start])
                done += said if isinstance(said, int) else 0
        return stop - start

    def close(self) -> None:
        """End the process; whoever waits for it hears so before the pipes are closed."""
        if self._end.alive:
            self._pipes.process.kill()
        with self._lock:
            self._end()

    def _failing(self) -> _Failing:
        return _Failing(self)

    def fail(self, error: BaseException) -> None:
        """Remember what went wrong: there is one child for a file, and it is not started again."""
        self._failed = self._failed or error
        self.close()

    def check(self) -> None:
        """Raise if it cannot be asked any more."""
        if isinstance(self._failed, DifflensError):
            raise self._failed
        if self._failed or not self._end.alive:
            raise DifflensError("its HDF5 process has ended", where=self._where)

    def _receive_message(self, buffer: memoryview) -> dict[str, Any] | int | None:
        """Receive one message: JSON, data into the buffer, or a request for bytes of the file."""
        head = bytearray(HEADER.size)
        self._receive(memoryview(head))
        kind, first, second = HEADER.unpack(head)
        if kind == b"r" and first + second <= self.file.size:
            self._send_file(first, first + second)
            return None
        # Asking for bytes for ever is no progress: only answers count.
        self._deadline = monotonic() + self._seconds
        if kind == b"d" and first <= len(buffer):
            self._receive(buffer[:first])
            return int(first)
        if kind != b"j" or first > _LONGEST_JSON:
            raise CorruptFile(self._where, "the HDF5 process answered out of turn")
        body = bytearray(first)
        self._receive(memoryview(body))
        said: dict[str, Any] = json.loads(body)
        if "error" in said:
            self._refuse(said)
        return None if "at_work" in said else said

    def _refuse(self, said: dict[str, Any]) -> NoReturn:
        if said["error"] == "missing":
            raise MissingExtra("reading HDF5", "hdf5")
        reason = for_terminal(" ".join(said["reason"].split()), 500).rstrip(".")
        for word in ("invalid", "Invalid"):
            reason = reason.replace(word, "malformed")
        raise _ERRORS[said["error"]](self._where, reason, hint=said["hint"])

    def _request(self, request: dict[str, Any]) -> None:
        self._deadline = monotonic() + self._seconds
        body = json.dumps(request).encode()
        self._send(memoryview(LENGTH.pack(len(body)) + body))

    def _send_file(self, start: int, stop: int) -> None:
        """Send the child bytes of the file, a step at a time."""
        while start < stop:
            view = self._step[: min(len(self._step), stop - start)]
            self.file.read_into(start, view)
            self._send(view)
            start += len(view)

    def _send(self, view: memoryview) -> None:
        pipe = self._pipes.stdin
        while view:
            self._wait(pipe, select.POLLOUT)
            try:
                view = view[os.write(pipe, view) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                self._raise_ended()

    def _receive(self, view: memoryview) -> None:
        pipe = self._pipes.stdout
        while view:
            self._wait(pipe, select.POLLIN)
            got = os.readv(pipe, [view])
            if not got:
                self._raise_ended()
            view = view[got:]

    def _wait(self, pipe: int, event: int) -> None:
        """Wait until the pipe is ready, as long as the clock allows."""
        waiting = select.poll()
        waiting.register(pipe, event)
        left = self._deadline - monotonic()
        if left <= 0 or not waiting.poll(left * 1000):
            reason = f"HDF5 made no progress for {self._seconds} seconds and was stopped"
            hint = "raise it with --limit hdf5_seconds=N"
            raise LimitExceeded(self._where, reason, hint=hint)

    def _raise_ended(self) -> NoReturn:
        """Raise an error that says how the child ended."""
        code = self._pipes.process.wait()
        if code == -signal.SIGKILL:
            raise LimitExceeded(
                self._where, "the system killed its HDF5 process, memory may be short"
            )
        if code == -signal.SIGXCPU:
            raise LimitExceeded(self._where, "HDF5 took too long and was stopped")
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        said = os.read(self._pipes.stderr, 4096)
        last = said.decode("utf-8", "replace").strip().rpartition("\n")[2]
        why = f": {for_terminal(last.replace('nvalid', 'alformed'), 200)}" if last else ""
        raise CorruptFile(self._where, f"HDF5's library crashed on it ({how}){why}")


class _Failing:
    """Ends the child whenever something goes wrong: what it says next would be out of step."""

    def __init__(self, child: Child) -> None:
        self._child = child

    def __enter__(self) -> None:
        self._child.check()

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if isinstance(error, LookupError | TypeError | ValueError | RecursionError):
            said = CorruptFile(self._child._where, "the HDF5 process answered out of turn")  # noqa: SLF001
            self._child.fail(said)
            raise said from error
        if error is not None:
            self._child.fail(error)


class _Process(NamedTuple):
    """The child, and our ends of its pipes."""

    process: Popen[bytes]
    stdin: int
    stdout: int
    stderr: int

    def end(self) -> None:
        """Kill it: it has nothing to lose."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.stdin, self.stdout, self.stderr):
            os.close(pipe)


def _is_here(path: str) -> bool:
    """Is this the working folder? Modules that lie there are not ours; it may be gone as well."""
    try:
        return Path(path) == Path.cwd()
    except OSError:
        return False


def _start(where: str) -> _Process:
    """Start Python with no user's settings, no plug-in folder, and h5py where ours would be."""
    import subprocess

    paths = [each for each in sys.path if each and not _is_here(each)]
    command = [sys.executable, "-I", "-S", "-B", "-X", "utf8", "-c", _BOOT]
    environment = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    pipes = [os.pipe() for _ in range(3)]
    (child_in, ours_in), (ours_out, child_out), (ours_error, child_error) = pipes
    try:
        process = subprocess.Popen(  # noqa: S603  our own interpreter on our own code
            [*command, *paths, str(Path(__file__).parent)],
            stdin=child_in,
            stdout=child_out,
            stderr=child_error,
            env=environment | _ENVIRONMENT,
            cwd="/",
        )
    except OSError as error:
        for pipe in (ours_in, ours_out, ours_error):
            os.close(pipe)
        reason = f"the process that reads HDF5 cannot be started: {os.strerror(error.errno or 0)}"
        raise DifflensError(reason.lower(), where=where) from error
    finally:
        for pipe in (child_in, child_out, child_error):
            os.close(pipe)
    os.set_blocking(ours_in, False)
    return _Process(process, ours_in, ours_out, ours_error)
