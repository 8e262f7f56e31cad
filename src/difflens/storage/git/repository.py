"""A Git repository as the `git` program shows it: revisions, and the files of a revision."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from difflens.core.errors import GitError
from difflens.core.escape import for_terminal, visible

_LONGEST = 200
_INDEX = re.compile(r"(?::([0-3]))?")  # as in `:model.onnx` and `:2:model.onnx`
_NAME_OF_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
# A repository may come from a stranger with its configuration: what that could start is off.
_SAFE = (
    "--no-pager",
    "--no-optional-locks",
    "--literal-pathspecs",
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "log.showSignature=false"),
    *("-c", "protocol.allow=never"),  # what is not here is not fetched, and so no helper is run
    *("-c", "core.bigFileThreshold=1m"),  # git streams what is larger,
    *("-c", "core.packedGitWindowSize=1m", "-c", "core.packedGitLimit=32m"),  # and maps little
)
# These change what git answers or what it runs; `--literal-pathspecs` replaces the last three.
_ASIDE = frozenset(
    {"GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_DIFF_OPTS"}
    | {"GIT_GLOB_PATHSPECS", "GIT_NOGLOB_PATHSPECS", "GIT_ICASE_PATHSPECS"}
)
# Git sets these for the programs that it calls, relative to the folder in which it calls them.
_PLACES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY")


class Blob(NamedTuple):
    """One file of a revision: its path from the top of the repository, and its content's name."""

    path: str
    oid: str
    size: int

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]


