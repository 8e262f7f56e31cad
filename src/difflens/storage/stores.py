"""The stores that addresses lie in, and what lies in their folders."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import NamedTuple, Protocol

from difflens.core.addresses import Address, Location
from difflens.core.errors import LimitExceeded
from difflens.core.escape import visible

from .links import Link

_MOST_ENTRIES = 100_000  # files and folders in one folder
SECONDS = 60.0  # a listing is used again: long enough to open a model


class Entry(NamedTuple):
    """A file or a folder in a folder."""

    size: int | None  # None for a folder
    sha256: str | None = None  # of the bytes, where the store knows it

    @property
    def is_folder(self) -> bool:
        """Is it a folder?"""
        return self.size is None


class Store(Protocol):
    """What holds files: a bucket, a web server, a repository of the hub."""

    def link(self, address: Address) -> Link:
        """Return where the bytes of a file are asked for, signed if that is needed."""

    def entries(self, folder: Address) -> Mapping[str, Entry]:
        """List a folder; empty if it does not exist, `UnreadableFile` if it cannot be listed."""


class Stores:
    """The stores of this process, and the listings they gave lately."""

    def __init__(self) -> None:
        """Begin with none."""
        self._lock = threading.Lock()
        self._stores: dict[tuple[str, str], Store] = {}
        self._listings: dict[Address, tuple[float, Mapping[str, Entry]]] = {}
        self._pinned: dict[str, tuple[float, Location]] = {}

    def store(self, address: Address) -> Store:
        """Return the store that an address lies in."""
        with self._lock:
            place = address.scheme, address.root
            if place not in self._stores:
                self._stores[place] = _make(address)
            return self._stores[place]

    def pin(self, address: Address) -> Location:
        """Return where it lies at the commit that its revision means now."""
        if address.scheme != "hf":
            return address
        from . import hub

        since, pinned = self._pinned.get(address.root, (0.0, None))
        if pinned is None or time.monotonic() - since > SECONDS:
            pinned = hub.pin(address._replace(key=""))
            self._pinned[address.root] = time.monotonic(), pinned
        return pinned / address.key if address.key else pinned

    def entries(self, folder: Address) -> Mapping[str, Entry]:
        """List a folder, or return its listing of a moment ago."""
        listing = self.known_entries(folder)
        if listing is None:
            listing = self.store(folder).entries(folder)
            if len(listing) > _MOST_ENTRIES:
                reason = f"the folder has more than {_MOST_ENTRIES} files"
                raise LimitExceeded(visible(str(folder)), reason)
            self._listings[folder] = time.monotonic(), listing
        return listing

    def known_entries(self, folder: Address) -> Mapping[str, Entry] | None:
        """Return the listing of a moment ago; None if there is none."""
        since, listing = self._listings.get(folder, (0.0, None))
        return listing if time.monotonic() - since < SECONDS else None

    def forget(self) -> None:
        """Forget all stores and listings: settings of the environment are read again."""
        with self._lock:
            self._stores.clear()
            self._listings.clear()
            self._pinned.clear()


def _make(address: Address) -> Store:
    if address.scheme in ("https", "http"):
        from .web import Web

        return Web(address)
    if address.scheme == "hf":
        from .hub import Hub

        return Hub(address)
    from .objects import Bucket

    return Bucket(address)


STORES = Stores()
