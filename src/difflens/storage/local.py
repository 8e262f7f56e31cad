"""A model file on disk: opened once, read by position, and identified again before each read.

It is never mapped into memory: a mapped file that shrinks kills the process, while a read only
returns fewer bytes. A pool limits the number of open descriptors, so that a model of 10,000 shards
can be read if 256 files may be open.
"""

import errno
import os
import stat
import threading
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from weakref import WeakSet

from difflens.core.addresses import address_error
from difflens.core.errors import ChangedWhileReading, UnreadableFile
from difflens.core.escape import visible
from difflens.core.limits import limit_of
from difflens.core.once import Call, as_call

MOST_OPEN = 64
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK  # NONBLOCK: opening a pipe must not wait
_CROWDED = {errno.EMFILE, errno.ENFILE}
_CLOCK = count()

_REASONS = {
    errno.EACCES: "permission denied",
    errno.EIO: "the disk reported an error",
    errno.ELOOP: "too many links",
    errno.EMFILE: "too many open files",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ENFILE: "too many open files",
    errno.ENOENT: "no such file",
    errno.ENOTDIR: "a part of the path is not a folder",
    errno.EPERM: "permission denied",
    errno.ESTALE: "the network file system lost it",
}
_KINDS: dict[str, Callable[[int], bool]] = {
    "a folder": stat.S_ISDIR,
    "a pipe": stat.S_ISFIFO,
    "a socket": stat.S_ISSOCK,
    "a device": lambda mode: stat.S_ISCHR(mode) or stat.S_ISBLK(mode),
}

Identity = tuple[int, int, int, int]


def unreadable(path: Path, error: OSError | ValueError) -> UnreadableFile:
    """Convert an error of the operating system to an error with a plain reason."""
    if getattr(error, "errno", None) == errno.ENOENT and (remote := address_error(str(path))):
        return remote
    if not isinstance(error, OSError):  # os.open refuses such names itself
        reason = "the name has characters that a file name cannot have"
    elif error.errno == errno.ENOENT and path.is_symlink():
        reason = "a link to a file that is not there"
    elif error.errno == errno.ENXIO:  # a socket cannot be opened
        reason = "it is a socket or a device without a driver, not a file"
    else:
        code = error.errno or 0
        reason = _REASONS.get(code) or os.strerror(code).lower()
    return UnreadableFile(visible(str(path)), reason)


def is_folder(path: Path) -> bool:
    """Is it a folder? False also if the system does not know."""
    return os.path.isdir(path)  # noqa: PTH112  pathlib raises on impossible names


def is_file(path: Path) -> bool:
    """Is it a regular file? False also if the system does not know."""
    return os.path.isfile(path)  # noqa: PTH113  pathlib raises on impossible names


def _kind(mode: int) -> str:
    """Name the kind of what is not a regular file."""
    return next((kind for kind, is_kind in _KINDS.items() if is_kind(mode)), "not a regular file")


def _identity(status: os.stat_result) -> Identity:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


class _Descriptor:
    """An open descriptor, closed when the last reference to this object is gone.

    The pool may drop it while another thread reads: the reference of that thread keeps it open,
    and a read needs no lock.
    """

    __slots__ = ("number", "used")

    def __init__(self, number: int) -> None:
        self.number = number
        self.used = next(_CLOCK)

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        close(self.number)


