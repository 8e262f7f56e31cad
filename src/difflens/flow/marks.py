"""The marks of the gradient-flow pictures: a shade for a size, a sign for a state."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from ..escape import for_terminal
from ..flow_results import FLOW_STATES, LEVELS, MARKS, FlowPicture

SHADES = " ░▒▓█"


def shade(level: int) -> str:
    """Give one of five shades; halves go to the darker one.

    >>> shade(0), shade(30), shade(29), shade(240)
    (' ', '░', ' ', '█')
    """
    return SHADES[(2 * level * (len(SHADES) - 1) + LEVELS) // (2 * LEVELS)]


def mark(state: int, level: int) -> str:
    """Give the sign of a cell: that of its state, or the shade of a healthy one."""
    return MARKS.get(FLOW_STATES[state]) or shade(level)


def marks(picture: FlowPicture, row: int) -> str:
    """Give the signs of one layer, a sign a column."""
    part = slice(row * picture.columns, (row + 1) * picture.columns)
    return "".join(map(mark, picture.states[part], picture.levels[part]))


def display_width(text: str) -> int:
    """Count the cells a terminal needs: wide letters take two, combining ones none.

    >>> display_width("weight"), display_width("重み"), display_width("e\u0301")
    (6, 4, 1)
    """
    return sum(map(_cells, text))


def _cells(letter: str) -> int:
    if unicodedata.category(letter) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def fitted_names(names: Sequence[str], width: int) -> list[str]:
    """Write names right-aligned in so many cells, each on one line and harmless.

    Of those too long the part that these share goes first, then the middle.

    >>> fitted_names(["model.layers.0.attention.weight", "model.layers.1.mlp.weight"], 16)
    ['…0.atten….weight', '   …1.mlp.weight']
    """
    shown = [for_terminal(name) for name in names]
    long = [name for name in shown if display_width(name) > width]
    begin = _shared(long) if len(long) > 1 else 0
    return [_right(_fitted(name, begin, width), width) for name in shown]


def _shared(names: Sequence[str]) -> int:
    """Count the letters of the parts, up to a dot, that all names begin with."""
    letters = 0
    for parts in zip(*(name.split(".")[:-1] for name in names), strict=False):
        if len(set(parts)) > 1:
            break
        letters += len(parts[0]) + 1
    return letters


def _fitted(name: str, begin: int, width: int) -> str:
    if display_width(name) <= width:
        return name
    lead, rest = ("…", name[begin:]) if begin else ("", name)
    if display_width(lead + rest) <= width:
        return lead + rest
    room = width - display_width(lead) - 1
    head = _first(rest, (room + 1) // 2)
    tail = _first(rest[::-1], room - display_width(head))[::-1]
    while tail and _cells(tail[0]) == 0:  # its own letter is gone
        tail = tail[1:]
    return f"{lead}{head}…{tail}"


def cut(text: str, width: int) -> str:
    """Cut a line to so many cells, with a sign that it was cut."""
    return text if display_width(text) <= width else f"{_first(text, width - 1)}…"


def _first(text: str, room: int) -> str:
    kept = ""
    for letter in text:
        room -= _cells(letter)
        if room < 0:
            break
        kept += letter
    return kept


def _right(text: str, width: int) -> str:
    return " " * (width - display_width(text)) + text


def rounded(value: float) -> str:
    """Write a number with two digits.

    >>> rounded(0.0123), rounded(0.0)
    ('1.2e-02', '0')
    """
    return f"{value:.1e}" if value else "0"


def scale_words(picture: FlowPicture) -> str:
    """Say what the shades run over."""
    if picture.scale == "layer":
        return "each layer from its lowest to its highest value"
    if picture.scale == "frame":
        return "each column from its lowest to its highest value"
    if picture.low is None or picture.high is None:
        return "no value"
    return f"{rounded(picture.low)} to {rounded(picture.high)}, the same for all"
