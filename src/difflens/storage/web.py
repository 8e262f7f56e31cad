"""Files on web servers, which do not list their folders."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NoReturn
from urllib.parse import quote

from difflens.core.addresses import Address
from difflens.core.errors import UnreadableFile
from difflens.core.escape import visible

from .links import Link
from .stores import Entry

_HOST = re.compile(r"([A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?")


class Web:
    """A web server that the user named."""

    def __init__(self, address: Address) -> None:
        """Check the name of the server."""
        match = _HOST.fullmatch(address.root)
        if match is None:
            raise UnreadableFile(visible(str(address)), "this is no name of a server")
        self._named = frozenset({match[1].strip("[]").lower()})

    def link(self, address: Address) -> Link:
        """Return the address as it was written, with the characters escaped that must be."""
        path = quote(address.key, safe="/%:@!$&'()*+,;=~")
        url = f"{address.scheme}://{address.root}/{path}"
        if address.query is None:
            return Link(url, named=self._named)
        text = address.query.text
        if text is None:
            reason = "the signature in its address stays on the machine where it was typed"
            raise UnreadableFile(visible(str(address)), reason)
        return Link(f"{url}?{quote(text, safe=_QUERY)}", named=self._named)

    def entries(self, folder: Address) -> Mapping[str, Entry]:
        """Refuse: there is no common way to ask."""
        return _refuse_listing(folder)


_QUERY = "/%:@!$&'()*+,;=~?[]|"


def _refuse_listing(folder: Address) -> NoReturn:
    raise UnreadableFile(
        visible(str(folder)),
        "a web server does not list its folders",
        hint="name the file; of a model in several files, name its index",
    )
