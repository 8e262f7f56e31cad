"""Searches the smallest set of units whose return mends the bad model, or that breaks the good one.

Both are one search: for a short list, find the shortest beginning that does it; its last unit is
needed. Fix that one, and do the same with what came before it, until what is fixed does it alone.
With a list that begins with the culprits this takes one question for each; with the worst order it
takes two logarithms for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

Members = tuple[int, ...]


# Asks which of several sets of units does it: the place of the first, or None.
Tries = Callable[[Sequence[Members]], "int | None"]


class Search:
    """A search over units that are numbered by suspicion; knows how many questions may be left."""

    def __init__(
        self, tries: Tries, units: int, outstanding: int, expect: Callable[[int], None]
    ) -> None:
        """Take what asks; `outstanding` is the number of units that stand out."""
        self._tries, self._units, self._expect = tries, units, expect
        self._outstanding = outstanding

    def smallest(
        self,
        fixed: Members = (),
        start: int = 1,
        go_on: Callable[[Members, int], bool] = lambda *_: True,
    ) -> Members | None:
        """Return a set that does it and has no unit to spare, if more units do no harm.

        All units together are known to do it, the fixed ones alone not to. `go_on` is asked, with
        what is fixed and how long the beginning was, whether the search is worth more questions;
        None where it says no.
        """
        chosen, limit = fixed, self._units
        while True:
            length = self._shortest(chosen, start, limit)
            chosen, limit = (*chosen, length - 1), length - 1
            if self._does(chosen):
                return tuple(sorted(chosen))
            if limit <= 0 or not go_on(chosen, length):
                return None
            start = 1

    def _does(self, members: Members) -> bool:
        return self._tries([members]) == 0

    def _shortest(self, fixed: Members, start: int, limit: int) -> int:
        """Return the length of the shortest beginning that does it together with what is fixed."""
        lengths = [each for each in self._lengths(start) if each < limit]
        self._expect(len(lengths))
        place = self._tries([_joined(fixed, length) for length in lengths])
        high = limit if place is None else lengths[place]
        failed = lengths if place is None else lengths[:place]
        low = failed[-1] if failed else min(start, high) - 1
        while high - low > 1:
            self._expect((high - low - 1).bit_length())
            middle = (low + high) // 2
            if self._tries([_joined(fixed, middle)]) == 0:
                high = middle
            else:
                low = middle
        return high

    def _lengths(self, start: int) -> Iterator[int]:
        """Yield lengths to try: by one, to all that stand out, and then twice as many each time."""
        length, stop = start, self._outstanding
        while length < self._units:
            yield length
            following = length + 1 if length < min(stop, 3) else 2 * length
            length = stop if length < stop < following else following

    def pruned(self, members: Members) -> Members:
        """Leave out what is not needed: one unit alone first, then one unit less, to the end."""
        if len(members) > 2:
            alone = self._tries([(each,) for each in members])
            if alone is not None:
                return (members[alone],)
        at = len(members) - 1
        while at >= 0 and len(members) > 1:
            fewer = (*members[:at], *members[at + 1 :])
            if self._does(fewer):
                members = fewer
            at -= 1
        return members


def _joined(fixed: Members, length: int) -> Members:
    return tuple(sorted({*fixed, *range(length)}))
