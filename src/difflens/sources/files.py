"""A model file on disk: opened once, read by position, known again by its identity.

Never mapped into memory: a mapped file that shrinks kills the process, a read
one only comes back short. Descriptors are shared out by a pool, so that a model
of 10,000 shards works where 256 files may be open.
"""

import errno
import os
import stat
import threading
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from weakref import WeakSet

from ..errors import ChangedWhileReading, UnknownName, UnreadableFile
from ..escape import visible
from .limits import DEFAULTS

MOST_OPEN = 64
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK  # NONBLOCK: a pipe must not make us wait
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
    """Say in plain words why the operating system would not."""
    if not isinstance(error, OSError):  # os.open refuses such names before the system sees them
        reason = "the name holds characters no file name can have"
    elif error.errno == errno.ENOENT and path.is_symlink():
        reason = "a link to a file that is not there"
    elif error.errno == errno.ENXIO:  # a socket cannot be opened, only looked at
        reason = "it is a socket or a device without a driver, not a file"
    else:
        code = error.errno or 0
        reason = _REASONS.get(code) or os.strerror(code).lower()
    return UnreadableFile(visible(str(path)), reason)


def is_folder(path: Path) -> bool:
    """Is there a folder? No is also the answer where the system would not say."""
    return os.path.isdir(path)  # noqa: PTH112  pathlib raises on names no file can have


def is_file(path: Path) -> bool:
    """Is there a regular file? No is also the answer where the system would not say."""
    return os.path.isfile(path)  # noqa: PTH113  pathlib raises on names no file can have


def _kind(mode: int) -> str:
    """Name what is there in place of a file."""
    return next((kind for kind, is_kind in _KINDS.items() if is_kind(mode)), "no regular file")


def _identity(found: os.stat_result) -> Identity:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


class _Descriptor:
    """An open descriptor, closed when the last one who holds this object lets go.

    The pool may drop it while another thread is reading: that thread's reference
    keeps it open, with no lock on the way of a read.
    """

    __slots__ = ("number", "used")

    def __init__(self, number: int) -> None:
        self.number = number
        self.used = next(_CLOCK)

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        close(self.number)


class _Pool:
    """The files that hold a descriptor; the one not read for longest gives way."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: WeakSet[File] = WeakSet()  # a model nobody closed gives back its own

    def add(self, file: "File") -> None:
        """Let the file keep its descriptor; another may lose its own."""
        with self._lock:
            self._files.add(file)
            while len(self._files) > MOST_OPEN:
                self._drop_oldest()

    def drop(self, file: "File") -> None:
        """Forget the file."""
        with self._lock:
            self._files.discard(file)

    def make_room(self) -> bool:
        """Give up one descriptor; is there one to give up?"""
        with self._lock:
            return self._drop_oldest()

    def _drop_oldest(self) -> bool:
        if not self._files:
            return False
        oldest = min(self._files, key=File.last_used)
        self._files.discard(oldest)
        oldest.descriptor = None
        return True


class File:
    """A regular file, opened for reading; what a source plug-in is handed."""

    def __init__(self, path: Path, limits: Mapping[str, int] | None = None) -> None:
        """Open the file and remember who it is."""
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

    def last_used(self) -> int:
        """Say when it was last read, on the pool's clock."""
        descriptor = self.descriptor
        return descriptor.used if descriptor else -1

    def read(self, start: int, stop: int) -> bytes:
        """Give bytes [start, stop); for headers, whose size was checked before."""
        buffer = bytearray(stop - start)
        self.read_into(start, memoryview(buffer))
        return bytes(buffer)

    def read_into(self, start: int, buffer: memoryview) -> int:
        """Fill the buffer from byte `start` on; a file that ends early has changed."""
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
        """Give the descriptor; it stays open for as long as the caller keeps what it was given."""
        descriptor = self.descriptor or self._open()
        descriptor.used = next(_CLOCK)
        return descriptor

    def limit(self, name: str) -> int:
        """Give a limit by name, as the user may have raised it."""
        limit = self._limits.get(name, DEFAULTS.get(name))
        if limit is None:
            raise UnknownName("limit", name, DEFAULTS)
        return limit

    def confirm(self) -> None:
        """Raise `ChangedWhileReading` if the file is not the one that was opened."""
        descriptor = self.descriptor
        try:
            # A file replaced by rename lives on under its descriptor: that is the one we read.
            found = os.fstat(descriptor.number) if descriptor else os.stat(self._absolute)  # noqa: PTH116
        except OSError as error:
            reason = unreadable(self.path, error).reason
            raise ChangedWhileReading(visible(str(self.path)), reason) from error
        self._recognise(found)

    def close(self) -> None:
        """Give the descriptor back; reading on is refused."""
        self._closed = True
        _POOL.drop(self)
        self.descriptor = None

    def _open(self) -> _Descriptor:
        if self._closed:
            raise UnreadableFile(visible(str(self.path)), "read after it was closed")
        descriptor = _Descriptor(self._number())
        try:
            found = os.fstat(descriptor.number)
        except OSError as error:
            raise unreadable(self.path, error) from error
        self._recognise(found)
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

    def _recognise(self, found: os.stat_result) -> None:
        where = visible(str(self.path))
        if not stat.S_ISREG(found.st_mode):
            raise UnreadableFile(where, f"it is {_kind(found.st_mode)}, not a file")
        if self._identity is None:
            self._identity = _identity(found)
        if self._identity == _identity(found):
            return
        device, inode, size, _ = self._identity
        if (device, inode) != (found.st_dev, found.st_ino):
            raise ChangedWhileReading(where, "another file took its place")
        if size != found.st_size:
            raise ChangedWhileReading(where, f"it had {size} bytes, it has {found.st_size}")
        raise ChangedWhileReading(where, "it was written to")


_POOL = _Pool()
