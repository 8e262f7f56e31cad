"""Buckets of object stores. obstore lists them and signs addresses; the bytes are read by us.

The credentials are found as the provider's own tools find them. What leaves this room is a signed
address of one file, valid for an hour, or a header that is sent to the store only.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from datetime import timedelta
from typing import Any, Protocol, TypeVar
from urllib.parse import quote, unquote, urlsplit

from difflens.core.addresses import Address
from difflens.core.errors import MissingExtra, UnreadableFile
from difflens.core.escape import visible

from .links import Link
from .stores import Entry

T = TypeVar("T")
_VALID = timedelta(hours=1)
_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>([A-Za-z0-9]{1,60})</Code>")
_ELSEWHERE = frozenset({"PermanentRedirect", "AuthorizationHeaderMalformed"})
OPTIONS: dict[str, Any] = {
    "client_options": {"allow_http": True, "timeout": timedelta(seconds=30)},
    "retry_config": {"max_retries": 4, "retry_timeout": timedelta(seconds=20)},
}


class Provider(Protocol):
    """One kind of object store: how its buckets are opened, and its files asked for."""

    def open(self, bucket: str) -> Any:
        """Return obstore's object for a bucket, with the credentials of this machine."""

    def link(self, store: Any, bucket: str, key: str) -> Link:
        """Return where a file is asked for, with what proves that it may be read."""


class Bucket:
    """One bucket, with the credentials that this machine has for it."""

    def __init__(self, address: Address) -> None:
        """Open the bucket, which asks nobody yet."""
        try:
            import obstore
        except ImportError:
            raise MissingExtra(f"reading {address.scheme}://", "cloud") from None
        self._list = obstore.list_with_delimiter
        self._provider = _provider(address.scheme)
        try:
            self._store = self._provider.open(address.root)
        except Exception as error:  # noqa: BLE001  obstore has errors of many kinds
            raise _unreadable(address, error) from None

    def link(self, address: Address) -> Link:
        """Return where a file is asked for."""
        try:
            return _answer(self._provider.link, self._store, address.root, address.key)
        except UnreadableFile:
            raise
        except Exception as error:  # noqa: BLE001  the same
            raise _unreadable(address, error) from None

    def entries(self, folder: Address) -> Mapping[str, Entry]:
        """List what lies directly in a folder."""
        try:
            listing = _answer(self._list, self._store, folder.key or None)
        except Exception as error:  # noqa: BLE001  the same
            raise _unreadable(folder, error) from None
        entries = {path.rpartition("/")[2]: Entry(None) for path in listing["common_prefixes"]}
        for each in listing["objects"]:
            if each["path"] != folder.key:  # some tools write an empty object for a folder
                entries[each["path"].rpartition("/")[2]] = Entry(each["size"])
        return entries


def _answer(ask: Callable[..., T], *words: Any) -> T:
    """Ask on a thread of its own: while obstore waits for a server, it hears no Ctrl-C."""
    future = Future[T]()

    def settle() -> None:
        try:
            future.set_result(ask(*words))
        except BaseException as error:  # noqa: BLE001  it is raised by who waits
            future.set_exception(error)

    threading.Thread(target=settle, name="difflens-store", daemon=True).start()
    return future.result()


def signed_link(store: Any, key: str) -> Link:
    """Sign the address of a file; raise unless it is the address of that file.

    obstore forgets to escape some characters in addresses of Google, as `?` and `%`.
    """
    import obstore

    for name in (key, quote(key)):
        link = named_link(obstore.sign(store, "GET", name, _VALID))
        if unquote(urlsplit(link.url).path).endswith(f"/{key}"):
            return link
    raise ValueError(key)


def named_link(url: str, headers: Mapping[str, str] | None = None) -> Link:
    """Return the link to a server that the user's settings name."""
    return Link(url, headers or {}, frozenset({urlsplit(url).hostname or ""}))


def plain_url(endpoint: str, *parts: str) -> str:
    """Write the address of a file as it is, for files that anybody may read."""
    return "/".join([endpoint.rstrip("/"), *map(quote, parts)])


def _provider(scheme: str) -> Provider:
    if scheme == "s3":
        from .s3 import S3

        return S3()
    if scheme == "gs":
        from .google import Google

        return Google()
    from .azure import Azure

    return Azure()


def _unreadable(address: Address, error: Exception) -> UnreadableFile:
    """Describe an error of obstore in one line: its own text may hold anything."""
    where, text = visible(str(address)), str(error)
    code, status = _CODE.search(text), _STATUS.search(text)
    if code and code[1] == "NoSuchBucket":
        return UnreadableFile(where, "no such bucket")
    if code and code[1] in _ELSEWHERE:
        reason = "the bucket lies in another region"
        return UnreadableFile(where, reason, hint="set AWS_REGION to the region of the bucket")
    if isinstance(error, FileNotFoundError):
        return UnreadableFile(where, "no such file")
    if status and status[1] in ("401", "403"):
        shown = f"{status[1]} {code[1]}" if code else status[1]
        return UnreadableFile(where, f"the server denies access: {shown}")
    if status:
        return UnreadableFile(where, f"the server answered {status[1]}")
    reason = "the store cannot be reached, or the settings for it are incomplete"
    return UnreadableFile(where, reason, hint="see docs/remote.md for the settings")
