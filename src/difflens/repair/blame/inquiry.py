"""One inquiry: the repair first, down to rows, then the cause, then the proof of both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from difflens.diffs.diff import Diff

from .hybrids import Models
from .judge import Judge
from .pieces import Piece, Selection, select_others, select_tensors
from .rows import damaged_rows
from .search import Members, Search
from .units import Unit

FEW = 4  # units that may be named together although none of them does any harm alone
_MOST = 8  # faults that are looked for before the damage is called diffuse


class Alone(NamedTuple):
    """Does a unit mend the bad model alone, and break the good one alone?"""

    repairs: bool | None
    breaks: bool | None


class Inquiry:
    """Asks the judge about sets of units."""

    def __init__(self, judge: Judge, models: Models, diff: Diff, units: Sequence[Unit]) -> None:
        """Ask nothing yet."""
        self._judge, self._models, self._diff = judge, models, diff
        self.units = list(units)
        self._names = tuple(models.changes)

    # Repairs.

    def repair(self) -> list[Unit] | None:
        """Find a smallest set of units whose return mends the bad model; None where many must."""
        units = self.units
        search = self._search(lambda sets: self._first_repair(units, sets))
        found = search.smallest(
            go_on=lambda chosen, length: self._is_real(units[chosen[-1]], chosen, length)
        )
        if found is None:
            return None
        return self._taken_apart([units[each] for each in search.pruned(found)])

    def _first_repair(self, units: Sequence[Unit], sets: Sequence[Members]) -> int | None:
        selections = (self._back(units, members) for members in sets)
        return self._judge.first(selections, passing=True)

    def _is_real(self, unit: Unit, chosen: Members, length: int) -> bool:
        """Is one that tipped the scales a fault, and not the last straw of a spread damage?"""
        if len(chosen) > _MOST:
            return False
        return length <= FEW or self._alone_breaks(unit) is True

    def _taken_apart(self, units: list[Unit]) -> list[Unit]:
        """Put single tensors in place of a unit, where these suffice."""
        result: list[Unit] = []
        for at, unit in enumerate(units):
            if len(unit.names) == 1 or unit.is_one:
                result.append(unit)
                continue
            parts = sorted(
                (Unit((name,), unit.score, unit.words) for name in unit.names),
                key=lambda part: self._order(part.names[0]),
            )
            rest = [*result, *units[at + 1 :]]

            def first(
                sets: Sequence[Members], parts: list[Unit] = parts, rest: list[Unit] = rest
            ) -> int | None:
                chosen = ([parts[each] for each in members] for members in sets)
                selections = (self._joined(rest, some) for some in chosen)
                return self._judge.first(selections, passing=True)

            search = Search(first, len(parts), len(parts), self._expect)
            found = search.smallest() or tuple(range(len(parts)))
            result += [parts[each] for each in search.pruned(found)]
        return result

    def _order(self, name: str) -> float:
        """Sort the largest tensors of a unit first: a matrix before its bias."""
        return -self._models.changes[name].size_bytes

    # Rows.

    def narrowed(self, units: Sequence[Unit]) -> Selection:
        """Put rows or columns in place of whole tensors, where these alone mend the model."""
        complete = self._pieces(units)
        rows: dict[str, Piece] = {}
        for unit in units:
            if not unit.is_one:
                for name in unit.names:
                    piece = damaged_rows(self._diff, self._models.changes[name])
                    if piece is not None:
                        rows[name] = piece
        if not rows:
            return complete
        sliced = frozenset(rows.get(piece.name, piece) for piece in complete)
        if self._judge.verdict(sliced) is True:
            return sliced
        if len(rows) > 1:
            for name, row in rows.items():
                less = frozenset(row if piece.name == name else piece for piece in complete)
                if self._judge.verdict(less) is True:
                    complete = less
        return complete

    # Causes.

    def breaks(self, pieces: Selection, *, fresh: bool = False) -> bool | None:
        """Does the good model fail with these pieces of the bad one?"""
        verdict = self._judge.verdict(self._but(pieces), fresh=fresh)
        return None if verdict is None else not verdict

    def mends(self, pieces: Selection, *, fresh: bool = False) -> bool | None:
        """Does the bad model pass with these pieces of the good one?"""
        return self._judge.verdict(pieces, fresh=fresh)

    def cause(self, repair: Sequence[Unit]) -> list[Unit] | None:
        """Find a smallest set of units that breaks the good model; None where many must.

        What is needed for the repair comes first: a cause without any of it would break the
        repaired model too.
        """
        used = {name for unit in repair for name in unit.names}
        units = [*repair, *(unit for unit in self.units if used.isdisjoint(unit.names))]
        known = len(repair)

        def first(sets: Sequence[Members]) -> int | None:
            selections = (self._but(self._back(units, members)) for members in sets)
            return self._judge.first(selections, passing=False)

        search = self._search(first, units)
        fixed = (0,) if known == 1 else ()
        found = search.smallest(
            fixed,
            known + 1,
            lambda chosen, length: self._is_part(units[chosen[-1]], chosen, length),
        )
        return None if found is None else [units[each] for each in search.pruned(found)]

    def _is_part(self, unit: Unit, chosen: Members, length: int) -> bool:
        """Is one that tipped the scales needed, and not the last straw?"""
        if len(chosen) > FEW:
            return False
        return length <= FEW or self.mends(select_tensors(unit.names)) is True

    def alone(self, units: Sequence[Unit]) -> list[Alone]:
        """Ask of each unit whether it mends the one model and breaks the other, all by itself."""
        sets = [select_tensors(unit.names) for unit in units]
        answers = self._judge.every([*sets, *map(self._but, sets)])
        pairs = zip(answers[: len(sets)], answers[len(sets) :], strict=True)
        return [Alone(mends, None if passes is None else not passes) for mends, passes in pairs]

    def _alone_breaks(self, unit: Unit) -> bool | None:
        return self.breaks(select_tensors(unit.names))

    # Sets.

    def _search(
        self, first: Callable[[Sequence[Members]], int | None], units: Sequence[Unit] | None = None
    ) -> Search:
        chosen = self.units if units is None else units
        outstanding = sum(unit.stands_out for unit in chosen)
        return Search(first, len(chosen), outstanding, self._expect)

    def _expect(self, questions: int) -> None:
        self._judge.left = questions + 2

    def _back(self, units: Sequence[Unit], members: Members) -> Selection:
        return select_tensors(name for each in members for name in units[each].names)

    def _pieces(self, units: Sequence[Unit]) -> Selection:
        return select_tensors(name for unit in units for name in unit.names)

    def _joined(self, *groups: Sequence[Unit]) -> Selection:
        return self._pieces([unit for group in groups for unit in group])

    def _but(self, pieces: Selection) -> Selection:
        lengths = {
            piece.name: self._models.length(piece.name, piece.axis)
            for piece in pieces
            if piece.axis is not None
        }
        return select_others(self._names, pieces, lengths)
