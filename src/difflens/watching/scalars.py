"""The names under which a run keeps its scalars: they come as they come, within bounds."""

from __future__ import annotations

from collections.abc import Mapping

MOST = 512  # names a run may have
LONGEST = 255  # characters of a name


class Names:
    """Scalars that a run has; a name that is new changes how frames are laid out."""

    def __init__(self, known: tuple[str, ...]) -> None:
        """Begin with those that every run has."""
        self.known, self._whole = known, frozenset(known)
        self.refused = 0  # values that had no place

    def take(self, given: Mapping[str, float]) -> tuple[dict[str, float], bool]:
        """Give the scalars that have a place, and whether one of them is new."""
        if self._whole.issuperset(given):
            return dict(given), False
        new = [
            name
            for name in given
            if name not in self.known and 0 < len(name) <= LONGEST and name.isprintable()
        ][: MOST - len(self.known)]
        self.known = (*self.known, *new)
        self._whole = frozenset(self.known)
        kept = {name: value for name, value in given.items() if name in self.known}
        self.refused += len(given) - len(kept)
        return kept, bool(new)
