"""A diff: pairs, and what was measured of them once somebody looks."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Literal, TypeVar

from .records import SAME, Delta, MetadataChange, ModelInfo, Pair

MeasureT = TypeVar("MeasureT")


class Diff:
    """Pairs, and what was measured of them; measuring waits until somebody looks.

    `measure` is handed in by the pipeline: it turns pairs into deltas, in order.
    """

    def __init__(
        self,
        left: ModelInfo,
        right: ModelInfo,
        pairs: Iterable[Pair],
        measure: Callable[[Iterable[Pair]], Iterator[Delta]],
        *,
        metadata: tuple[MetadataChange, ...] = (),
        warnings: Callable[[], tuple[str, ...]] = tuple,
        values: Callable[[str, str], Any] | None = None,
        take: Callable[[type, Iterable[Delta]], Mapping[int, Any]] | None = None,
        metadata_left: Mapping[str, str] | None = None,
        metadata_right: Mapping[str, str] | None = None,
        epsilon: float = 0.0,
    ) -> None:
        """Keep the parts; touch no tensor. Without `values` only headers can be looked at."""
        self.left = left
        self.right = right
        self.pairs = tuple(pairs)
        self.metadata = metadata
        self.epsilon = epsilon
        self._measure = measure
        self._warnings = warnings
        self._values = values
        self._take = take
        self._taken: dict[type, Mapping[int, Any]] = {}
        self._remembered: dict[Hashable, Any] = {}
        self.described = {"left": dict(metadata_left or {}), "right": dict(metadata_right or {})}

    @cached_property
    def deltas(self) -> tuple[Delta, ...]:
        """Measure every pair, once."""
        return tuple(self._measure(self.pairs))

    def stream(self) -> Iterator[Delta]:
        """Yield every delta once, keeping none: for those who look at each and go on."""
        return iter(self.deltas) if "deltas" in self.__dict__ else self._measure(self.pairs)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What had to be said while opening and measuring."""
        return self._warnings()

    @property
    def changed(self) -> tuple[Delta, ...]:
        """Every delta that is a difference."""
        return tuple(delta for delta in self.deltas if delta.kind not in SAME)

    def measured(self, kind: type[MeasureT]) -> Iterator[tuple[Delta, MeasureT]]:
        """Yield each delta that has a measure of that type, with it.

        A measure that needs a pass of its own is taken now, once, of all pairs it wants.
        """
        taken: Mapping[int, Any] = self._of_kind(kind) if hasattr(kind, "wants") else {}
        for delta in self.deltas:
            measure = taken.get(id(delta)) if taken else delta.measured(kind)
            if measure is not None:
                yield delta, measure

    def _of_kind(self, kind: type) -> Mapping[int, Any]:
        if kind not in self._taken and self._take:
            self._taken[kind] = self._take(kind, self.deltas)
        return self._taken.get(kind, {})

    def further(self, delta: Delta) -> Iterator[Any]:
        """Yield what was measured of a delta beyond the standard pass."""
        return (found[id(delta)] for found in self._taken.values() if id(delta) in found)

    @property
    def has_values(self) -> bool:
        """Can values be read, or were only headers asked for?"""
        return self._values is not None

    def values(self, side: Literal["left", "right"], name: str) -> Any:
        """Give one tensor's numbers on demand (`protocols.Values`), by its name on that side."""
        if self._values is None:
            raise ValueError("only headers were asked for: no value can be read")
        return self._values(side, name)

    def remember(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Compute something about this diff once: analyses that ask again get the same."""
        if key not in self._remembered:
            self._remembered[key] = make()
        return self._remembered[key]

    @cached_property
    def _by_name(self) -> Mapping[str, Pair]:
        names = {pair.left.name: pair for pair in self.pairs if pair.left}
        return names | {pair.name: pair for pair in self.pairs}

    def __getitem__(self, name: str) -> Delta:
        """Give one tensor's delta; measures that one alone where the rest was not looked at yet."""
        pair = self._by_name[name]
        if "deltas" not in self.__dict__:
            return next(self._measure([pair]))
        # By name: what is tied, or paired by its content, has a pair of its own by now.
        sides = {info.name for info in (pair.left, pair.right) if info}
        return next(each for each in self.deltas if sides & _names(each))


def _names(delta: Delta) -> set[str]:
    return {info.name for info in (delta.pair.left, delta.pair.right) if info}
