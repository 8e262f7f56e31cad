"""Drawings as coordinates, with axes that can be read: the one home of curves.

A drawing is laid out here and written as SVG by `templates/drawing.html.jinja`. Nothing is escaped
here, and what is not finite is not drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil, floor, isfinite, log10
from typing import Literal, NamedTuple

WIDTH, HEIGHT = 460, 220
_TOP, _BOTTOM, _RIGHT = 24, 40, 14  # room for labels around the frame
_LETTER = 6.3  # width of a letter of a label
_MOST_POINTS = 400
_DECADES = 1.3  # a range of positive numbers above 10 ** this is drawn on a logarithmic axis

Anchor = Literal["start", "middle", "end"]
Point = tuple[float, float]


class Dot(NamedTuple):
    """A point of a drawing, in its coordinates, with its text."""

    x: float
    y: float
    said: str
    strong: bool = False
    low: float | None = None  # the ends of its interval, as heights
    high: float | None = None
    kind: str = ""


class Label(NamedTuple):
    """A text in a drawing."""

    x: float
    y: float
    text: str
    anchor: Anchor = "start"


class Stroke(NamedTuple):
    """A straight line of a drawing."""

    x1: float
    y1: float
    x2: float
    y2: float
    kind: Literal["axis", "grid", "edge", "curve", "bar", "lead"] = "axis"
    said: str = ""


class Path(NamedTuple):
    """An SVG path: a curve, or cells of one colour."""

    d: str
    kind: str = "curve"
    said: str = ""


class Key(NamedTuple):
    """What a colour or a kind of line stands for."""

    kind: str
    text: str


class Drawing(NamedTuple):
    """A picture for the page, as coordinates; `caption` says what it shows."""

    title: str
    caption: str
    width: int = WIDTH
    height: int = HEIGHT
    paths: tuple[Path, ...] = ()
    dots: tuple[Dot, ...] = ()
    labels: tuple[Label, ...] = ()
    strokes: tuple[Stroke, ...] = ()
    keys: tuple[Key, ...] = ()


class Series(NamedTuple):
    """Numbers to draw as one curve."""

    xs: Sequence[float]
    ys: Sequence[float]
    name: str = ""
    kind: str = "curve"


class Axis(NamedTuple):
    """The numbers from low to high, laid along a line from start to stop."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False
    word: str = ""

    def place(self, value: float) -> float:
        """Return the coordinate of a number; all are in the middle of an axis of one number."""
        # Halved, so that the width of what spans all of float64 is still a number.
        low, high, at = (
            log10(each) if self.log else each / 2 for each in (self.low, self.high, value)
        )
        if not high > low:
            return (self.start + self.stop) / 2
        return self.start + (self.stop - self.start) * min(max((at - low) / (high - low), 0), 1)

    def ticks(self) -> list[tuple[float, str]]:
        """Return up to six round numbers on the axis, with their texts."""
        if not self.high > self.low:
            return [(self.low, _tick(self.low))]
        if self.log:
            first, last = ceil(log10(self.low) - 1e-9), floor(log10(self.high) + 1e-9)
            if last > first:
                every = max(1, ceil((last - first) / 5))
                return [(10.0**power, _power(power)) for power in range(first, last + 1, every)]
            powers = range(first - 1, last + 1)
            steps = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
            known = [value for value in steps if self.low <= value <= self.high]
            return [(value, _tick(value)) for value in known if len(known) > 1] or self._ends()
        width = self.high - self.low
        if not isfinite(width):
            return self._ends()
        rough = width / 4
        unit = 10.0 ** floor(log10(rough))
        step = unit * next((each for each in (1, 2, 5) if each * unit >= rough * 0.99), 10)
        if not step or self.low + step == self.low:
            return self._ends()
        first, last = ceil(self.low / step - 1e-6), floor(self.high / step + 1e-6)
        return [(n * step, _tick(n * step)) for n in range(first, last + 1)]

    def _ends(self) -> list[tuple[float, str]]:
        return [(self.low, _tick(self.low)), (self.high, _tick(self.high))]


def _power(power: int) -> str:
    return f"1e{power}" if power not in (0, 1, 2) else str(10**power)


def _tick(value: float) -> str:
    return f"{0.0 + value:.4g}"


def spread(values: Iterable[float], *, log: bool | None = None) -> tuple[float, float, bool]:
    """Return the ends of the numbers and whether they belong on a logarithmic axis.

    `log` None decides by the numbers: positive, and more than a decade apart.
    """
    known = [float(value) for value in values if isfinite(value)]
    positive = [value for value in known if value > 0]
    if log or (log is None and len(positive) == len(known) and _is_wide(positive)):
        return (min(positive), max(positive), True) if positive else (1.0, 1.0, True)
    return (min(known), max(known), False) if known else (0.0, 0.0, False)


def _is_wide(positive: Sequence[float]) -> bool:
    return bool(positive) and log10(max(positive)) - log10(min(positive)) > _DECADES


