"""Locations of files: a path on this machine, or the address of a file elsewhere.

    s3://bucket/folder/model.safetensors      object stores; gs:// and az:// too
    https://host/folder/model.safetensors     web servers
    hf://owner/name@revision/folder/file      the hub

An address has the parts of `pathlib.Path` that readers use, so that code which finds the files of
a model is written once for both. It never shows a secret: a password in it is refused, and what
follows the question mark of a web address, where signatures are, is used but not shown.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from .errors import UnreadableFile
from .escape import visible

ALLOW_HTTP = "DIFFLENS_ALLOW_HTTP"  # the environment variable that `--allow-http` sets
# A path object turns the two slashes into one.
_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+):/{1,2}(?!/)(.+)", re.DOTALL)
_ALMOST = re.compile(r"([A-Za-z0-9]+)://.*", re.DOTALL)  # a scheme, and no address
_HUB = "hf"
_WEB = frozenset({"https", "http"})
SCHEMES = frozenset({"s3", "gs", "az", _HUB}) | _WEB
# A revision is one part of the address, unless it is a pull request of the hub.
_HUB_ROOT = re.compile(
    r"([^/@]+\Z|[^/@]+/[^/@]+(?:@(?:refs/[^/@]+/[^/@]+|[^/@]+))?)(?:/(.*))?", re.DOTALL
)


class Query:
    """What follows the question mark of a web address; a signature may be in it.

    It is not shown, and it is not pickled: whoever has it can read the file.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str | None) -> None:
        """Keep the text; None for a query that stayed in another process."""
        self._text = text

    @property
    def text(self) -> str | None:
        """The query without its question mark; None if it stayed in another process."""
        return self._text

    def __eq__(self, other: object) -> bool:
        """Compare what is not shown."""
        return isinstance(other, Query) and self._text == other._text

    def __hash__(self) -> int:
        """Agree with the comparison."""
        return hash(self._text)

    def __repr__(self) -> str:
        """Show that there is one."""
        return "?..."

    def __reduce__(self) -> tuple[type[Query], tuple[None]]:
        """Leave the text behind."""
        return Query, (None,)


class Address(NamedTuple):
    """A file or a folder elsewhere: the scheme, what holds it, and the key in there.

    >>> address = Address("s3", "bucket", "models/base/model.safetensors")
    >>> str(address), address.name, str(address.parent)
    ('s3://bucket/models/base/model.safetensors', 'model.safetensors', 's3://bucket/models/base')
    """

    scheme: str
    root: str  # a bucket; a host with its port; `owner/name@revision`
    key: str  # no slash at either end; the empty string is all of the root
    query: Query | None = None  # of this one file, never of its neighbours

    def __str__(self) -> str:
        """Write it as users do, without secrets."""
        shown = f"{self.scheme}://{self.root}" + (f"/{self.key}" if self.key else "")
        return f"{shown}{self.query}" if self.query else shown

    def __truediv__(self, name: str) -> Address:
        """Return the address of a file in this folder; `name` may have several parts."""
        return self._replace(key=f"{self.key}/{name}" if self.key else name, query=None)

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
        return self._replace(key=self.key.rpartition("/")[0], query=None)

    def with_name(self, name: str) -> Address:
        """Return the address of another file in the same folder."""
        return self.parent / name

    def with_suffix(self, suffix: str) -> Address:
        """Return the address with another ending, or with none."""
        return self.with_name(PurePosixPath(self.name).with_suffix(suffix).name)


Location = Path | Address


def locate(text: str | os.PathLike[str] | Address) -> Location:
    """Return the location that a user named; what exists on this machine is a path.

    >>> locate("hf://org/model@v2/a.gguf")
    Address(scheme='hf', root='org/model@v2', key='a.gguf', query=None)
    >>> locate("models/a.gguf").name
    'a.gguf'
    >>> str(locate("https://host/a.gguf?signature=secret"))
    'https://host/a.gguf?...'
    """
    if isinstance(text, Address):
        return text
    text = os.fspath(text)
    match = _ADDRESS.fullmatch(text)
    if match is None or os.path.lexists(text):
        _refuse_almost(text)
        return Path(text)
    scheme, rest = match.groups()
    if scheme not in SCHEMES:
        known = ", ".join(sorted(SCHEMES))
        reason = f"no storage is called {visible(scheme)}"
        raise UnreadableFile(_without_secrets(scheme, rest), reason, hint=f"known: {known}")
    if scheme == "http" and os.environ.get(ALLOW_HTTP) != "1":
        reason = "http:// is not encrypted: anyone between can read and change the bytes"
        hint = "use https://, or allow it with --allow-http"
        raise UnreadableFile(_without_secrets(scheme, rest), reason, hint=hint)
    return _address(scheme, rest)


def _refuse_almost(text: str) -> None:
    """Raise if somebody meant an address, and no path: `s3://`, `S3://bucket`."""
    match = _ALMOST.fullmatch(text)
    if match is None or match[1].lower() not in SCHEMES or os.path.lexists(text):
        return
    where = _without_secrets(match[1], text.partition("://")[2])
    form = f"{match[1].lower()}://..."
    raise UnreadableFile(where, f"this is no address: one is written {form}")


def _address(scheme: str, rest: str) -> Address:
    query = None
    if scheme in _WEB:
        rest, _, _fragment = rest.partition("#")
        rest, mark, text = rest.partition("?")
        query = Query(text) if mark else None
    rest = rest.rstrip("/")
    if scheme == _HUB:
        return _hub_address(rest)
    root, _, key = rest.partition("/")
    where = _without_secrets(scheme, rest)
    if "@" in root:
        reason = "an address may not have a user name or a password in it"
        raise UnreadableFile(where, reason, hint="log in with the provider's own tools")
    if not root or any(part in ("", ".", "..") for part in key.split("/") if key):
        raise UnreadableFile(where, "the address has an empty part, or one that is only dots")
    return Address(scheme, root, key, query)


def _hub_address(rest: str) -> Address:
    match = _HUB_ROOT.fullmatch(rest)
    if match is None:
        reason = "an address on the hub is hf://owner/name, hf://owner/name@revision or longer"
        raise UnreadableFile(_without_secrets(_HUB, rest), reason)
    return Address(_HUB, match[1], match[2] or "")


def address_error(path: str) -> UnreadableFile | None:
    """Return the error for an address where only a path will do; None if this is a path.

    >>> print(address_error("s3://bucket/run").reason)
    this command reads local files only
    >>> address_error("models/a.gguf")
    """
    match = _ADDRESS.fullmatch(path)
    if match is None:
        return None
    where = _without_secrets(*match.groups())
    return UnreadableFile(where, "this command reads local files only", hint="download it first")


def _without_secrets(scheme: str, rest: str) -> str:
    """Write an address that was refused, without its password and its query."""
    rest, mark, _ = rest.partition("?")
    root, slash, key = rest.partition("/")
    root = f"...@{root.rpartition('@')[2]}" if "@" in root else root
    return visible(f"{scheme}://{root}{slash}{key}{'?...' if mark else ''}")
