"""What differs, one text a tensor or a family of tensors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..escape import for_terminal
from ..records import Report, Row, View
from .folding import Text, folded, plain
from .lines import Line, lines
from .rows import is_renamed, is_told

_MOST_LINES = 40
_MOST_RENAMES = 3


class Told(NamedTuple):
    """Texts of what differs, and of what could not be compared."""

    differing: list[Text]
    uncompared: list[Text]


def told(report: Report, view: View) -> Told:
    """Write what differs; above 40 lines those that are alike up to a number are one."""
    every = list(_lines(report, view))
    return Told(
        _written((line for line in every if line.sign != "?"), view),
        _written((line for line in every if line.sign == "?"), view),
    )


def _lines(report: Report, view: View) -> Iterator[Line]:
    rows = [row for row in report.tensors if is_told(row)]
    rules = Counter(row.how for row in rows if is_renamed(row) and row.how.startswith("prefix"))
    many = {how for how, number in rules.items() if number > _MOST_RENAMES and not view.verbose}
    said: set[str] = set()
    for row in rows:
        if row.how in many and row.how not in said and is_renamed(row):
            said.add(row.how)
            yield _rule(row, rules[row.how])
        yield from lines(row, stats=view.stats, renames=row.how not in many)


def _rule(row: Row, number: int) -> Line:
    names = tuple(side.name for side in (row.left, row.right) if side)
    return Line(">", names, f"and {number - 1} more ({for_terminal(row.how)})")


def _written(found: Iterable[Line], view: View) -> list[Text]:
    found = list(found)
    folds = len(found) > _MOST_LINES and not view.verbose and not view.stats
    return folded(found) if folds else list(map(plain, found))
