"""What differs between two models, tensor by tensor, by their very bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from difflens.core.buffers import ThreadBuffers
from difflens.core.errors import BlameError
from difflens.core.protocols import TensorSource
from difflens.core.records import Pair, TensorInfo
from difflens.diffs.pairing import pair
from difflens.engines.threads import Threads
from difflens.models.folders.listing import describe_folder_files

from ..chunks import read_whole

_buffers = ThreadBuffers()


class Change(NamedTuple):
    """A tensor that differs, or a settings file; one side is None where it is absent.

    `digests` are those of its bytes in both models.
    """

    name: str
    good: TensorInfo | None
    bad: TensorInfo | None
    digests: tuple[str, str]
    files: tuple[Path | None, Path | None] = (None, None)

    @property
    def is_file(self) -> bool:
        """Is it a file beside the weights?"""
        return self.good is None and self.bad is None

    @property
    def is_plain(self) -> bool:
        """Is it the same tensor with other values, so that one can take the place of the other?"""
        good, bad = self.good, self.bad
        if good is None or bad is None:
            return False
        return (good.name, good.dtype, good.shape) == (bad.name, bad.dtype, bad.shape)

    @property
    def size_bytes(self) -> int:
        """The bytes of the tensor in the bad model, or in the good one where only that has it."""
        info = self.bad or self.good
        return info.size_bytes if info else 0


Changes = dict[str, Change]


def read_changes(good: TensorSource, bad: TensorSource, where: str, threads: int | None) -> Changes:
    """Read both models once and list what differs."""
    pairs = _pairs(good, bad)
    if not any(each.left and each.right for each in pairs):
        raise BlameError(where, "the two models have no tensor in common")
    engine = Threads(threads)

    def digests(each: Pair) -> tuple[str, str]:
        return _digest(good, each.left), _digest(bad, each.right)

    try:
        read = zip(pairs, engine.map(digests, pairs), strict=True)
        return {change.name: change for change in _differing(read)}
    finally:
        engine.close()


def _pairs(good: TensorSource, bad: TensorSource) -> list[Pair]:
    """Pair the tensors as they are stored; what only a recipe pairs counts as gone and new."""
    pairs = [
        each
        for each in pair(good.tensors, bad.tensors)
        if not (each.left_recipe or each.right_recipe)
    ]
    lefts = {each.left.name for each in pairs if each.left}
    rights = {each.right.name for each in pairs if each.right}
    pairs += [Pair(info, None) for name, info in good.tensors.items() if name not in lefts]
    pairs += [Pair(None, info) for name, info in bad.tensors.items() if name not in rights]
    return pairs


def _digest(source: TensorSource, info: TensorInfo | None) -> str:
    if info is None:
        return ""
    total = hashlib.blake2b(digest_size=16)
    for part in read_whole(source, info, _buffers):
        total.update(part)
    return total.hexdigest()


def _differing(read: Iterator[tuple[Pair, tuple[str, str]]]) -> Iterator[Change]:
    for each, (before, after) in read:
        left, right = each.left, each.right
        same = left and right and (left.dtype, left.shape) == (right.dtype, right.shape)
        if not same or before != after:
            yield Change(each.name, left, right, (before, after))


def changed_files(good: Path | None, bad: Path | None) -> Changes:
    """List the settings and tokenizer files of two folders that differ."""
    if good is None or bad is None or not (good.is_dir() and bad.is_dir()):
        return {}
    sides = describe_folder_files(good), describe_folder_files(bad)
    found = {}
    for name in sorted(sides[0].keys() | sides[1].keys()):
        paths = sides[0].get(name), sides[1].get(name)
        digests = tuple(_file_digest(path) for path in paths)
        if digests[0] != digests[1]:
            found[f"file {name}"] = Change(
                f"file {name}", None, None, (digests[0], digests[1]), paths
            )
    return found


def _file_digest(path: Path | None) -> str:
    if path is None:
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()


def content_of(changes: Changes) -> str:
    """Identify what differs: the same for the same two models, whatever their files are called."""
    lines = (f"{name} {each.digests[0]} {each.digests[1]}" for name, each in changes.items())
    return hashlib.blake2b("\n".join(sorted(lines)).encode("utf-8", "backslashreplace")).hexdigest()
