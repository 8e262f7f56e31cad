"""Files of revisions, laid out as real files for as long as they are compared.

A file in a pack is compressed and cannot be read by position, so git itself writes it out, several
at a time; its bytes never pass through this process. What Git LFS or DVC fetched is linked, not
copied. All lies in one folder per process inside the repository's own (else in TMPDIR), which is
removed at the end; what a killed process left, the next one removes: its lock is free.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from difflens.core.errors import GitError
from difflens.core.escape import visible

from .pointers import DVC, LARGEST, LARGEST_DVC, Pointer, files_of_dvc, read_dvc, read_lfs
from .repository import Blob, Repository

_FOLDER = "difflens"
_LOCK = "lock"
_BLOCK = 1 << 20
_PATIENCE = 0.1  # seconds between two looks at how far git is
_SIGNALS = (signal.SIGTERM, signal.SIGHUP)

Progress = Callable[[int], None]


@contextmanager
def spool(repository: Repository) -> Iterator[Spool]:
    """Yield a spool; its folder is gone afterwards, however the block ends."""
    with _ended_by_signals():
        home = _home(repository)
        _sweep(home)
        folder = Path(tempfile.mkdtemp(dir=home))
        lock = _locked(folder)
        try:
            yield Spool(repository, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)
            with suppress(OSError):  # another process has a folder there
                home.rmdir()


class Spool:
    """A folder that holds files of revisions, each side in a folder of its own."""

    def __init__(self, repository: Repository, folder: Path) -> None:
        """Nothing is written yet."""
        self.repository = repository
        self.folder = folder

    def root(self, side: str) -> Path:
        """Return the folder of a side: its files lie there at their paths."""
        return self.folder / side

    def lay_out(
        self, sides: Mapping[str, Iterable[Blob]], progress: Progress | None = None
    ) -> None:
        """Write the files of several sides, at the same time."""
        copies: list[tuple[Blob, Path]] = []
        try:
            for side, blobs in sides.items():
                self.root(side).mkdir()
                places = [(blob, self.root(side) / blob.path) for blob in blobs]
                copies += [each for each in places if not self._link_pointed(*each)]
            self._copy(copies, progress)
        except OSError as error:
            reason = f"its files cannot be laid out: {error.strerror or error}"
            raise GitError(visible(str(self.folder.parent)), reason) from error

    def drop(self, side: str) -> None:
        """Remove what was laid out for a side."""
        shutil.rmtree(self.root(side), ignore_errors=True)

    def _link_pointed(self, blob: Blob, target: Path) -> bool:
        """Link what a pointer stands for; False if it is no pointer."""
        target.parent.mkdir(parents=True, exist_ok=True)
        named = list(self._pointed(blob))
        for name, pointer in named:
            _link(_fetched(pointer, self.repository, target), target.parent / name)
        return bool(named)

    def _pointed(self, blob: Blob) -> Iterator[tuple[str, Pointer]]:
        """Yield the names and pointers of the files that a pointer stands for; none if it is one.

        The names are relative to the folder that the pointer lies in.
        """
        if blob.size <= LARGEST:
            pointer = read_lfs(self.repository.read(blob))
            if pointer:
                yield blob.name, pointer
                return
        if blob.path.endswith(DVC) and blob.size <= LARGEST_DVC:
            output, pointer = read_dvc(self.repository.read(blob), blob.path)
            for name, each in files_of_dvc(pointer, self.repository):
                yield (f"{output}/{name}" if name else output), each

    def _copy(self, copies: list[tuple[Blob, Path]], progress: Progress | None) -> None:
        """Let git write the files, as many at a time as there are processors."""
        wanted = sum(blob.size for blob, _ in copies)
        free = shutil.disk_usage(self.folder).free
        if wanted > free:
            reason = f"{wanted} bytes of room are needed to compare revisions, {free} are free"
            raise GitError(visible(str(self.folder.parent)), reason)
        # The largest first, so that the last one to end began early.
        waiting = sorted(copies, key=lambda each: each[0].size)
        running: list[_Copy] = []
        try:
            while waiting or running:
                while waiting and len(running) < (os.cpu_count() or 1):
                    running.append(_Copy(self.repository, *waiting.pop()))
                running[0].wait(_PATIENCE)
                for copy in running:
                    copy.report(progress)
                running = [copy for copy in running if not copy.has_ended()]
        finally:
            for copy in running:
                copy.kill()


class _Copy:
    """One file that git is writing."""

    def __init__(self, repository: Repository, blob: Blob, target: Path) -> None:
        self._blob, self._target, self._done = blob, target, 0
        # Never an existing file: of two with one name, the first may be a link to an object of LFS.
        with target.open("xb") as file:
            self._process = repository.start_reading(blob, file.fileno())

    def wait(self, seconds: float) -> None:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)

    def report(self, progress: Progress | None) -> None:
        if progress is not None:
            size = self._target.stat().st_size
            progress(size - self._done)
            self._done = size

    def has_ended(self) -> bool:
        """Is it complete? Raise if git could not write all of it."""
        code = self._process.poll()
        if code is None:
            return False
        size = self._target.stat().st_size
        if code or size != self._blob.size:
            reason = f"git wrote {size} of its {self._blob.size} bytes"
            raise GitError(
                visible(str(self._target)), reason, hint="git fsck checks the repository"
            )
        return True

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def _fetched(pointer: Pointer, repository: Repository, target: Path) -> Path:
    try:
        return pointer.find(repository)
    except GitError as error:
        raise pointer.absent(str(target)) if not error.where.startswith("/") else error from error


def _link(content: Path, target: Path) -> None:
    """Make a file appear at another path: linked, or copied from another file system."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(os.path.realpath(content), target)
    except FileExistsError:
        raise
    except OSError:
        with content.open("rb") as source, target.open("xb") as copy:
            shutil.copyfileobj(source, copy, _BLOCK)


def _home(repository: Repository) -> Path:
    """Choose where to write: in the repository, on its disk, unless that may not be written to."""
    elsewhere = Path(tempfile.gettempdir()) / f"{_FOLDER}-{os.getuid()}"
    for home in (repository.common / _FOLDER, elsewhere):
        with suppress(OSError):
            home.mkdir(mode=0o700, exist_ok=True)
            status = home.lstat()
            if status.st_uid == os.getuid() and not home.is_symlink() and os.access(home, os.W_OK):
                return home
    raise GitError(visible(str(repository.common)), "nowhere to write: name a folder in TMPDIR")


def _locked(folder: Path) -> int:
    """Lock a folder; the lock has its name only once it is locked, for others look for it."""
    lock = os.open(folder / f"{_LOCK}ing", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    with suppress(OSError):  # a file system without locks: nobody sweeps there
        fcntl.flock(lock, fcntl.LOCK_EX)
        (folder / f"{_LOCK}ing").rename(folder / _LOCK)
    return lock


def _sweep(home: Path) -> None:
    """Remove the folders of processes that were killed."""
    for folder in home.iterdir():
        with suppress(OSError):
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let a request to end unwind this process, so that nothing is left behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, end) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
