"""What a user calls a store, read: which database, and how to name it without its password."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from ..errors import StoreError

_SERVERS = ("postgresql", "postgres", "postgresql+psycopg")
_NETWORKS = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "fuse.sshfs", "lustre"})


class Place(NamedTuple):
    """Where a store is: a file, or the address of a server; `shown` is fit to be printed."""

    shown: str
    path: Path | None = None
    url: str = ""
    secrets: tuple[str, ...] = ()

    def without_secrets(self, told: str) -> str:
        """Take out of a text what must not be printed."""
        for secret in self.secrets:
            told = told.replace(secret, "***")
        return told


def place_of(url: str) -> Place:
    """Read `sqlite:///PATH`, a bare path or `postgresql://USER:PASSWORD@HOST/DATABASE`."""
    scheme, separator, rest = str(url).partition("://")
    if not separator:
        return _file(str(url))
    if scheme == "sqlite":
        return _file(unquote(rest.removeprefix("/")))
    if scheme in _SERVERS:
        return _server(rest)
    raise StoreError(
        f"{scheme}://...", "is no store that is known", hint="sqlite:///PATH or postgresql://..."
    )


def _file(path: str) -> Place:
    if not path or path == ":memory:" or "\0" in path:
        raise StoreError(path or "sqlite://", "names no file", hint="sqlite:///PATH")
    found = Path(path).expanduser()
    return Place(str(found), found)


def _server(rest: str) -> Place:
    try:
        parts = urlsplit(f"postgresql://{rest}")
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        raise StoreError("postgresql://...", "is no address", hint="postgresql://...") from None
    shown = f"postgresql://{parts.hostname or ''}{port}{parts.path}"
    given = [parts.password or "", *(each.partition("=")[2] for each in parts.query.split("&")
             if "password" in each.partition("=")[0])]  # fmt: skip
    secrets = {form for each in given if each for form in (each, unquote(each))}
    return Place(shown, None, f"postgresql+psycopg://{rest}", tuple(sorted(secrets, key=len))[::-1])


def on_network(path: Path) -> str | None:
    """Name the network file system a file lies on, which cannot keep SQLite's locks."""
    try:
        mounts = Path("/proc/self/mounts").read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    here, found = os.path.realpath(path), ("", "")
    for line in mounts:
        folder, kind = line.split(" ")[1:3]
        folder = folder.replace("\\040", " ")
        inside = here == folder or here.startswith(folder.rstrip("/") + "/")
        if inside and len(folder) >= len(found[0]):
            found = folder, kind
    return found[1] if found[1] in _NETWORKS else None
