"""Text for a terminal, where a wide letter takes two cells: cut, shortened, folded.

The widths are those of rich, which has the tables of Unicode. It is imported only for text beyond
ASCII: that is rare, and the import takes a tenth of the time of a listing.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence

# What our own characters become where an encoding lacks them; each keeps its one cell in pictures.
_LOOKALIKES = dict(zip("─│┬├└ ░▒▓█▏▁▂▃▄▅▆▇·…→‖²³", "-|+++ .:*#|_.:-=+*,~>|23", strict=True))
_LOOKALIKES |= {"±": "+-", "≤": "<=", "≥": ">=", "≈": "~=", "‖": "|", "√": "sqrt", "Σ": "sum"}
_LOOKALIKES |= {"β": "beta", "λ": "lambda", "₁": "1", "₂": "2"}
PLAIN = "difflens.plain"  # the name of the error handler, for `str.encode` and streams


def _replace_letters(error: UnicodeError) -> tuple[str, int]:
    """Replace what an encoding lacks by a lookalike, or by its code."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = error.object[error.start : error.end]
    shown = (
        _LOOKALIKES.get(letter) or letter.encode("ascii", "backslashreplace").decode()
        for letter in letters
    )
    return "".join(shown), error.end


codecs.register_error(PLAIN, _replace_letters)


def display_width(text: str) -> int:
    """Count the cells of a text: two for a wide letter, none for a combining one.

    >>> display_width("weight"), display_width("重み"), display_width("e\u0301")
    (6, 4, 1)
    """
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def flush(text: str, width: int, *, right: bool = False) -> str:
    """Pad a text to a number of cells, on its right or on its left.

    >>> flush("重み", 6), flush("0.5", 6, right=True)
    ('重み  ', '   0.5')
    """
    space = " " * (width - display_width(text))
    return space + text if right else text + space


def cut(text: str, width: int) -> str:
    """Cut a line to a number of cells, and mark the cut.

    >>> cut("weights", 4)
    'wei…'
    """
    return text if display_width(text) <= width else f"{_first(text, width - 1)}…"


def fitted_names(names: Sequence[str], width: int) -> list[str]:
    """Shorten names to a number of cells; `escape.for_terminal` made them harmless before.

    Long names lose the parts that all begin with, then their middle. If two would then look the
    same, they lose the parts that all end with too, and last everything but what differs.

    >>> fitted_names(["model.layers.0.attention.weight", "model.layers.1.mlp.weight"], 16)
    ['…0.atten….weight', '…1.mlp.weight']
    >>> fitted_names([f"h.{i}.attention.{p}.weight" for i in (0, 1) for p in "qk"], 16)
    ['…0.attention.q…', '…0.attention.k…', '…1.attention.q…', '…1.attention.k…']
    """
    long = [name for name in names if display_width(name) > width]
    begin, end = (
        (_shared(long), _shared([name[::-1] for name in long])) if len(long) > 1 else (0, 0)
    )
    shown = [_fitted(name, begin, 0, width) for name in names]
    alike = _alike(names, shown)
    if alike and end:
        shorter = [_fitted(name, begin, end, width) for name in names]
        if len(_alike(names, shorter)) < len(alike):
            shown, alike = shorter, _alike(names, shorter)
    for places in alike:
        apart = _same_letters([names[place] for place in places])
        for place in places:
            shown[place] = _around(names[place], apart, width)
    return shown


def _shared(names: Sequence[str]) -> int:
    """Count the letters of the components, up to a dot, that all names begin with."""
    letters = 0
    for parts in zip(*(name.split(".")[:-1] for name in names), strict=False):
        if len(set(parts)) > 1:
            break
        letters += len(parts[0]) + 1
    return letters


def _same_letters(names: Sequence[str]) -> int:
    """Count the letters that all names begin with."""
    first, last = min(names), max(names)
    pairs = enumerate(zip(first, last, strict=False))
    return next((place for place, (one, other) in pairs if one != other), len(first))


def _alike(names: Sequence[str], shown: Sequence[str]) -> list[list[int]]:
    """List the indices of different names that look the same."""
    places: dict[str, list[int]] = {}
    for place, text in enumerate(shown):
        places.setdefault(text, []).append(place)
    return [each for each in places.values() if len({names[place] for place in each}) > 1]


def _fitted(name: str, begin: int, end: int, width: int) -> str:
    """Shorten a name: leave out what others share at both ends, then its middle."""
    if display_width(name) <= width:
        return name
    lead, tail = "…" if begin else "", "…" if end else ""
    rest = name[begin : len(name) - end]
    room = width - display_width(lead + tail)
    if display_width(rest) > room:
        head = _first(rest, room // 2)
        rest = f"{head}…{_last(rest, room - 1 - display_width(head))}"
    return f"{lead}{rest}{tail}"


def _around(name: str, place: int, width: int) -> str:
    """Show the part of a name around a position."""
    if display_width(name) <= width:
        return name
    if display_width(name[place:]) < width:
        return f"…{_last(name, width - 1)}"
    if display_width(name[: place + 1]) < width:
        return f"{_first(name, width - 1)}…"
    return f"…{_first(name[place:], width - 2)}…"


def _first(text: str, room: int) -> str:
    """Return as many letters as fit; a combining letter stays with the one before it."""
    kept = 0
    while kept < len(text) and display_width(text[: kept + 1]) <= room:
        kept += 1
    return text[:kept]


def _last(text: str, room: int) -> str:
    start = len(text)
    while start and display_width(text[start - 1 :]) <= room:
        start -= 1
    while start < len(text) and display_width(text[start]) == 0:  # its base letter is cut off
        start += 1
    return text[start:]


def folded(text: str, width: int) -> list[str]:
    """Break a text at spaces into lines of a number of cells; break a longer word anywhere.

    >>> folded("stopped without end", 12)
    ['stopped', 'without end']
    """
    if display_width(text) <= width:
        return [text]
    words = text.lstrip(" ")
    lines = [" " * (len(text) - len(words))]  # keep the indentation
    for word in words.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1].strip(" ") else lines[-1] + word
        if display_width(longer) <= width:
            lines[-1] = longer
            continue
        if lines[-1].strip(" "):
            lines.append("")
        rest = word
        while display_width(rest) > width:
            torn = _first(rest, width) or rest[0]
            lines[-1], rest = torn, rest[len(torn) :]
            lines.append("")
        lines[-1] = rest
    return lines
