"""Natural order of names: layer 2 before layer 10.

A key is text, not a list of parts: comparing two strings is one call into C, and
a run of 5,000 digits costs no conversion (`int` refuses it). Each run of digits
is written as its length and then itself, so that a longer number sorts later.
Names share most of their components, so those are coded once.
"""

import re
from functools import lru_cache

_DIGITS = re.compile("[0-9]+")


def natural_key(name: str) -> tuple[str, str]:
    """Give a key that sorts names as people count, the same under every locale.

    Names that differ only in leading zeros are told apart by the plain string.

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
    # From nine digits on the length is itself a counted number: every code ends where it says.
    size = len(digits)
    return f"{size}{digits}" if size < 9 else f"9{_code(str(size))}{digits}"
