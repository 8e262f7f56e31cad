"""Locations of files: a path on this machine, or the address of a file elsewhere.

    s3://bucket/folder/model.safetensors      object stores; gs:// and az:// too
    https://host/folder/model.safetensors     web servers
    hf://owner/name@revision/folder/file      the hub

An address has the parts of `pathlib.Path` that readers use, so that code which finds the files of
a model is written once for both.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from .errors import UnreadableFile
from .escape import visible

# A path object turns the two slashes into one.
_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+):/{1,2}(?!/)(.+)", re.DOTALL)
_HUB = "hf"
SCHEMES = frozenset({"s3", "gs", "az", "https", "http", _HUB})


class Address(NamedTuple):
    """A file or a folder elsewhere: the scheme, what holds it, and the key in there.

    >>> address = Address("s3", "bucket", "models/base/model.safetensors")
    >>> str(address), address.name, str(address.parent)
    ('s3://bucket/models/base/model.safetensors', 'model.safetensors', 's3://bucket/models/base')
    """

    scheme: str
    root: str  # a bucket; a host with its port; `owner/name@revision`
    key: str  # no slash at either end; the empty string is all of the root

    def __str__(self) -> str:
        """Write it as users do."""
        return f"{self.scheme}://{self.root}" + (f"/{self.key}" if self.key else "")

    def __truediv__(self, name: str) -> Address:
        """Return the address of a file in this folder; `name` may have several parts."""
        return self._replace(key=f"{self.key}/{name}" if self.key else name)

    @property
    def name(self) -> str:
        """The last part of the key."""
        return self.key.rpartition("/")[2]

    @property
    def suffix(self) -> str:
        """The ending of the name, with its dot."""
        return PurePosixPath(self.name).suffix

    @property
    def parent(self) -> Address:
        """The folder it lies in."""
        return self._replace(key=self.key.rpartition("/")[0])

    def with_name(self, name: str) -> Address:
        """Return the address of another file in the same folder."""
        return self.parent / name

    def with_suffix(self, suffix: str) -> Address:
        """Return the address with another ending, or with none."""
        return self.with_name(PurePosixPath(self.name).with_suffix(suffix).name)


Location = Path | Address


def locate(text: str | os.PathLike[str]) -> Location:
    """Return the location that a user named; what exists on this machine is a path.

    >>> locate("hf://org/model@v2/a.gguf")
    Address(scheme='hf', root='org/model@v2', key='a.gguf')
    >>> locate("models/a.gguf").name
    'a.gguf'
    """
    text = os.fspath(text)
    match = _ADDRESS.fullmatch(text)
    if match is None or os.path.lexists(text):
        return Path(text)
    scheme, rest = match.groups()
    if scheme not in SCHEMES:
        known = ", ".join(sorted(SCHEMES))
        reason = f"no storage is called {visible(scheme)}"
        raise UnreadableFile(visible(f"{scheme}://{rest}"), reason, hint=f"known: {known}")
    parts = rest.rstrip("/").split("/")
    roots = 2 if scheme == _HUB else 1
    return Address(scheme, "/".join(parts[:roots]), "/".join(parts[roots:]))


def address_error(path: str) -> UnreadableFile | None:
    """Return the error for an address where only a path will do; None if this is a path.

    >>> print(address_error("s3://bucket/run").reason)
    this command reads local files only
    >>> address_error("models/a.gguf")
    """
    match = _ADDRESS.fullmatch(path)
    if match is None:
        return None
    where = visible("{}://{}".format(*match.groups()))
    return UnreadableFile(where, "this command reads local files only", hint="download it first")
