"""The gradient flow as text: a still heat map, and one text a step to be played.

It is drawn here and not in the room `render`, which this one may not import: drawing itself as text
is part of the animator's contract. Who wants colours hands in a painter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from textwrap import wrap

from difflens.core.escape import for_terminal
from difflens.core.terminal import cut, display_width, fitted_names, flush

from ..records.flow import FIELD_WORDS, FLOW_STATES, LEVELS, MARKS, WORDS, FlowPicture

Paint = Callable[[str, str], str]  # a text and what it is, to the text in its colour
EMPTY = "(no gradient frames recorded)"
_LEAST_NAME = len("layer")
_LEAST_COLUMNS = 10
_APART = 3  # cells between two labels of the axis
_BAR, _LEAST_BAR, _VALUE, _WORD = 20, 4, 7, 17
_ROOMY = 55  # cells beside the names from which a state is told in words
_PAINTS = {"x": "alarm", "!": "alarm", "v": "~", "0": "~", "·": "totals", "-": "totals"}


def name_width(names: Iterable[str], width: int) -> int:
    """Say how wide the column of names is: as wide as they are, at most a third of the line."""
    longest = max((display_width(for_terminal(name)) for name in names), default=0)
    return max(_LEAST_NAME, min(longest, max(width // 3, 12)))


def room_for(names: Iterable[str], width: int) -> int:
    """Say how many columns fit beside the names."""
    return max(_LEAST_COLUMNS, width - name_width(names, width) - 2)


def heat_map(picture: FlowPicture, *, width: int = 100, paint: Paint | None = None) -> str:
    """Draw the picture: a row a layer, a sign a column, step numbers above, a legend below."""
    if not picture.columns:
        return EMPTY + "\n"
    names = name_width(picture.layers, width)
    labels, rule = _axis(picture.first_steps)
    lines = [
        _title(picture, width),
        f"{'layer':>{names}}  {labels}".rstrip(),
        "─" * (names + 2) + rule,
        *(
            f"{name}  {_painted(marks(picture, row), paint)}"
            for row, name in enumerate(_names(picture.layers, names))
        ),
        "",
        *_legend(picture, width),
    ]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _names(layers: Sequence[str], width: int) -> list[str]:
    shown = list(map(for_terminal, layers))
    return [flush(name, width, right=True) for name in fitted_names(shown, width)]


def _title(picture: FlowPicture, width: int) -> str:
    """Say what is drawn; which way it runs where there is room, for the axes show it too."""
    of = f" of {for_terminal(picture.title)}" if picture.title else ""
    what = FIELD_WORDS.get(picture.field, picture.field)
    said = f"gradient flow{of}: {what}"
    whole = f"{said}; steps run right, layers run down"
    return whole if display_width(whole) <= width else cut(said, width)


def _axis(steps: Sequence[int]) -> tuple[str, str]:
    """Write step numbers where there is room for them, and a tick under the first digit of each."""
    labels, rule = "", list("─" * len(steps))
    for column, step in enumerate(steps):
        text = str(step)
        free = column == 0 or column >= len(labels) + _APART
        if free and (column == 0 or column + len(text) <= len(steps)):
            labels += " " * (column - len(labels)) + text
            rule[column] = "┬"
    return labels, "".join(rule)


def _painted(signs: str, paint: Paint | None) -> str:
    if paint is None:
        return signs
    runs = ((what, "".join(run)) for what, run in groupby(signs, _PAINTS.get))
    return "".join(paint(text, what) if what else text for what, text in runs)


def _legend(picture: FlowPicture, width: int) -> list[str]:
    shades = f"shades [{SHADES}] {scale_words(picture)} (logarithmic)"
    limits = {"vanishing": picture.vanishing_threshold, "exploding": picture.exploding_threshold}
    said = []
    for state in ("none", "frozen", "zero", "vanishing", "exploding", "non_finite"):
        limit = limits.get(state)
        sign = {"vanishing": "mean |g| <", "exploding": "max |g| >"}.get(state, "")
        peers = ", or far below its peers" if state == "vanishing" else ""
        beyond = f" ({sign} {limit:g}{peers})" if limit is not None else ""
        said.append(f"{MARKS[state]} {WORDS[state]}{beyond}")
    lines = [shades, *_packed(said, max(width, 30))]
    widest = max(picture.spans)
    if widest > 1:
        lines.append(
            f"a column is up to {widest:,} frames: its farthest value from the layer's "
            "median, flagged where any is"
        )
    hidden = picture.all_layers - len(picture.layers)
    if hidden > 0:
        lines.append(
            f"{hidden:,} of {picture.all_layers:,} layers are left out: "
            "the most alarming are here, of the others some evenly spaced"
        )
    return [part for line in lines for part in wrap(line, max(width, 30), drop_whitespace=False)]


def _packed(parts: Sequence[str], width: int) -> list[str]:
    """Put parts side by side, as many to a line as fit; none is torn."""
    lines = [""]
    for part in parts:
        longer = f"{lines[-1]};  {part}" if lines[-1] else part
        if len(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(part)
    return lines


def moving(picture: FlowPicture, width: int = 100, *, paint: Paint | None = None) -> Iterator[str]:
    """Draw one text a column, all with the same number of lines: a bar a layer, and its past."""
    if not picture.columns:
        yield EMPTY + "\n"
        return
    names = name_width(picture.layers, width)
    word = _WORD if width - names >= _ROOMY else 1
    bar = max(_LEAST_BAR, min(_BAR, width - names - _VALUE - word - 4))
    past = max(0, width - names - bar - _VALUE - word - 6)
    shown_names = _names(picture.layers, names)
    rows = [marks(picture, row) for row in range(len(picture.layers))]
    for column in range(picture.columns):
        lines = [_title(picture, width), cut(_progress(picture, column, width), width)]
        for row, name in enumerate(shown_names):
            trail = rows[row][max(0, column + 1 - past) : column + 1] if past else ""
            shown = f"{_now(picture, row, column, bar, word)}  {_painted(trail, paint)}"
            lines.append(f"{name}  {shown}".rstrip())
        lines += ["", *_legend(picture, width)]
        yield "\n".join(lines) + "\n"


def _progress(picture: FlowPicture, column: int, width: int) -> str:
    first, last = picture.first_steps[column], picture.steps[column]
    told = f"step {last}" if first == last else f"steps {first} to {last}"
    told = f"{told}, {column + 1} of {picture.columns}"
    room = max(10, min(40, width - len(told) - 4))
    done = (column + 1) * room // picture.columns
    return f"[{'=' * done}{' ' * (room - done)}] {told}"


def _now(picture: FlowPicture, row: int, column: int, bar: int, word: int) -> str:
    place = row * picture.columns + column
    level, state = picture.levels[place], FLOW_STATES[picture.states[place]]
    code = int.from_bytes(picture.codes[2 * place : 2 * place + 2], "little")
    value = picture.value(code)
    drawn = "█" * ((level * bar + LEVELS // 2) // LEVELS) or ("▏" if value else "")
    number = "" if value is None else rounded(value)
    said = f"{MARKS.get(state, '')} {WORDS[state]}".strip()
    return f"{drawn:<{bar}} {number:>{_VALUE}} {said[:word]:<{word}}"


SHADES = " ░▒▓█"


def shade(level: int) -> str:
    """Return one of five shades; halves go to the darker one.

    >>> shade(0), shade(30), shade(29), shade(240)
    (' ', '░', ' ', '█')
    """
    return SHADES[(2 * level * (len(SHADES) - 1) + LEVELS) // (2 * LEVELS)]


def mark(state: int, level: int) -> str:
    """Return the sign of a cell: that of its state, or the shade of a healthy one."""
    return MARKS.get(FLOW_STATES[state]) or shade(level)


def marks(picture: FlowPicture, row: int) -> str:
    """Return the signs of one layer, a sign a column."""
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
