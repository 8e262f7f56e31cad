"""What git calls for models: for a diff, for text that it diffs itself, and for a merge.

Git stops in the middle of a diff where such a program fails, so each answers whatever the file is:
text under the ending of a model is shown as text, and what is broken is described in a line.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import click

from difflens.core.errors import DifflensError, GitError, UnknownFormat
from difflens.core.escape import for_terminal, visible
from difflens.core.protocols import TensorSource

_NOTHING = os.devnull
_LARGEST_TEXT = 10_000_000  # bytes; a larger file is no text that anybody reads
_REGULAR = ("100", ".")  # modes of files; others are links and submodules
_HEAD = 4096
_LONGEST = 1000  # characters of a line


class _Change(NamedTuple):
    """What git says of one path: where both sides are, their modes, and the new name if any."""

    left_path: str
    left: str
    left_mode: str
    right: str
    right_mode: str
    right_path: str
    about: str

    @classmethod
    def of(cls, words: Sequence[str]) -> _Change:
        left_path, left, _, left_mode, right, _, right_mode, *more = words
        right_path, about = (*more, "", "")[:2]
        return cls(left_path, left, left_mode, right, right_mode, right_path or left_path, about)


def show_change(words: Sequence[str]) -> None:
    """Print what changed in one path; the arguments are those of GIT_EXTERNAL_DIFF."""
    if len(words) < 7:
        _print(f"* unmerged: {for_terminal(words[0])}")
        return
    change = _Change.of(words)
    color = _wants_color()
    try:
        body = list(_body(change, color))
    except Exception as error:  # noqa: BLE001  git would stop: the other paths are still to be shown
        fault = f"! a fault of difflens itself: {type(error).__name__}: {error}"
        body = [for_terminal(fault, _LONGEST)]
    _print("\n".join([*_heading(change, color), *body]))


def _print(text: str) -> None:
    """Write to stdout; a reader who has seen enough is no failure."""
    from ._output import emit

    try:
        emit(text, None)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _heading(change: _Change, color: bool) -> Iterator[str]:
    from difflens.render.document.text import painter

    names = f"a/{for_terminal(change.left_path)} b/{for_terminal(change.right_path)}"
    yield painter(color)(f"difflens {names}", "verdict")
    for line in filter(None, change.about.splitlines()):
        if not line.startswith("index "):
            yield for_terminal(line)
    modes = change.left_mode, change.right_mode
    if modes[0] != modes[1] and _NOTHING not in (change.left, change.right):
        yield f"mode {for_terminal(modes[0])} -> {for_terminal(modes[1])}"


def _body(change: _Change, color: bool) -> Iterator[str]:
    sides = ((change.left, change.left_mode), (change.right, change.right_mode))
    if any(path != _NOTHING and not mode.startswith(_REGULAR) for path, mode in sides):
        yield from _texts(change)
        return
    try:
        with _real(change.left) as left, _real(change.right) as right:
            yield from _models(change, left, right, color)
    except (DifflensError, OSError) as error:
        if not isinstance(error, GitError) and all(_is_text(path) for path, _ in sides):
            yield from _texts(change)
            return
        yield f"! {for_terminal(_named(_reason(error), change), _LONGEST)}"


def _models(change: _Change, left: str, right: str, color: bool) -> Iterator[str]:
    if _NOTHING in (left, right):
        from difflens.models.describe import describe
        from difflens.render.report.inventory import outline

        sign, path = ("+", right) if left == _NOTHING else ("-", left)
        with _opened(path) as source:
            yield f"{sign} {'added' if sign == '+' else 'removed'}: {outline(describe('', source))}"
        return
    from difflens.core.records import View
    from difflens.diffs.story import diff, report
    from difflens.render.diffs import renderer

    compared = report(diff(left, right, discovery=False), ["change_summary"])
    for warning in compared.warnings:
        yield for_terminal(f"? {_named(warning, change)}", _LONGEST)
    yield renderer["cli"].plugin(compared, View(color=color)).strip("\n")


def _named(text: str, change: _Change) -> str:
    """Write the paths of the repository for the temporary files that git made."""
    for place, side, path in (
        (change.left, "a", change.left_path),
        (change.right, "b", change.right_path),
    ):
        if place not in (path, _NOTHING):
            text = text.replace(place, f"{side}/{path}")
    return text


@contextmanager
def _opened(path: str) -> Iterator[TensorSource]:
    from difflens.models.formats import open_model

    source = open_model(path)
    try:
        yield source
    finally:
        source.close()


@contextmanager
def _real(path: str) -> Iterator[str]:
    """Yield the file that holds the bytes: the one that a pointer names, if this is a pointer."""
    if path == _NOTHING:
        yield path
        return
    from difflens.storage.git.pointers import DVC, LARGEST_DVC, read_dvc, read_lfs
    from difflens.storage.git.repository import Repository

    size = Path(path).stat().st_size
    content = Path(path).read_bytes() if size <= LARGEST_DVC else b""
    pointer = read_lfs(content)
    if pointer is None and path.endswith(DVC):
        pointer = read_dvc(content, path)[1]
    if pointer and pointer.digest.endswith(".dir"):
        hint = "difflens diff REVISION -- FOLDER compares them"
        raise GitError(visible(path), "DVC keeps a folder here, not one file", hint=hint)
    yield str(pointer.find(Repository(Path.cwd()))) if pointer else path


def _reason(error: DifflensError | OSError) -> str:
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror or error}"
    reason = f"{error.reason}; {error.hint}" if error.hint else error.reason
    return reason if isinstance(error, GitError) else f"cannot be read as a model: {reason}"


def _is_text(path: str) -> bool:
    """Is it text under the ending of a model, and no pointer?"""
    from difflens.models.refusals import is_text
    from difflens.storage.git.pointers import DVC, read_lfs

    if path == _NOTHING:
        return True
    with Path(path).open("rb") as file:
        head = file.read(_HEAD)
    if path.endswith(DVC) or not head:
        return True
    return Path(path).stat().st_size <= _LARGEST_TEXT and is_text(head) and not read_lfs(head)


def _texts(change: _Change) -> Iterator[str]:
    """Write the change of a text, line by line, as git would have."""
    from difflib import unified_diff

    names = f"a/{visible(change.left_path)}", f"b/{visible(change.right_path)}"
    left, right = _lines(change.left), _lines(change.right)
    for line in unified_diff(left, right, *names, lineterm=""):
        yield visible(line)


def _lines(path: str) -> list[str]:
    if path == _NOTHING:
        return []
    return Path(path).read_bytes().decode("utf-8", "surrogateescape").splitlines()


def _wants_color() -> bool:
    """Ask git, which knows of its pager and its settings."""
    from difflens.storage.git.repository import run_git

    is_terminal = "true" if sys.stdout is not None and sys.stdout.isatty() else "false"
    if os.environ.get("NO_COLOR"):
        return False
    words = ["config", "--get-colorbool", "color.diff", is_terminal]
    with suppress(GitError):
        return run_git(words, Path.cwd()).strip() == b"true"
    return False


def as_text(path: str) -> None:
    """Print a model as stable text; what cannot be read is described with a digest of its bytes."""
    from difflens.diffs.inspection import inspect
    from difflens.render.report.inventory import show_stable

    try:
        with _real(path) as real:
            text = show_stable(inspect(real, statistics=True, digests=True))
    except (DifflensError, OSError) as error:
        if isinstance(error, UnknownFormat) and _is_text(path):
            text = "\n".join(visible(line) for line in _lines(path))
        else:
            reason = for_terminal(_reason(error).replace(path, "it"), _LONGEST)
            text = f"! {reason} (sha256={_digest(path)})"
    _print(text)


def _digest(path: str) -> str:
    """Return the beginning of the digest of a file, so that two unreadable ones differ."""
    from hashlib import file_digest

    with Path(path).open("rb") as file:
        return file_digest(file, "sha256").hexdigest()[:16]


def merge(base: str, ours: str, theirs: str, size: str, path: str) -> int:
    """Refuse to merge weights, and say what to do; text under such an ending is merged by git."""
    shown = shlex.quote(for_terminal(path, _LONGEST))
    if all(_is_text(each) for each in (base, ours, theirs)):
        return _merge_text(base, ours, theirs, size)
    click.echo(
        f"difflens: {shown}: both sides changed this model, and weights cannot be merged by lines."
        f"\n  compare:  difflens diff :2:{shown} :3:{shown}   (ours, theirs; :1: is the base)"
        f"\n  keep one: git checkout --ours -- {shown}   or   git checkout --theirs -- {shown}"
        f"\n  then:     git add -- {shown}",
        err=True,
    )
    return 1


def _merge_text(base: str, ours: str, theirs: str, size: str) -> int:
    """Let git merge three texts as it would without us; the result goes where ours is."""
    from subprocess import run

    words = ["git", "merge-file", "--marker-size", size]
    words += [part for label in ("ours", "base", "theirs") for part in ("-L", label)]
    done = run([*words, "--", ours, base, theirs], check=False)  # noqa: S603  git, by a list
    return min(done.returncode, 127)
