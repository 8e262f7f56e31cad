"""Text out of a file as Markdown that stays text: no link, mention, tag or table cell of its own.

A code span is the one place where GitHub looks for nothing: no mention, no issue number, no
address, no HTML. So a word that is not plainly a word becomes one; backslashes alone would not do,
for mentions are looked for after they are gone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby

from difflens.core.escape import LONGEST_NAME, for_terminal

# A cell may not hold a bar, nor a span a tick, in any spelling that all parsers agree on.
_CODES = str.maketrans({"|": r"\x7c", "`": r"\x60"})
_AROUND = re.compile(r"(\(*)(.*?)([),.;:?]*)", re.DOTALL)
_NUMBER = r"[-+]?(?:\d+(?:[.,:]\d+)*)(?:e[-+]?\d+)?(?:%|[a-z]{1,2})?"
_WORD = re.compile(rf"{_NUMBER}|[^\W_]+(?:['/-][^\W_]+)*%?|->|[-+=·≤≥±→‖²/…]", re.IGNORECASE)
# What GitHub links without being asked: an issue, a commit, an address.
_LINKED = re.compile(r"[a-z]+-\d+|(?=.*[a-f])(?=.*\d)[0-9a-f]{7,40}|.*//.*", re.IGNORECASE)
_TICKED = re.compile(r"(^|[\s(])`([\w.=/-]+)`($|[\s),.;:])")
# What begins a list, a heading or a rule, where it begins a line.
_START = re.compile(r"^(\d*)([-+=.)])(?=\s|$)")


def code(text: str, longest: int = LONGEST_NAME) -> str:
    r"""Write a name as a code span; bars and ticks as their codes.

    >>> code("a|b"), code("")
    ('`a\\x7cb`', '` `')
    """
    shown = for_terminal(text, longest).translate(_CODES)
    if not shown.strip():
        return f"`{shown or ' '}`"
    # A parser takes one space off both ends, if there is one at both.
    return f"` {shown} `" if shown[0] == " " == shown[-1] else f"`{shown}`"


def prose(text: str, longest: int = 1000) -> str:
    """Write a sentence as it is, but what is no plain word in it as a code span.

    >>> prose("32 tensors changed, all in mlp.up_proj (see @all)")
    '32 tensors changed, all in `mlp.up_proj` (see `@all`)'
    """
    shown = _TICKED.sub(r"\1\2\3", for_terminal(text, longest))  # a span of the author's own
    words = [_parts(word) for word in shown.split()]
    written = []
    for strange, group in groupby(words, key=lambda parts: not is_plain(parts[1])):
        together = list(group)
        if not strange:
            written += ["".join(parts) for parts in together]
            continue
        inner = " ".join("".join(parts) for parts in together)
        before, middle, after = _parts(inner)
        written.append(f"{before}{code(middle, len(middle))}{after}")
    return _START.sub(r"\1\\\2", " ".join(written))


def row(cells: Iterable[str]) -> str:
    """Write a line of a table; the cells are Markdown already."""
    return f"| {' | '.join(cells)} |"


def table(heads: Iterable[str]) -> list[str]:
    """Write the two lines a table begins with."""
    heads = list(heads)
    return [row(heads), row("---" for _ in heads)]


def is_plain(word: str) -> bool:
    """Is it a word or a number that means nothing to any parser?"""
    return bool(_WORD.fullmatch(word)) and not _LINKED.fullmatch(word)


def _parts(word: str) -> tuple[str, str, str]:
    found = _AROUND.fullmatch(word)
    before, middle, after = found.groups() if found else ("", word, "")
    return (before, middle, after) if middle else ("", word, "")
