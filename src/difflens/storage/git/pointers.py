"""Pointers of Git LFS and DVC: small files that name the real bytes, which lie beside the history.

The bytes are found where `git lfs fetch` and `dvc fetch` put them, and are read there: nothing is
downloaded, and no program of either is run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from difflens.core.errors import CorruptFile, GitError
from difflens.core.escape import for_terminal, visible

from .repository import Blob, Repository

LARGEST = 1024  # bytes; git-lfs itself reads no larger file as a pointer
LARGEST_DVC = 65_536
_LARGEST_LIST = 100_000_000  # bytes of the list of files in a folder that DVC keeps
DVC = ".dvc"
_LFS = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n(?:ext-.*\n)*"
    rb"oid sha256:([0-9a-f]{64})\nsize ([0-9]{1,18})\n?"
)
_MD5 = re.compile(r"[0-9a-f]{32}")


class Pointer(NamedTuple):
    """What a pointer names: a file by the digest of its content."""

    kind: str  # "lfs" or "dvc"
    digest: str
    size: int | None

    def find(self, repository: Repository) -> Path:
        """Return the file that holds the bytes; raise `GitError` if it was not fetched."""
        places = list(_PLACES[self.kind](repository, self.digest))
        for place in places:
            if place.is_file():
                if self.size is None or place.stat().st_size == self.size:
                    return place
                raise GitError(visible(str(place)), f"it has not the {self.size} bytes it should")
        raise self.absent("this model")

    def absent(self, where: str) -> GitError:
        """Return the error for bytes that are not on this machine."""
        if self.kind == "lfs":
            hint = "run: git lfs pull; for another revision: git lfs fetch origin REVISION"
            return GitError(visible(where), "Git LFS has not fetched its bytes", hint=hint)
        hint = "run: dvc pull; for another revision: dvc fetch --all-commits"
        return GitError(visible(where), "DVC has not fetched its bytes", hint=hint)


def files_of_model(repository: Repository, revision: str, path: str) -> list[Blob]:
    """List the files of a model; where DVC keeps it, its pointer stands for it."""
    files = repository.files(revision, path)
    return files or (repository.files(revision, f"{path}{DVC}") if path else [])


def read_lfs(content: bytes) -> Pointer | None:
    """Read a pointer of Git LFS; None if this is none."""
    match = _LFS.fullmatch(content)
    return Pointer("lfs", match[1].decode(), int(match[2])) if match else None


def read_dvc(content: bytes, where: str) -> tuple[str, Pointer]:
    """Read a `.dvc` file of one output; return the name of the output, and its pointer."""
    import yaml

    try:
        outs = yaml.safe_load(content)["outs"]
        (out,) = outs
        name, digest, size = out["path"], out["md5"], out.get("size")
    except (yaml.YAMLError, ValueError, KeyError, TypeError, RecursionError) as error:
        reason = "this is no .dvc file of one output with an md5"
        raise CorruptFile(visible(where), reason) from error
    folder = str(digest).endswith(".dir")
    if not _is_name(name) or not _MD5.fullmatch(str(digest).removesuffix(".dir")):
        raise CorruptFile(visible(where), "its output has no usable path or md5")
    is_size = isinstance(size, int) and not folder  # of a folder: of all its files together
    return name, Pointer("dvc", str(digest), size if is_size else None)


def files_of_dvc(pointer: Pointer, repository: Repository) -> Iterator[tuple[str, Pointer]]:
    """Yield the files that a pointer of DVC stands for: itself, or those of a folder."""
    if not pointer.digest.endswith(".dir"):
        yield "", pointer
        return
    listing = pointer.find(repository)
    where = visible(str(listing))
    if listing.stat().st_size > _LARGEST_LIST:
        raise CorruptFile(where, "the list of a folder of DVC is too large")
    try:
        entries = [(each["relpath"], each["md5"]) for each in json.loads(listing.read_bytes())]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CorruptFile(where, "this is no list of a folder of DVC") from error
    for name, digest in entries:
        if not _is_name(name) or not _MD5.fullmatch(str(digest)):
            shown = for_terminal(str(name))
            raise CorruptFile(where, f"it names the file '{shown}', expected one in the folder")
        yield name, Pointer("dvc", digest, None)


def _is_name(name: object) -> bool:
    """Is it a relative path that stays where it begins?"""
    if not isinstance(name, str) or not name or "\0" in name or name[0] == "/":
        return False
    return ".." not in PurePosixPath(name).parts


def _lfs_places(repository: Repository, digest: str) -> Iterator[Path]:
    storage = repository.setting("lfs.storage")
    home = repository.common / (storage or "lfs")
    yield home / "objects" / digest[:2] / digest[2:4] / digest


def _dvc_places(repository: Repository, digest: str) -> Iterator[Path]:
    """Yield where DVC 3 and DVC 2 keep a file, in the nearest `.dvc` folder upwards."""
    top = repository.top
    folders = [repository.folder, *repository.folder.parents] if top else []
    for folder in folders:
        cache = folder / DVC / "cache"
        yield cache / "files" / "md5" / digest[:2] / digest[2:]
        yield cache / digest[:2] / digest[2:]
        if folder == top:
            return


_PLACES = {"lfs": _lfs_places, "dvc": _dvc_places}
