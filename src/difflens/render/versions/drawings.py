"""The pictures of versions as coordinates: courses of metrics, trade-offs, mean ranks."""

from __future__ import annotations

from collections.abc import Sequence

from difflens.versions.records.comparisons import ParetoPoint, RankTest
from difflens.versions.records.regressions import MetricHistory

from ..document.drawing import Axis, Dot, Drawing, Label, Path, Stroke, curve
from ..document.values import ends, interval, moved, probability, value

WIDTH, HEIGHT = 360, 180
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 350, 12, 150
_INSET = 8  # what keeps the outermost points off the axes
MOST_DRAWINGS = 24
_MOST_LABELS = 12
_MOST_RANKED = 20


def course(history: MetricHistory) -> Drawing:
    """Draw a metric over versions: values, their intervals, and where the level changed."""
    points = history.points
    limits = _limits(history)
    marks = [
        mark for each in points for mark in (each.value, each.low, each.high) if mark is not None
    ] + limits
    low, high = min(marks), max(marks)
    places = [_place(i, 0, len(points) - 1) for i in range(len(points))]
    dots = tuple(
        Dot(
            x,
            _height(each.value, low, high),
            f"{each.version}: {value(each.value)} {ends(each.low, each.high)}".rstrip(),
            each.version in history.alarms,
            _end(each.low, low, high),
            _end(each.high, low, high),
        )
        for x, each in zip(places, points, strict=True)
    )
    at = {each.version: x for x, each in zip(places, points, strict=True)}
    edges = tuple(
        Stroke(
            at[each.version],
            _TOP,
            at[each.version],
            _BOTTOM,
            "edge",
            f"from {each.version} on: {moved(each.before, each.after)}, p {probability(each.p)}",
        )
        for each in history.change_points
        if each.version in at
    )
    path = curve([(dot.x, dot.y) for dot in dots])
    better = f" ({history.direction} is better)" if history.direction else ""
    said = f"{len(points)} versions, {moved(points[0].value, points[-1].value)}{better}"
    bounds = tuple(
        Stroke(
            _LEFT,
            _height(mark, low, high),
            _RIGHT,
            _height(mark, low, high),
            "lead",
            f"limit {value(mark)}",
        )
        for mark in limits
    )
    changes = "; ".join(edge.said for edge in edges)
    return Drawing(
        f"{history.model}: {history.metric}",
        "; ".join(filter(None, (said, changes, _drift(history), history.note))),
        WIDTH,
        HEIGHT,
        (Path(path),) if path else (),
        dots,
        (*_scale(low, high), *_ends_of([each.version for each in points])),
        (*_frame(), *bounds, *edges),
    )


def _limits(history: MetricHistory) -> list[float]:
    """List where the next value should lie, where that is known."""
    ends = (history.limits.low, history.limits.high) if history.limits else ()
    return [mark for mark in ends if mark is not None]


def _drift(history: MetricHistory) -> str:
    parts = []
    if history.limits:
        parts.append(f"thin lines: {interval(history.limits)} of the next version")
    if history.alarms:
        parts.append(f"filled: drift alarm at {', '.join(history.alarms)}")
    return "; ".join(parts)


def pareto_drawings(points: Sequence[ParetoPoint], objectives: Sequence[str]) -> list[Drawing]:
    """Draw the first objective against each other one; those on the front stand out."""
    if len(objectives) < 2:
        return []
    return [
        drawn
        for other in objectives[1:]
        for drawn in [_pareto(points, other, objectives[0])]
        if drawn
    ]


