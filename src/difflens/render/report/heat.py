"""The layers of a model against the tensors each holds, by how far each moved.

Blocks are told by name alone, as in `folding`: the first component that is a number. Levels
are decades, the same in every report, so that two maps can be laid side by side.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from math import isfinite
from typing import NamedTuple

from difflens.core.escape import for_terminal
from difflens.core.records import Report, Row

from ..document.numbers import count, scientific
from .rows import became_zero, figures, nonfinite_appeared

LIMITS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
BROKEN = "bad"  # the level of a tensor that became NaN, infinite or all zeros
_MOST_BLOCKS = 160
_MOST_PARTS = 24
_BLOCK = re.compile(r"^((?:[^./]*[./])*?)([0-9]{1,9})[./](.+)$", re.DOTALL)
_INTEGER = re.compile(r"(?<=[./])[0-9]{1,9}(?=[./]|$)")
_SAME = frozenset({"identical", "tied"})
_MEASURED = frozenset({"changed", "recast", "within_epsilon"})
_WORDS = {"reshaped": "shape", "uncompared": "?", "paired": "?"}


class Square(NamedTuple):
    """One part of one block: its largest relative change, in figures, words and a level."""

    value: float | None
    text: str
    level: str
    told: str


class Heat(NamedTuple):
    """Blocks by parts; `left_out` says what did not fit."""

    blocks: list[str]
    parts: list[str]
    squares: list[list[Square | None]]
    left_out: str


def heat(report: Report) -> Heat | None:
    """Lay the tensors out; None if there are not two blocks of one stack, or nothing moved."""
    found: dict[tuple[str, int], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in report.tensors:
        placed = _BLOCK.match(row.name)
        if placed:
            stack, index, rest = placed.groups()
            found[stack, int(index)][_INTEGER.sub("*", rest)].append(row)
    places = sorted(found)
    stacks = Counter(stack for stack, _ in places)
    places = [place for place in places if stacks[place[0]] > 1]
    parts = list(dict.fromkeys(part for place in places for part in found[place]))
    squares = [
        [_square(found[place][part]) if part in found[place] else None for part in parts]
        for place in places
    ]
    if not any(
        square and (square.value or square.level == BROKEN) for line in squares for square in line
    ):
        return None
    names = [for_terminal(f"{stack}{index}") for stack, index in places]
    return _cut(names, [for_terminal(part) for part in parts], squares)


def _cut(blocks: list[str], parts: list[str], squares: list[list[Square | None]]) -> Heat:
    kept = [line[:_MOST_PARTS] for line in squares[:_MOST_BLOCKS]]
    over = []
    if len(blocks) > _MOST_BLOCKS:
        over.append(f"{len(blocks) - _MOST_BLOCKS:,} blocks")
    if len(parts) > _MOST_PARTS:
        over.append(f"{len(parts) - _MOST_PARTS:,} parts of blocks")
    said = f"{' and '.join(over)} more do not fit; the table has them." if over else ""
    return Heat(blocks[:_MOST_BLOCKS], parts[:_MOST_PARTS], kept, said)


def _square(rows: list[Row]) -> Square:
    """Show the worst tensor; several share a place where experts are numbered too."""
    row = max(rows, key=_badness)
    value, broken = _value(row), broken_words(row)
    told = f"{for_terminal(row.name)}: {_word(row, value)}"
    if len(rows) > 1:
        told += f", the {'worst' if broken else 'largest'} of {len(rows)}"
    if broken:
        return Square(value, broken, BROKEN, told)
    if value is None:
        return Square(None, _WORDS.get(row.kind, row.kind), "x", told)
    text = "0" if value == 0 else scientific(value)
    return Square(value, text, level(value), told)


def _badness(row: Row) -> tuple[bool, float]:
    value = _value(row)
    return bool(broken_words(row)), -1.0 if value is None else value


def broken_words(row: Row) -> str:
    """Name what makes a tensor useless now; nothing where it was so before."""
    grown = nonfinite_appeared(row)
    if grown:
        return f"NaN/Inf {count(grown[1])}"
    return "all zero" if became_zero(row) else ""


def _value(row: Row) -> float | None:
    if row.kind in _SAME:
        return 0.0
    value: float | None = figures(row)["relative_l2"] if row.kind in _MEASURED else None
    return value if value is not None and isfinite(value) else None


def _word(row: Row, value: float | None) -> str:
    grown = nonfinite_appeared(row)
    if grown:
        return f"{grown[1]:,} NaN or infinite, {grown[0]:,} before"
    if became_zero(row):
        return "all values are zero now"
    if value is None:
        return row.kind.replace("_", " ")
    return f"relative L2 {scientific(value)}" if row.kind in _MEASURED else row.kind


def level(value: float) -> str:
    """Name the decade a relative change lies in: 0 for none, 6 for a tenth and more.

    >>> level(0.0), level(1e-7), level(0.03), level(2.0)
    ('0', '1', '5', '6')
    """
    return str(1 + sum(value >= limit for limit in LIMITS)) if value else "0"
