"""The pictures of a training run on its pages: the loss over steps, the layers over steps."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from difflens.core.escape import for_terminal
from difflens.core.terminal import display_width
from difflens.training.records.flow import (
    FIELD_WORDS,
    FLOW_STATES,
    LEVELS,
    WORDS,
    FlowPicture,
    RunCurves,
)

from ..document.document import Document, Part
from ..document.drawing import Drawing, Key, Label, Path, Series, Stroke, chart
from ..document.numbers import scientific

MOST_LAYERS, MOST_COLUMNS = 30, 120  # of a picture of layers
_KINDS = ("curve", "curve second")
_WIDTH, _TOP, _ROW, _BOTTOM = 460, 8, 13, 34
_LETTER, _LONGEST_NAME = 6.6, 17  # of the names of layers
_SHADES = 6
_COLOURED = ("vanishing", "exploding", "non_finite", "zero", "none", "absent", "frozen")


class Mark(NamedTuple):
    """A step to point at, and why."""

    step: int
    text: str


def with_pictures(
    document: Document, runs: Sequence[tuple[str, RunCurves]], marks: Sequence[Mark] = ()
) -> Document:
    """Return the document with the pictures of its runs before its parts."""
    drawn = [loss_drawing(runs, marks)]
    drawn += [layer_drawing(name, run.layers) for name, run in runs if run.layers]
    shown = tuple(each for each in drawn if each)
    if not shown:
        return document
    return document._replace(parts=(Part("Over the steps", drawings=shown), *document.parts))


def loss_drawing(
    runs: Sequence[tuple[str, RunCurves]], marks: Sequence[Mark] = ()
) -> Drawing | None:
    """Draw the loss of one run with its validation loss, or the losses of several."""
    if len(runs) == 1:
        named = list(runs[0][1].losses.items())
    else:
        named = [(name, run.losses["loss"]) for name, run in runs if "loss" in run.losses]
    series = [
        Series(steps, values, name, kind)
        for (name, (steps, values)), kind in zip(named, _KINDS, strict=False)
    ]
    odd = [
        Mark(run.first_nonfinite_loss, "first loss that is NaN or infinite")
        for _, run in runs
        if run.first_nonfinite_loss is not None
    ]
    return chart(
        "Loss",
        "; ".join(f"{each.name} {each.ys[0]:.4g} -> {each.ys[-1]:.4g}" for each in series),
        series,
        words=("step", "loss"),
        marks=[*marks, *odd],
    )


def layer_drawing(name: str, picture: FlowPicture) -> Drawing:
    """Draw the gradient of each layer over the steps."""
    height = _TOP + _ROW * len(picture.layers) + _BOTTOM
    names = [_short(for_terminal(layer)) for layer in picture.layers]
    left = 8 + _LETTER * max(map(display_width, names))
    cell = (_WIDTH - left - 8) / picture.columns
    hidden = picture.all_layers - len(picture.layers)
    what = FIELD_WORDS.get(picture.field, picture.field)
    said = f"{what} of each layer, from the input down to the output"
    if hidden > 0:
        said += f"; {hidden:,} more layers are not drawn, the most alarming are"
    rows = enumerate(names)
    labels = [Label(left - 5, _TOP + row * _ROW + 10, text, "end") for row, text in rows]
    return Drawing(
        f"Layers over steps{f', {name}' if name else ''}",
        said,
        _WIDTH,
        height,
        paths=tuple(_cells(picture, left, cell)),
        labels=(*labels, *_steps(picture, left, cell)),
        strokes=(Stroke(left, height - _BOTTOM, _WIDTH - 8, height - _BOTTOM),),
        keys=tuple(_keys(picture)),
    )


def _kind(picture: FlowPicture, place: int) -> str:
    state = FLOW_STATES[picture.states[place]]
    if state in _COLOURED:
        return "none" if state in {"absent", "frozen"} else state
    return f"c{1 + min(_SHADES - 1, picture.levels[place] * _SHADES // (LEVELS + 1))}"


def _cells(picture: FlowPicture, left: float, width: float) -> list[Path]:
    """Join neighbours of one colour to a box, and all boxes of one colour to a path."""
    boxes: dict[str, list[str]] = {}
    for row in range(len(picture.layers)):
        start = row * picture.columns
        kinds = [_kind(picture, start + column) for column in range(picture.columns)]
        column = 0
        for kind, run in groupby(kinds):
            count = len(list(run))
            x, wide = left + column * width, count * width
            box = f"M{x:.1f} {_TOP + row * _ROW}h{wide:.1f}v{_ROW - 1}h-{wide:.1f}z"
            boxes.setdefault(kind, []).append(box)
            column += count
    return [Path("".join(parts), f"cell {kind}") for kind, parts in boxes.items()]


def _short(name: str) -> str:
    """Cut a name to the room beside the picture; its end tells layers apart."""
    return name if len(name) <= _LONGEST_NAME else f"…{name[1 - _LONGEST_NAME :]}"


def _steps(picture: FlowPicture, left: float, width: float) -> list[Label]:
    y = _TOP + _ROW * len(picture.layers) + 14
    last = picture.columns - 1
    places = sorted({0, last // 3, 2 * last // 3, last})
    labels = [
        Label(
            left + (place + 0.5) * width,
            y,
            str(picture.first_steps[place] if place < last else picture.steps[place]),
            "start" if place == 0 else "end" if place == last else "middle",
        )
        for place in places
    ]
    return [*labels, Label((left + _WIDTH) / 2, y + 15, "step", "middle")]


def _keys(picture: FlowPicture) -> list[Key]:
    keys = []
    if picture.low is not None and picture.high is not None:
        keys = [
            Key("cell c1", scientific(picture.low)),
            Key(f"cell c{_SHADES}", scientific(picture.high)),
        ]
    there = {FLOW_STATES[state] for state in picture.states} & {*_COLOURED}
    shown = (each for each in FLOW_STATES if each in there - {"absent", "frozen"})
    return keys + [Key(f"cell {each}", WORDS[each]) for each in shown]