class _Pool:
    """The files with an open descriptor; the one read longest ago is closed first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: WeakSet[File] = WeakSet()  # a file that nobody closed is removed too

    def add(self, file: "File") -> None:
        """Add a file; another may lose its descriptor."""
        with self._lock:
            self._files.add(file)
            while len(self._files) > MOST_OPEN:
                self._drop_oldest()

    def drop(self, file: "File") -> None:
        """Remove a file."""
        with self._lock:
            self._files.discard(file)

    def make_room(self) -> bool:
        """Close one descriptor; return whether there was one."""
        with self._lock:
            return self._drop_oldest()

    def _drop_oldest(self) -> bool:
        if not self._files:
            return False
        oldest = min(self._files, key=File.last_used)
        self._files.discard(oldest)
        oldest.descriptor = None
        return True


def _open_again(
    absolute: str, shown: str, identity: Identity, limits: tuple[tuple[str, int], ...]
) -> "File":
    file = File(Path(absolute), dict(limits))
    file.path = Path(shown)
    file.expect(identity)
    return file


class File:
    """A regular file, opened for reading; a source plug-in gets one."""

    def __init__(self, path: Path, limits: Mapping[str, int] | None = None) -> None:
        """Open the file and store its identity."""
        self.path = path
        self.descriptor: _Descriptor | None = None
        self._limits = limits or {}
        self._closed = False
        self._identity: Identity | None = None
        try:
            self._absolute = os.path.abspath(path)  # noqa: PTH100  Path.absolute keeps ".."
        except (OSError, ValueError) as error:
            raise unreadable(path, error) from error
        self._open()
        self.size = self._identity[2] if self._identity else 0

    def __reduce__(self) -> Call:
        """Open it once in another process, where it must be the same file."""
        limits = tuple(sorted(self._limits.items()))
        return as_call(_open_again, self._absolute, str(self.path), self._identity, limits)

    def expect(self, identity: Identity) -> None:
        """Raise `ChangedWhileReading` if it is not the file that another process opened."""
        here = self._identity
        if here and here[0] != identity[0]:  # another machine has other numbers for the same file
            identity = *here[:2], *identity[2:]
        self._identity = identity
        self.confirm()

    @property
    def content_key(self) -> Identity | None:
        """What only the same file has: two names may lead to it."""
        return self._identity

    def last_used(self) -> int:
        """Return when it was last read, on the clock of the pool."""
        descriptor = self.descriptor
        return descriptor.used if descriptor else -1

    def read(self, start: int, stop: int) -> bytes:
        """Read bytes [start, stop); for headers, whose size was checked before."""
        buffer = bytearray(stop - start)
        self.read_into(start, memoryview(buffer))
        return bytes(buffer)

    def read_into(self, start: int, buffer: memoryview) -> int:
        """Fill the buffer from byte `start` on; a file that ends earlier has changed."""
        descriptor = self.hold()
        wanted = len(buffer)
        done = 0
        try:
            while done < wanted:
                got = os.preadv(
                    descriptor.number, [buffer[done:] if done else buffer], start + done
                )
                if not got:
                    what = f"it ends at byte {start + done}, it had {self.size}"
                    raise ChangedWhileReading(visible(str(self.path)), what)
                done += got
        except OSError as error:
            raise unreadable(self.path, error) from error
        return done

    def hold(self) -> _Descriptor:
        """Return the descriptor; it stays open while the caller has a reference to it."""
        descriptor = self.descriptor or self._open()
        descriptor.used = next(_CLOCK)
        return descriptor

    def limit(self, name: str) -> int:
        """Return a limit by name, with the value of the user if there is one."""
        return limit_of(self._limits, name)

    def confirm(self) -> None:
        """Raise `ChangedWhileReading` if the file is not the one that was opened."""
        descriptor = self.descriptor
        try:
            # A file replaced by a rename still exists under its descriptor, and is the one we read.
            status = os.fstat(descriptor.number) if descriptor else os.stat(self._absolute)  # noqa: PTH116
        except OSError as error:
            reason = unreadable(self.path, error).reason
            raise ChangedWhileReading(visible(str(self.path)), reason) from error
        self._recognise(status)

    def close(self) -> None:
        """Close the descriptor; further reads are refused."""
        self._closed = True
        _POOL.drop(self)
        self.descriptor = None

    def _open(self) -> _Descriptor:
        if self._closed:
            raise UnreadableFile(visible(str(self.path)), "it was read after it was closed")
        descriptor = _Descriptor(self._number())
        try:
            status = os.fstat(descriptor.number)
        except OSError as error:
            raise unreadable(self.path, error) from error
        self._recognise(status)
        self.descriptor = descriptor
        _POOL.add(self)
        return descriptor

    def _number(self) -> int:
        while True:
            try:
                return os.open(self._absolute, _FLAGS)
            except (OSError, ValueError) as error:
                code = getattr(error, "errno", None)
                if code in _CROWDED and _POOL.make_room():
                    continue
                if self._identity:
                    reason = unreadable(self.path, error).reason
                    raise ChangedWhileReading(visible(str(self.path)), reason) from error
                raise unreadable(self.path, error) from error

    def _recognise(self, status: os.stat_result) -> None:
        where = visible(str(self.path))
        if not stat.S_ISREG(status.st_mode):
            raise UnreadableFile(where, f"it is {_kind(status.st_mode)}, not a file")
        if self._identity is None:
            self._identity = _identity(status)
        if self._identity == _identity(status):
            return
        device, inode, size, _ = self._identity
        if (device, inode) != (status.st_dev, status.st_ino):
            raise ChangedWhileReading(where, "another file took its place")
        if size != status.st_size:
            raise ChangedWhileReading(where, f"it had {size} bytes, it has {status.st_size}")
        raise ChangedWhileReading(where, "it was written to")


_POOL = _Pool()