class Repository:
    """The repository that a folder lies in; a bare one and a further worktree too."""

    def __init__(self, folder: Path) -> None:
        """Find it; raise `GitError` if the folder lies in none."""
        self.folder = folder.absolute()
        self._home = self.folder  # where git is called: paths count from here
        self.common = Path(self.ask("rev-parse", "--path-format=absolute", "--git-common-dir"))
        self.top: Path | None = None  # of the working tree; a bare repository has none
        if self.ask("rev-parse", "--is-inside-work-tree") == "true":
            self.top = Path(self.ask("rev-parse", "--path-format=absolute", "--show-toplevel"))
            self._home = self.top

    def path_of(self, named: str, *, from_top: bool = False) -> str:
        """Return a path as git spells it, from the top; the empty string is the top itself.

        `REV:path` counts from the top unless it begins with a dot; other paths from the folder.
        """
        top = self.top
        if top is None or (from_top and not named.startswith(".")):
            path = os.path.normpath(named)
        else:
            # Links to folders are followed as the system does; a last part that is one stays.
            folder, name = os.path.split(os.path.normpath(self.folder / named))
            path = os.path.relpath(os.path.join(os.path.realpath(folder), name), top)  # noqa: PTH118
        if path.startswith(("../", "/")) or path == ".." or "\0" in path:
            raise GitError(visible(named), "it lies outside the repository")
        return "" if path == "." else path

    def commit(self, revision: str) -> str:
        """Return the commit that a revision names; what looks like an option is refused."""
        shown = for_terminal(revision, _LONGEST)
        if _NAME_OF_COMMIT.fullmatch(revision):
            return revision
        if not revision or revision[0] in "-^" or not revision.isprintable():
            raise GitError(shown, "a revision cannot be called like this")
        try:
            return self.ask("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
        except GitError as error:
            hint = "git log lists revisions; a shallow clone has few: git fetch --unshallow"
            raise GitError(shown, "this is no revision here", hint=hint) from error

    def files(self, revision: str, path: str) -> list[Blob]:
        """List the files at or below a path of a revision; of the index if that is `:` and so on.

        Links and submodules are left out: they hold no bytes of their own.
        """
        if is_index(revision):
            return self._staged(revision[1:] or "0", path)
        words = ["ls-tree", "-r", "-l", "-z", "--full-tree", self.commit(revision)]
        return _blobs(self.ask(*words, *(["--", path] if path else [])))

    def beside(self, revision: str, folder: str) -> list[Blob]:
        """List the files that lie in a folder of a revision, without those below it."""
        if is_index(revision):
            files = self._staged(revision[1:] or "0", folder)
            return [each for each in files if each.path.rpartition("/")[0] == folder]
        words = ["ls-tree", "-l", "-z", "--full-tree", self.commit(revision)]
        return _blobs(self.ask(*words, *(["--", f"{folder}/"] if folder else [])))

    def read(self, blob: Blob) -> bytes:
        """Read a small file at once."""
        return self.call("cat-file", "blob", blob.oid)

    def start_reading(self, blob: Blob, target: int) -> subprocess.Popen[bytes]:
        """Let git write a file into an open descriptor; no byte of it passes through here."""
        return subprocess.Popen(  # noqa: S603  git, by a list of arguments
            ["git", *_SAFE, "cat-file", "blob", blob.oid],  # noqa: S607  the git of the user
            cwd=self._home,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=target,
            stderr=subprocess.DEVNULL,
        )

    def setting(self, name: str) -> str | None:
        """Read a path from the configuration; None if it is not set."""
        try:
            return self.ask("config", "--type=path", "--get", name)
        except GitError:
            return None

    def ask(self, *words: str) -> str:
        """Return what git answers, as text, without the newline at its end."""
        return os.fsdecode(self.call(*words)).removesuffix("\n")

    def call(self, *words: str) -> bytes:
        """Return what git answers."""
        return run_git(words, self._home)

    def _staged(self, stage: str, path: str) -> list[Blob]:
        answer = self.ask("ls-files", "--stage", "-z", *(["--", path] if path else []))
        found = []
        for line in filter(None, answer.split("\0")):
            about, _, name = line.partition("\t")
            mode, oid, where = about.split(" ")
            if where == stage and mode.startswith("100"):
                found.append(_blob(name, oid, self.ask("cat-file", "-s", oid)))
        return found


def is_index(revision: str) -> bool:
    """Is this a stage of the index, written as git does: nothing, or `:2`?"""
    return _INDEX.fullmatch(revision) is not None


def run_git(words: Sequence[str], folder: Path) -> bytes:
    """Call git in a folder and return what it answers; raise `GitError` with its own reason."""
    try:
        done = subprocess.run(  # noqa: S603  git, by a list of arguments
            ["git", *_SAFE, *words],  # noqa: S607  the git of the user
            cwd=folder,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except (FileNotFoundError, NotADirectoryError) as error:
        if not folder.is_dir():
            raise GitError(visible(str(folder)), "no such folder") from error
        raise GitError("git", "it is not installed") from error
    if done.returncode:
        said = os.fsdecode(done.stderr).strip().splitlines()
        reason = said[0].removeprefix("fatal: ") if said else f"it ended with {done.returncode}"
        raise GitError("git", for_terminal(reason, _LONGEST))
    return done.stdout


def _blobs(listing: str) -> list[Blob]:
    """Read the answer of `git ls-tree -l -z`."""
    found = []
    for line in filter(None, listing.split("\0")):
        about, _, path = line.partition("\t")
        mode, _, oid, size = about.split()
        if mode.startswith("100"):
            found.append(_blob(path, oid, size))
    return found


def _blob(path: str, oid: str, size: str) -> Blob:
    """Check a file of a revision: who made the objects may have written any path into them."""
    if path.startswith("/") or not {"", ".", ".."}.isdisjoint(path.split("/")):
        raise GitError(visible(path), "this path in a revision leads out of it")
    if not size.isdecimal():
        reason = "its bytes are not in this clone"
        raise GitError(visible(path), reason, hint="fetch them first, as with git checkout")
    return Blob(path, oid, int(size))


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in _ASIDE}
    places = {name: os.path.abspath(kept[name]) for name in _PLACES if kept.get(name)}  # noqa: PTH100
    quiet = {"GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}
    return kept | places | quiet
