"""The charts of `--include-charts`: every tensor as a dot, by size, spread and direction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import floor, isfinite, log10

from difflens.core.escape import for_terminal
from difflens.core.records import Report, Row

from ..document.drawing import Axis, Dot, Drawing, Key, Path, Stroke, frame, spread
from ..document.numbers import plural, scientific, short
from .heat import broken_words
from .order import by_magnitude

_MOST_DOTS = 600  # per chart: the page stays below 1.5 MB whatever the model
_SIZE = (560, 320)
_PER_DECADE = 4

Measure = Callable[[Row], float | None]


def charts(report: Report) -> list[Drawing]:
    """Draw what the tables cannot show at a glance; nothing where nothing was measured."""
    rows = [row for row in by_magnitude(report.tensors) if row.figures and row.left and row.right]
    moved = [row for row in rows if _relative(row)]
    drawn = [
        _dots(
            "Size and change",
            "small tensors that moved far stand in the upper left",
            moved,
            ("parameters", _count),
            ("relative L2", _relative),
        ),
        _histogram(moved),
        _dots(
            "Spread before and after",
            "on the line: as wide as before; above it: wider",
            rows,
            (
                "standard deviation, left",
                lambda row: row.left_stats.std if row.left_stats else None,
            ),
            (
                "standard deviation, right",
                lambda row: row.right_stats.std if row.right_stats else None,
            ),
            diagonal=True,
        ),
        _dots(
            "Length and direction",
            "low: scaled, but pointing the same way; high: turned",
            moved,
            ("relative L2", _relative),
            ("1 - cosine", _turn),
        ),
    ]
    return [each for each in drawn if each]


def _count(row: Row) -> float | None:
    return float(row.right.count) if row.right else None


def _relative(row: Row) -> float | None:
    return row.figures.relative_l2 if row.figures else None


def _turn(row: Row) -> float | None:
    cosine = row.figures.cosine if row.figures else None
    return None if cosine is None else 1 - cosine


def _dots(
    title: str,
    caption: str,
    rows: Sequence[Row],
    across: tuple[str, Measure],
    up: tuple[str, Measure],
    *,
    diagonal: bool = False,
) -> Drawing | None:
    """Draw a dot per tensor on two logarithmic axes."""
    placed = [
        (row, x, y)
        for row in rows
        if (x := _positive(across[1](row))) and (y := _positive(up[1](row)))
    ]
    if len(placed) < 2:
        return None
    shown = placed[:_MOST_DOTS]
    xs, ys = [x for _, x, _ in shown], [y for _, _, y in shown]
    both = [*xs, *ys]
    x_axis, y_axis = (
        Axis(*spread(both if diagonal else each, log=True)[:2], 0, 0, log=True, word=word)
        for each, word in ((xs, across[0]), (ys, up[0]))
    )
    made = frame(x_axis, y_axis, *_SIZE)
    dots = [
        Dot(
            made.x.place(x),
            made.y.place(y),
            f"{for_terminal(row.name)}: {across[0]} {short(x)}, {up[0]} {short(y)}",
            kind="broken" if broken_words(row) else "small",
        )
        for row, x, y in shown
    ]
    more = len(placed) - len(shown)
    said = f"{caption}; the {len(shown)} that moved most of {len(placed):,}" if more else caption
    strokes = made.strokes
    if diagonal:
        strokes += (Stroke(made.x.start, made.y.start, made.x.stop, made.y.stop, "lead"),)
    is_broken = any(dot.kind == "broken" for dot in dots)
    keys = (
        (Key("cell non_finite broken", "broken: NaN, infinite or all zero"),) if is_broken else ()
    )
    return Drawing(
        title, said, *_SIZE, dots=tuple(dots), labels=made.labels, strokes=strokes, keys=keys
    )


def _positive(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) and value > 0 else None


def _histogram(rows: Sequence[Row]) -> Drawing | None:
    """Count the tensors per quarter of a decade of relative change."""
    known = [value for value in map(_relative, rows) if value and isfinite(value)]
    if len(known) < 2:
        return None
    counts: dict[int, int] = {}
    for value in known:
        step = floor(_PER_DECADE * log10(value))
        counts[step] = counts.get(step, 0) + 1
    low, high = (10 ** (step / _PER_DECADE) for step in (min(counts), max(counts) + 1))
    made = frame(
        Axis(low, high, 0, 0, True, "relative L2"),
        Axis(0, max(counts.values()), 0, 0, word="tensors"),
        *_SIZE,
    )
    bars = []
    for step, number in sorted(counts.items()):
        ends = [10 ** (each / _PER_DECADE) for each in (step, step + 1)]
        left, right = (made.x.place(end) for end in ends)
        top = made.y.place(number)
        said = f"{plural(number, 'tensor')} from {scientific(ends[0])} to {scientific(ends[1])}"
        box = f"M{left + 1:.1f} {made.y.start:.1f}V{top:.1f}H{right - 1:.1f}V{made.y.start:.1f}z"
        bars.append(Path(box, "cell bars", said))
    return Drawing(
        "How many tensors moved how far",
        f"{plural(len(known), 'tensor')} that moved",
        *_SIZE,
        paths=tuple(bars),
        labels=made.labels,
        strokes=made.strokes,
    )
