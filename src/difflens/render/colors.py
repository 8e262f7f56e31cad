"""ANSI colours for the text renderer, and nothing else."""

from collections.abc import Callable

Paint = Callable[[str, str], str]

_CODES = {
    "+": "32",
    "-": "31",
    "~": "33",
    "!": "35",
    "?": "35",
    ">": "36",
    "=": "36",
    "*": "36",
    "alarm": "1;31",
    "totals": "2",
    "verdict": "1",
}


def painter(color: bool) -> Paint:
    r"""Give a function `(text, what) -> text`; without colour it changes nothing.

    >>> painter(True)("+ a", "+"), painter(False)("+ a", "+")
    ('\x1b[32m+ a\x1b[0m', '+ a')
    """
    return _painted if color else _plain


def _painted(text: str, what: str) -> str:
    return f"\x1b[{_CODES[what]}m{text}\x1b[0m" if text else ""


def _plain(text: str, what: str) -> str:  # noqa: ARG001  one signature for both
    return text
