"""Models on the Hugging Face hub: pinned to a commit, listed once, read by range.

A revision such as `main` moves. It is resolved to a commit when it is first used, and every later
request names the commit. The bytes of large files lie elsewhere: the hub redirects to a signed
address, which is used for all ranges until it expires.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, urlsplit

import msgspec

from difflens.core.addresses import Address, Location
from difflens.core.errors import LimitExceeded, UnreadableFile
from difflens.core.escape import visible

from .connections import RefusedHost
from .links import Link
from .stores import Entry
from .texts import Text, fetch_text

_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_TOKEN = re.compile(r"[!-~]{1,1000}")
_NEXT = re.compile(r'<([^<>]{1,4000})>\s*;\s*rel="next"')
_TRUE = frozenset({"1", "ON", "YES", "TRUE"})
_MOST_BYTES = 64 * 1024**2  # of one answer
_MOST_FILES = 100_000

Answer = TypeVar("Answer")


class _Revision(msgspec.Struct):
    sha: str


class _Lfs(msgspec.Struct):
    oid: str


class _File(msgspec.Struct):
    type: str
    path: str
    size: int = 0
    lfs: _Lfs | None = None


class Hub:
    """One model on the hub, at one commit."""

    def __init__(self, address: Address) -> None:
        """Take the name and the commit out of an address that is pinned."""
        self._repository, _, self._commit = address.root.partition("@")
        self._tree: dict[str, dict[str, Entry]] | None = None

    def link(self, address: Address) -> Link:
        """Return where the hub hands out a file, or says where it lies."""
        return _link(f"{self._repository}/resolve/{self._commit}/{quote(address.key)}")

    def entries(self, folder: Address) -> Mapping[str, Entry]:
        """List a folder; all folders come with the first listing."""
        if self._tree is None:
            self._tree = _fold(self._files(folder._replace(key="")))
        return self._tree.get(folder.key, {})

    def _files(self, where: Address) -> Iterator[_File]:
        shown = visible(str(where))
        link = _link(f"api/models/{self._repository}/tree/{self._commit}?recursive=true")
        count = 0
        while True:
            text = fetch_text(shown, link, _MOST_BYTES)
            files = _decode(text, list[_File])
            count += len(files)
            if count > _MOST_FILES:
                raise LimitExceeded(shown, f"it has more than {_MOST_FILES} files")
            yield from files
            onward = _NEXT.search(text.answer_headers.get("Link", ""))
            if onward is None:
                return
            link = _following(shown, link, onward[1])


def _following(shown: str, link: Link, location: str) -> Link:
    """Return the link to the next part of a listing, which must be on the same server."""
    try:
        following = link.follow(location)
    except RefusedHost:
        following = None
    if following is None or following.host != link.host:
        raise UnreadableFile(shown, "the hub's listing goes on at another server")
    return following


def pin(address: Address) -> Location:
    """Return the address of all of a model at a commit; offline, its folder in the cache."""
    name, _, revision = address.root.partition("@")
    revision = revision or "main"
    if is_offline():
        return _find_cached(address, name, revision)
    if _COMMIT.fullmatch(revision):
        return address
    where = visible(str(address))
    link = _link(f"api/models/{name}/revision/{quote(revision, safe='')}")
    commit = _decode(fetch_text(where, link, _MOST_BYTES), _Revision).sha
    if not _COMMIT.fullmatch(commit):
        raise UnreadableFile(where, "the hub does not say which commit this is")
    return address._replace(root=f"{name}@{commit}")


def is_offline() -> bool:
    """Is the network forbidden, so that only the cache may be read?"""
    value = os.environ.get("HF_HUB_OFFLINE") or os.environ.get("TRANSFORMERS_OFFLINE") or ""
    return value.upper() in _TRUE


def _find_cached(address: Address, name: str, revision: str) -> Path:
    """Return the folder of a model in the cache of huggingface_hub."""
    where = visible(str(address))
    folder = _cache() / f"models--{name.replace('/', '--')}"
    commit = revision
    if not _COMMIT.fullmatch(revision):
        try:
            commit = (folder / "refs" / revision).read_text("ascii").strip()
        except (OSError, ValueError):
            commit = ""
    snapshot = folder / "snapshots" / commit
    if not _COMMIT.fullmatch(commit) or not snapshot.is_dir():
        hint = "unset HF_HUB_OFFLINE, or download it first"
        raise UnreadableFile(where, "it is not in the cache, and the hub is offline", hint=hint)
    return snapshot


def _cache() -> Path:
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if value := os.environ.get(variable):
            return Path(os.path.expandvars(value)).expanduser()
    return _home() / "hub"


def _home() -> Path:
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    home = os.environ.get("HF_HOME") or f"{caches}/huggingface"
    return Path(os.path.expandvars(home)).expanduser()


def _link(target: str) -> Link:
    endpoint = (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")
    parts = urlsplit(endpoint)
    if parts.scheme not in ("https", "http") or not parts.hostname or "@" in parts.netloc:
        raise UnreadableFile("HF_ENDPOINT", "this is no address of a server")
    token = _token()
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return Link(f"{endpoint}/{target}", headers, frozenset({parts.hostname}))


def _token() -> str | None:
    """Return the token of the user's login; None without one."""
    if os.environ.get("HF_HUB_DISABLE_IMPLICIT_TOKEN", "").upper() in _TRUE:
        return None
    for variable in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_HUB_TOKEN"):
        if token := os.environ.get(variable, "").strip():
            return _checked(token, variable)
    path = Path(os.environ.get("HF_TOKEN_PATH") or _home() / "token").expanduser()
    try:
        token = path.read_text("utf-8").strip()
    except (OSError, ValueError):
        return None
    return _checked(token, str(path)) if token else None


def _checked(token: str, place: str) -> str:
    if not _TOKEN.fullmatch(token):
        raise UnreadableFile(visible(place), "the token has characters that no token has")
    return token


def _decode(text: Text, kind: type[Answer]) -> Answer:
    try:
        return msgspec.json.decode(text.content, type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        text.refuse("the hub's answer cannot be understood", error)


def _fold(files: Iterator[_File]) -> dict[str, dict[str, Entry]]:
    """Sort files into their folders; a name that would lead elsewhere is left out."""
    folders: dict[str, dict[str, Entry]] = {"": {}}
    for file in files:
        parts = file.path.split("/")
        if file.type != "file" or file.size < 0 or any(each in ("", ".", "..") for each in parts):
            continue
        for depth in range(1, len(parts)):
            folder, name = "/".join(parts[: depth - 1]), parts[depth - 1]
            folders.setdefault(folder, {}).setdefault(name, Entry(None))
        sha256 = file.lfs.oid if file.lfs and _SHA256.fullmatch(file.lfs.oid) else None
        folders.setdefault("/".join(parts[:-1]), {})[parts[-1]] = Entry(file.size, sha256)
    return folders
