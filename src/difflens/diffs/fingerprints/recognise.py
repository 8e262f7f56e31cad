"""Recognises a fingerprint by its first bytes; every diff asks this, so little is imported."""

from __future__ import annotations

from os import PathLike, fspath

from difflens.core.addresses import Address, locate
from difflens.core.errors import DifflensError
from difflens.storage.places import is_file, open_file

SUFFIX = ".fingerprint"
HEAD = b'{"__metadata__":{"format":"difflens fingerprint",'  # after the length of the header
HEAD_BYTES = 8 + len(HEAD)


def is_fingerprint(model: object) -> bool:
    """Is it the path of a file that begins as fingerprints do?"""
    if not isinstance(model, (str, PathLike)):
        return False
    try:
        location = locate(fspath(model))
        if isinstance(location, Address) and location.suffix != SUFFIX:
            return False  # looking into what lies elsewhere would take a request
        if not is_file(location):
            return False
        file = open_file(location)
    except DifflensError:
        return False  # whoever opens it as a model says why
    try:
        return file.read(0, min(file.size, HEAD_BYTES))[8:] == HEAD
    except DifflensError:
        return False
    finally:
        file.close()


def has_fingerprint(*models: object) -> bool:
    """Is one of them a fingerprint?"""
    return any(map(is_fingerprint, models))