class Frame(NamedTuple):
    """Two axes, and the strokes and labels that show them."""

    x: Axis
    y: Axis
    strokes: tuple[Stroke, ...]
    labels: tuple[Label, ...]

    def points(self, xs: Sequence[float], ys: Sequence[float]) -> list[Point]:
        """Place what both axes can hold."""
        return [
            (self.x.place(x), self.y.place(y))
            for x, y in zip(xs, ys, strict=True)
            if isfinite(x)
            and isfinite(y)
            and not (self.x.log and x <= 0)
            and not (self.y.log and y <= 0)
        ]


def frame(x: Axis, y: Axis, width: int = WIDTH, height: int = HEIGHT) -> Frame:
    """Lay out a frame: axes with ticks, lines across, the word of each axis."""
    y = y._replace(start=height - _BOTTOM, stop=_TOP)
    ticks = y.ticks()
    left = 8 + _LETTER * max(len(text) for _, text in ticks)
    x = x._replace(start=left, stop=width - _RIGHT)
    strokes = [Stroke(left, y.start, x.stop, y.start), Stroke(left, y.stop, left, y.start)]
    labels = []
    for value, text in ticks:
        at = y.place(value)
        strokes.append(Stroke(left, at, x.stop, at, "grid"))
        labels.append(Label(left - 5, at + 4, text, "end"))
    last = -1e9
    for value, text in x.ticks():
        at, half = x.place(value), _LETTER * len(text) / 2
        if at - half > last:
            strokes.append(Stroke(at, y.start, at, y.start + 4))
            labels.append(Label(min(at, width - half - 2), y.start + 16, text, "middle"))
            last = at + half + 8
    if x.word:
        labels.append(Label((left + x.stop) / 2, y.start + 32, x.word, "middle"))
    if y.word:
        labels.append(Label(4, 14, y.word))
    return Frame(x, y, tuple(strokes), tuple(labels))


def curve(points: Sequence[Point]) -> str:
    """Write points as one SVG path; nothing where there are not two."""
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points) if len(points) > 1 else ""


def chart(
    title: str,
    caption: str,
    series: Sequence[Series],
    *,
    words: tuple[str, str] = ("", ""),
    log: bool | None = None,
    ends: tuple[float, float] | None = None,
    marks: Sequence[tuple[float, str]] = (),
    levels: Sequence[tuple[float, str]] = (),
    size: tuple[int, int] = (WIDTH, HEIGHT),
) -> Drawing | None:
    """Draw curves over one pair of axes; None if there is nothing finite to draw.

    `marks` are upright lines, `levels` level ones, each with its text; `ends` fix the height.
    """
    width, height = size
    xs = [x for each in series for x in each.xs if isfinite(x)]
    ys = [y for each in series for y in each.ys if isfinite(y)]
    if not xs or not ys:
        return None
    low, high, is_log = (
        (*ends, False) if ends else spread([*ys, *(value for value, _ in levels)], log=log)
    )
    across = spread(xs, log=False)
    made = frame(
        Axis(across[0], across[1], 0, 0, word=words[0]),
        Axis(low, high, 0, 0, is_log, words[1]),
        width,
        height,
    )
    paths, dots = [], []
    for each in series:
        points = made.points(*_thinned(each.xs, each.ys))
        if len(points) > 1:
            paths.append(Path(curve(points), each.kind, each.name))
        elif points:
            dots.append(Dot(*points[0], each.name, strong=True))
    edges = [
        Stroke(at, made.y.stop, at, made.y.start, "edge", said)
        for at, said in ((made.x.place(value), said) for value, said in marks)
    ]
    edges += [
        Stroke(made.x.start, at, made.x.stop, at, "edge", said)
        for at, said in ((made.y.place(value), said) for value, said in levels)
    ]
    keys = tuple(Key(each.kind, each.name) for each in series if each.name)
    keys += tuple(Key("edge", said) for _, said in (*marks, *levels) if said)
    return Drawing(
        title,
        caption,
        width,
        height,
        tuple(paths),
        tuple(dots),
        made.labels,
        (*made.strokes, *edges),
        keys,
    )


def _thinned(xs: Sequence[float], ys: Sequence[float]) -> tuple[list[float], list[float]]:
    """Keep the lowest and the highest of each stretch, so that a long curve keeps its peaks."""
    known = [(x, y) for x, y in zip(xs, ys, strict=True) if isfinite(x) and isfinite(y)]
    if len(known) <= _MOST_POINTS:
        return [x for x, _ in known], [y for _, y in known]
    every = ceil(2 * len(known) / _MOST_POINTS)
    kept = []
    for start in range(0, len(known), every):
        part = known[start : start + every]
        low, high = (pick(part, key=lambda point: point[1]) for pick in (min, max))
        kept += sorted({low, high})
    return [float(x) for x, _ in kept], [float(y) for _, y in kept]
