"""The commits that changed a model, the last one first; a model that was renamed is followed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

from difflens.core.errors import GitError

from .pointers import DVC, files_of_model
from .repository import Blob, Repository

_FIELDS = ("%H", "%P", "%aI", "%an", "%s")


class Change(NamedTuple):
    """One commit that changed a model, and the files of the model on both sides of it."""

    commit: str
    date: str  # of the author, ISO 8601
    author: str
    subject: str
    left_path: str
    right_path: str
    left: tuple[Blob, ...]  # none: the commit added the model
    right: tuple[Blob, ...]  # none: the commit removed it


def changes(repository: Repository, path: str, revision: str = "HEAD") -> Iterator[Change]:
    """Yield the commits that changed what lies at or below a path."""
    start, seen = repository.commit(revision), False
    while True:
        last: Change | None = None
        for change in _of_one_name(repository, path, start):
            if not change.left:
                former = _former_path(repository, change)
                if former is not None:
                    left = tuple(files_of_model(repository, f"{change.commit}^", former))
                    change = change._replace(left=left, left_path=former)  # noqa: PLW2901
            seen, last = True, change
            yield change
            if change.left_path != path:
                break
        if last is None or last.left_path == path:
            break
        path, start = last.left_path, f"{last.commit}^"
    if not seen:
        reason = "no commit of this history holds it"
        raise GitError(path or ".", reason, hint="is it committed? git log -- PATH")


def _of_one_name(repository: Repository, path: str, start: str) -> Iterator[Change]:
    words = ["log", "-z", "--no-show-signature", "--no-notes", "--encoding=UTF-8"]
    words += [f"--format=tformat:{'%x00'.join(_FIELDS)}", repository.commit(start), "--"]
    # One path with two spellings: a model that DVC keeps is a small file beside where it lies.
    answer = repository.call(*words, *([path, f"{path}{DVC}"] if path else ["."]))
    fields = answer.decode("utf-8", "replace").split("\0")
    for at in range(0, len(fields) - 1, len(_FIELDS)):
        commit, parents, date, author, subject = fields[at : at + len(_FIELDS)]
        former = parents.split(" ")[0]
        left = tuple(files_of_model(repository, former, path)) if former else ()
        right = tuple(files_of_model(repository, commit, path))
        if {each.oid for each in left} != {each.oid for each in right} or _moved(left, right):
            yield Change(commit, date, author, subject, path, path, left, right)


def _moved(left: tuple[Blob, ...], right: tuple[Blob, ...]) -> bool:
    """Are the same contents under other names, as when a shard is renamed?"""
    return {each.path for each in left} != {each.path for each in right}


def _former_path(repository: Repository, change: Change) -> str | None:
    """Return the path that a model had before the commit in which its path appears.

    It is that of a file with the same content which the commit removes; else, if the commit
    removes one file with this ending and adds no other, that file: renamed and trained at once.
    No content is read: git would read models of any size to tell how much alike they are.
    """
    if len(change.right) != 1:
        return _former_folder(repository, change)
    new = change.right[0]
    removed, added = _moves(repository, change.commit)
    same = [path for path, oid in removed.items() if oid == new.oid]
    if same:
        return same[0].removesuffix(DVC) if new.path.endswith(DVC) else same[0]
    ending = _ending(new.path)
    former = [path for path in removed if _ending(path) == ending]
    if len(former) == 1 and [path for path in added if _ending(path) == ending] == [new.path]:
        return former[0].removesuffix(DVC) if new.path.endswith(DVC) else former[0]
    return None


def _former_folder(repository: Repository, change: Change) -> str | None:
    """Return the folder from which the same files came, under the same names."""
    removed, _ = _moves(repository, change.commit)
    where = {oid: path for path, oid in removed.items()}
    folders = {
        where[each.oid].removesuffix(each.path[len(change.right_path) :])
        for each in change.right
        if each.oid in where
    }
    return folders.pop() if len(folders) == 1 else None


def _moves(repository: Repository, commit: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the files that a commit removed and added, against its first parent."""
    try:
        parent = repository.commit(f"{commit}^")
    except GitError:
        return {}, {}
    words = ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-ext-diff", "--no-textconv"]
    fields = os.fsdecode(repository.call(*words, parent, commit)).split("\0")
    removed: dict[str, str] = {}
    added: dict[str, str] = {}
    for about, path in zip(fields[::2], fields[1::2], strict=False):
        _, _, left, right, status = about.split(" ")
        if status == "D":
            removed[path] = left
        elif status == "A":
            added[path] = right
    return removed, added


def _ending(path: str) -> str:
    return "".join(PurePosixPath(path).suffixes[-2 if path.endswith(DVC) else -1 :])
