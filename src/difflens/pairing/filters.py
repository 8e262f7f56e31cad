"""Which pairs the user wants to see, by name."""

from __future__ import annotations

import re

from ..errors import DifflensError
from ..records import Pair


def kept(pairs: list[Pair], path: str | None, ignore: str | None) -> list[Pair]:
    """Keep pairs whose name contains `path`, drop those `ignore` finds a match in.

    Either side's name counts, so that a renamed tensor is not torn apart.
    """
    if path is None and ignore is None:
        return pairs
    wanted = re.sub(r"^tensors?\.", "", path or "")
    try:
        unwanted = re.compile(ignore) if ignore else None
    except re.error as error:
        raise DifflensError(f"{ignore!r} is no regular expression: {error}") from error

    def keeps(pair: Pair) -> bool:
        names = [info.name for info in (pair.left, pair.right) if info]
        found = any(wanted in name for name in names)
        return found and not (unwanted and any(map(unwanted.search, names)))

    left = [pair for pair in pairs if keeps(pair)]
    if pairs and not left:  # a misspelt name must not look like two equal models
        asked = f"no name contains {wanted!r}" if wanted else "no name is left"
        without = f" without a match of {ignore!r}" if ignore else ""
        raise DifflensError(f"nothing to compare: {asked}{without}")
    return left
