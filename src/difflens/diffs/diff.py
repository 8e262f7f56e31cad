"""A diff: pairs, and what was measured of them once somebody looks."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from difflens.core.records import SAME, Delta, MetadataChange, ModelInfo, Pair
from difflens.core.state import StatePart

from .session import Session

if TYPE_CHECKING:
    from .fingerprints.session import FingerprintSession
    from .state import StateComparison

MeasureT = TypeVar("MeasureT")


class Diff:
    """Pairs, and what was measured of them; measuring waits until somebody looks."""

    def __init__(
        self,
        left: ModelInfo,
        right: ModelInfo,
        session: Session | FingerprintSession,
        *,
        metadata: tuple[MetadataChange, ...] = (),
        described: Mapping[str, Mapping[str, str]],
        state: StateComparison | None = None,
    ) -> None:
        """Touch no tensor; `described` is what each side says of itself, by `left` and `right`."""
        self.left = left
        self.right = right
        self.session = session
        self.metadata = metadata
        self.described = described
        self.beside = state
        self._whole_measures: dict[type, list[Any]] = {}  # those that somebody asked for
        self._taken: dict[type, list[Any]] = {}
        self._expected: tuple[type, ...] = ()
        self._remembered: dict[Hashable, Any] = {}

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """All pairs, in natural order of their names."""
        return self.session.pairs

    @property
    def epsilon(self) -> float:
        """How far an element may move and still count as unchanged."""
        return self.session.epsilon

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user should know of opening and measuring."""
        return tuple(self.session.warnings)

    @property
    def has_values(self) -> bool:
        """Can values be read, or were only headers asked for, or fingerprints?"""
        return not (self.session.shape_only or self.session.is_estimated)

    @property
    def is_estimated(self) -> bool:
        """Is a side a fingerprint, so that distances are estimates?"""
        return self.session.is_estimated

    @property
    def state(self) -> tuple[StatePart, ...]:
        """What became of the state beside the weights; compared once, when somebody looks."""
        if self.beside is None:
            return ()
        self.beside.progress = self.session.progress
        return self.beside.parts

    def measure(self) -> None:
        """Measure every pair now, for those who will look at them more than once."""
        _ = self.deltas

    @cached_property
    def deltas(self) -> tuple[Delta, ...]:
        """Measure every pair, once."""
        return tuple(self.session.measure(self.pairs))

    def stream(self) -> Iterator[Delta]:
        """Yield every delta once, keeping none: for those who look at each and go on."""
        if "deltas" in self.__dict__:
            return iter(self.deltas)
        return self.session.measure(self.pairs)

    @property
    def changed(self) -> tuple[Delta, ...]:
        """Every delta that is a difference."""
        return tuple(delta for delta in self.deltas if delta.kind not in SAME)

    def measured(self, kind: type[MeasureT]) -> Iterator[tuple[Delta, MeasureT]]:
        """Yield each delta that has a measure of that type, with it.

        A measure that needs a pass of its own is taken now, once, of all pairs it wants.
        """
        if not hasattr(kind, "wants"):
            measures = [delta.measured(kind) for delta in self.deltas]
        else:
            if kind not in self._taken:
                self._measure_with_expected(kind)
            measures = self._whole_measures[kind] = self._taken[kind]
        for delta, measure in zip(self.deltas, measures, strict=True):
            if measure is not None:
                yield delta, measure

    def expect(self, kinds: Iterable[type]) -> None:
        """Say which measures of whole tensors will be asked for: one pass can take them all."""
        self._expected = tuple(dict.fromkeys(kinds))

    def _measure_with_expected(self, kind: type) -> None:
        """Take a measure, and with it those that are expected where each pass costs a way."""
        far = [] if not self.session.reads_far else self._expected
        kinds = (kind, *(each for each in far if each is not kind and each not in self._taken))
        taken = self.session.measure_wholes(kinds, self.deltas)
        self._taken |= zip(kinds, taken, strict=True)

    def whole_measures(self, place: int) -> list[Any]:
        """Return what was measured of the delta at that place beyond the standard pass."""
        every = self._whole_measures.values()
        return [measures[place] for measures in every if measures[place] is not None]

    def values(self, side: Literal["left", "right"], name: str, pair: Pair | None = None) -> Any:
        """Return one tensor's numbers on demand (`protocols.Values`), by its name on that side.

        With its pair they come in the pair's layout, where content alone showed that layout.
        """
        if not self.has_values:
            raise ValueError("only headers were asked for: no value can be read")
        return self.session.values(side, name, pair)

    def remember(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Compute something about this diff once: analyses that ask again get the same."""
        if key not in self._remembered:
            self._remembered[key] = make()
        return self._remembered[key]

    @cached_property
    def _by_name(self) -> Mapping[str, Pair]:
        names = {pair.left.name: pair for pair in self.pairs if pair.left}
        return names | {pair.name: pair for pair in self.pairs}

    def __iter__(self) -> Iterator[Delta]:
        """Yield every delta, measured once."""
        return iter(self.deltas)

    def __contains__(self, name: object) -> bool:
        """Has a tensor of either side that name?"""
        return name in self._by_name

    def __getitem__(self, name: str) -> Delta:
        """Return one tensor's delta; measures only that tensor if the rest was not measured yet."""
        pair = self._by_name.get(name)
        if pair is None:
            raise KeyError(_unknown(name, self._by_name))
        if "deltas" not in self.__dict__:
            return next(self.session.measure([pair]))
        # By name: what is tied, or paired by its content, has a pair of its own by now.
        sides = {info.name for info in (pair.left, pair.right) if info}
        return next(each for each in self.deltas if sides & _names(each))


def _unknown(name: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches  # imported only for an error

    near = get_close_matches(str(name), list(known), 1)
    return f"no tensor is called {name!r}" + (f": did you mean {near[0]!r}?" if near else "")


def _names(delta: Delta) -> set[str]:
    return {info.name for info in (delta.pair.left, delta.pair.right) if info}
