"""Natural order of names: layer 2 before layer 10.

A key is text, not a list of parts: comparing two strings is one call into C, and a number of
5,000 digits needs no conversion (`int` refuses it). Each number is written as its length and then
its digits, so that a longer number sorts later. Components that names share are coded once.
"""

import re
from functools import lru_cache

_DIGITS = re.compile("[0-9]+")


def natural_key(name: str) -> tuple[str, str]:
    """Return a key that sorts numbers in names by their value, under every locale.

    Names that differ only in leading zeros are sorted by the name itself.

    >>> sorted(["h.10.w", "h.2.w", "h.02.w"], key=natural_key)
    ['h.02.w', 'h.2.w', 'h.10.w']
    """
    return ".".join(map(_component, name.split("."))), name


@lru_cache(maxsize=16384)
def _component(text: str) -> str:
    return _DIGITS.sub(_counted, text)


def _counted(run: re.Match[str]) -> str:
    return _code(run[0].lstrip("0"))


def _code(digits: str) -> str:
    # From nine digits on, the length is itself coded, so the end of every code is known.
    size = len(digits)
    return f"{size}{digits}" if size < 9 else f"9{_code(str(size))}{digits}"