def _pareto(points: Sequence[ParetoPoint], across: str, up: str) -> Drawing | None:
    known = [each for each in points if across in each.values and up in each.values]
    if len(known) < 2:
        return None
    xs, ys = [each.values[across] for each in known], [each.values[up] for each in known]
    dots = tuple(
        Dot(
            _place(x, min(xs), max(xs)),
            _height(y, min(ys), max(ys)),
            f"{each.model}: {across} {value(x)}, {up} {value(y)}",
            each.on_front,
        )
        for each, x, y in zip(known, xs, ys, strict=True)
    )
    labels = [
        Label(
            dot.x + (7 if dot.x < _middle() else -7),
            dot.y + 4,
            each.model,
            "start" if dot.x < _middle() else "end",
        )
        for dot, each in zip(dots, known, strict=True)
    ]
    front = sum(each.on_front for each in known)
    return Drawing(
        f"{up} against {across}",
        f"filled: not beaten in all objectives ({front} of {len(known)})",
        WIDTH,
        HEIGHT,
        (),
        dots,
        (
            *_scale(min(ys), max(ys)),
            *_ends_of([value(min(xs)), value(max(xs))]),
            *(labels if len(labels) <= _MOST_LABELS else ()),
        ),
        _frame(),
    )


def rank_drawing(ranks: RankTest) -> Drawing:
    """Draw mean ranks on a line, best left; a bar joins models that are not told apart."""
    ordered = sorted(ranks.mean_ranks.items(), key=lambda each: (each[1], each[0]))
    shown = ordered[:_MOST_RANKED]
    last = max(len(ordered), 2)
    at = {name: _place(rank, 1, last) for name, rank in ordered}
    strokes: list[Stroke] = [Stroke(_LEFT, 40, _RIGHT, 40)]
    labels = [
        Label(_place(1, 1, last), 30, "1", "middle"),
        Label(_place(last, 1, last), 30, str(last), "middle"),
    ]
    if ranks.critical_difference is not None:
        reach = min(_place(1 + ranks.critical_difference, 1, last), _RIGHT)
        strokes.append(Stroke(_place(1, 1, last), 14, reach, 14, "edge"))
        labels.append(Label(_LEFT - 4, 18, "CD", "end"))
    groups = [group for group in ranks.groups if len(group) > 1]
    for level, group in enumerate(groups):
        places = [at[name] for name in group if name in at]
        height = 48 + 7 * level
        strokes.append(
            Stroke(
                min(places) - 3,
                height,
                max(places) + 3,
                height,
                "bar",
                f"not told apart: {', '.join(group)}",
            )
        )
    top = 62 + 7 * len(groups)
    for place, (name, rank) in enumerate(shown):
        y = top + 16 * place
        strokes.append(Stroke(at[name], 40, at[name], y - 4, "lead"))
        right = at[name] < _middle()
        labels.append(
            Label(
                at[name] + (5 if right else -5),
                y,
                f"{name} {value(rank)}",
                "start" if right else "end",
            )
        )
    said = f"mean rank over {len(ranks.tasks)} tasks, best left; bars join what is not told apart"
    if ranks.critical_difference is not None:
        said += f"; CD {value(ranks.critical_difference)}"
    dots = tuple(Dot(at[name], 40, f"{name}: {value(rank)}", strong=True) for name, rank in ordered)
    height = top + 16 * len(shown)
    return Drawing("Mean ranks", said, WIDTH, height, (), dots, tuple(labels), tuple(strokes))


def _middle() -> float:
    return (_LEFT + _RIGHT) / 2


def _place(mark: float, first: float, last: float) -> float:
    return Axis(first, last, _LEFT + _INSET, _RIGHT - _INSET).place(mark)


def _height(mark: float, low: float, high: float) -> float:
    return Axis(low, high, _BOTTOM, _TOP).place(mark)


def _end(mark: float | None, low: float, high: float) -> float | None:
    return None if mark is None else _height(mark, low, high)


def _frame() -> tuple[Stroke, ...]:
    return (Stroke(_LEFT, _BOTTOM, _RIGHT, _BOTTOM), Stroke(_LEFT, _TOP, _LEFT, _BOTTOM))


def _scale(low: float, high: float) -> tuple[Label, ...]:
    bottom = Label(_LEFT - 5, _BOTTOM + 4, value(low), "end")
    return (bottom, Label(_LEFT - 5, _TOP + 4, value(high), "end")) if high > low else (bottom,)


def _ends_of(names: Sequence[str]) -> tuple[Label, ...]:
    first = Label(_LEFT, _BOTTOM + 18, names[0])
    return (first, Label(_RIGHT, _BOTTOM + 18, names[-1], "end")) if len(names) > 1 else (first,)
