"""Where the bytes of a file are asked for: an address that may be signed, and expires then."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

from .connections import Host, RefusedHost

_URL = re.compile(r"[!-~]{1,16000}")  # what a server may be asked for
_PORTS = {"http": 80, "https": 443}
_NOTHING: Mapping[str, str] = MappingProxyType({})


class Link(NamedTuple):
    """The address of one file on a server, with what proves that it may be read.

    Its text is a secret: neither `repr` nor an error shows more than the host.
    """

    url: str
    headers: Mapping[str, str] = _NOTHING
    named: frozenset[str] = frozenset()  # hosts that the user chose

    def __repr__(self) -> str:
        """Show the host only."""
        return f"Link({self.host.name})"

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """Refuse: a link is made where it is used."""
        raise TypeError("a link may be signed, and is never pickled")

    @property
    def host(self) -> Host:
        """The server that is asked."""
        parts = urlsplit(self.url)
        name = parts.hostname or ""
        port = parts.port or _PORTS.get(parts.scheme, 0)
        return Host(parts.scheme, name, port, name in self.named)

    @property
    def target(self) -> str:
        """What that server is asked for."""
        parts = urlsplit(self.url)
        return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")

    def follow(self, location: str) -> Link:
        """Return the link of a redirect; what proves who we are stays with its host."""
        try:
            link = self._replace(url=urljoin(self.url, location).partition("#")[0])
            before, after = self.host, link.host
        except ValueError as error:  # no such port, or no address at all
            raise RefusedHost from error
        if not _URL.fullmatch(link.url):
            raise RefusedHost
        if after.scheme not in _PORTS or not after.name or "@" in urlsplit(link.url).netloc:
            raise RefusedHost
        if before.scheme == "https" and after.scheme != "https":
            raise RefusedHost
        return link if before == after else link._replace(headers=_NOTHING)


class Route:
    """How one file is reached now: its link, and what follows when that has expired."""

    def __init__(self, sign: Callable[[], Link]) -> None:
        """Remember how to make a link."""
        self._sign = sign
        self._lock = threading.Lock()
        self._link: Link | None = None

    def link(self, stale: Link | None = None) -> Link:
        """Return the link; a new one if this one is stale. Of many threads one makes it."""
        with self._lock:
            if self._link is None or self._link is stale:
                self._link = self._sign()
            return self._link

    def settle(self, link: Link) -> None:
        """Ask here from now on: redirects led to it."""
        with self._lock:
            self._link = link
