"""The marks of the gradient-flow pictures: a shade for a size, a sign for a state."""

from __future__ import annotations

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
