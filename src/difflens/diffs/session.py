"""The measuring of one diff: first what is not scanned side by side, then pair after pair."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Literal, Protocol, TypeVar

from difflens.core.encodings import is_remote
from difflens.core.protocols import Engine, TensorSource, WholeMeasure
from difflens.core.records import Delta, Pair
from difflens.measure.chunks import Side
from difflens.measure.held import Kept, KeptEncoding
from difflens.measure.pairs import deltas, oddity
from difflens.measure.resources import one_thread_each
from difflens.measure.values import Values
from difflens.measure.wholes import WholePair, measure_whole
from difflens.models.computed import derived

from .kept import KeptSource
from .pairing import Pairing
from .pairing.how import CONTENT, is_without_partner
from .pairing.ties import compare_ties

WholeT = TypeVar("WholeT", bound=WholeMeasure)


class Progress(Protocol):
    """Something that shows how far the work is, such as a progress bar."""

    def __call__(self, size: int) -> None:
        """Add the number of bytes just read."""

    def stage(self, name: str, total: int) -> Callable[[int], None]:
        """Begin another stretch of work over so many bytes."""


class Session:
    """Two open models and their pairs; no value is read before somebody asks for one."""

    is_estimated = False  # as it is where a fingerprint stands for a model

    def __init__(
        self,
        left: TensorSource,
        right: TensorSource,
        pairing: Pairing,
        engine: Engine,
        *,
        epsilon: float = 0.0,
        always: bool = False,
        shape_only: bool = False,
    ) -> None:
        """Read nothing yet; `always` asks for statistics of identical tensors too."""
        self.pairs = tuple(pairing.pairs)
        self.epsilon = epsilon
        self.shape_only = shape_only
        self.warnings: list[str] = [*left.warnings, *right.warnings]
        self.progress: Progress | None = None
        self._left, self._right = left, right
        self._pairing = pairing
        self._engine = engine
        self._always = always
        # Names of pairs, left and right, that are known to be identical: they are not read.
        self.proved: Collection[tuple[str, str]] = ()

    def keep_bytes(self) -> None:
        """Keep what comes from far away for those who will ask again, as far as there is room."""
        if self._is_remote and self._engine.is_here:
            kept = Kept()
            self._left, self._right = KeptSource(self._left, kept), KeptSource(self._right, kept)

    def measure(self, pairs: Iterable[Pair]) -> Iterator[Delta]:
        """Measure the pairs, and yield their deltas in order."""
        if self.shape_only:
            yield from map(compare_headers, pairs)
            return
        pairs = list(pairs)
        known = self._ties_and_forms
        if any(not (each.left and each.right) for each in pairs):
            known = self._known
        pairs = _without_repeats(pairs, known) if known else pairs
        scanned = deltas(
            (each for each in pairs if each not in known) if known else pairs,
            self._left,
            self._right,
            self._engine,
            epsilon=self.epsilon,
            always=self._always,
            progress=self.progress,
        )
        try:
            for each in pairs:
                delta = (known.get(each) if known else None) or next(scanned)
                warning = oddity(delta)
                if warning:
                    self.warnings.append(warning)
                yield delta
        finally:
            self._engine.close()
        self._confirm()

    def values(self, side: Literal["left", "right"], name: str, pair: Pair | None = None) -> Values:
        """Return one tensor's numbers on demand; with its pair, in the layout the pair has."""
        return Values(self._side(side, name, pair))

    def _side(self, side: Literal["left", "right"], name: str, pair: Pair | None = None) -> Side:
        source = self._left if side == "left" else self._right
        if pair and pair.how.startswith(CONTENT):
            info, recipe = pair.right, pair.right_recipe
            if side == "left":
                info, recipe = pair.left, pair.left_recipe
            if info and recipe and recipe.base in source.tensors:
                return Side.of(derived(source, [(info, recipe)]), info)
        return Side.of(source, source.tensors[name])

    def measure_whole(self, kind: type[WholeT], deltas: Iterable[Delta]) -> list[WholeT | None]:
        """Take a measure that needs a pass of its own; None for the pairs that it does not want."""
        (measures,) = self.measure_wholes((kind,), deltas)
        return measures

    def measure_wholes(
        self, kinds: tuple[type[WholeMeasure], ...], deltas: Iterable[Delta]
    ) -> list[list[Any]]:
        """Take several of them in one pass, which reads each tensor once."""
        deltas = tuple(deltas)
        results: list[list[Any]] = [[None] * len(deltas) for _ in kinds]
        wanted = {} if self.shape_only else dict(self._wanted(kinds, deltas))
        sizes = [each.size_bytes for each in wanted.values()]
        name = kinds[0].__name__.lower() if len(kinds) == 1 else "measures"
        stage = self.progress.stage(name, sum(sizes)) if self.progress else None
        with one_thread_each():
            try:
                taken = self._engine.run(measure_whole, wanted.values(), remote=self._is_remote)
                for (at, pair), size, measures in zip(wanted.items(), sizes, taken, strict=True):
                    for kind, measure in zip(pair.kinds, measures, strict=True):
                        results[kinds.index(kind)][at] = measure
                    if stage:
                        stage(size)
            finally:
                self._engine.close()
        self._confirm()
        return results

    def _wanted(
        self, kinds: tuple[type[WholeMeasure], ...], deltas: Iterable[Delta]
    ) -> Iterator[tuple[int, WholePair]]:
        """Yield each pair that one of the kinds wants, by its place."""
        for at, delta in enumerate(deltas):
            here = tuple(kind for kind in kinds if kind.wants(delta))
            if here:
                yield at, self._whole_pair(here, delta.pair)

    def _whole_pair(self, kinds: tuple[type[WholeMeasure], ...], pair: Pair) -> WholePair:
        before = self._side("left", pair.left.name, pair) if pair.left else None
        after = self._side("right", pair.right.name, pair) if pair.right else None
        is_kept = all(isinstance(each.encoding, KeptEncoding) for each in (before, after) if each)
        return WholePair(kinds, before, after, self._is_remote and not is_kept)

    @property
    def reads_far(self) -> bool:
        """Does each pass over the tensors cost a way, to where they are or where work is done?"""
        return self._is_remote or not self._engine.is_here

    @cached_property
    def _is_remote(self) -> bool:
        return is_remote(self._left) or is_remote(self._right)

    def _confirm(self) -> None:
        self._left.confirm()
        self._right.confirm()

    @cached_property
    def _ties_and_forms(self) -> dict[Pair, Delta]:
        """Deltas of tied tensors, and of those that a graph holds folded or in part."""
        ties = compare_ties(self.pairs, self._left, self._right, self._engine)
        ties |= {each: Delta(each, "identical") for each in self.pairs if self._is_proved(each)}
        if self._pairing.graphed is None:
            return ties
        from .pairing.graph_forms import compare_other_forms

        return ties | compare_other_forms(self._pairing.graphed, self._left, self._right)

    def _is_proved(self, pair: Pair) -> bool:
        left, right = pair.left, pair.right
        if not (self.proved and left and right) or pair.left_recipe or pair.right_recipe:
            return False
        return (left.name, right.name) in self.proved

    @cached_property
    def _known(self) -> dict[Pair, Delta]:
        """All of these, and the deltas of tensors that only their content pairs."""
        known = self._ties_and_forms
        if not self._pairing.by_content:
            return known
        from .pairing.content import match_by_content

        lone = filter(is_without_partner, self._pairing.all_pairs)
        return known | match_by_content(
            [each for each in lone if each not in known],
            self._left,
            self._right,
            self._engine,
            epsilon=self.epsilon,
            always=self._always,
        )


def compare_headers(pair: Pair) -> Delta:
    """Tell added, removed, reshaped and recast from merely paired; no tensor byte is read."""
    left, right = pair.left, pair.right
    if left is None or right is None:
        return Delta(pair, "removed" if left else "added")
    if left.shape != right.shape:
        return Delta(pair, "reshaped")
    return Delta(pair, "paired" if left.dtype == right.dtype else "recast")


def _without_repeats(pairs: list[Pair], known: Mapping[Pair, Delta]) -> list[Pair]:
    """Leave out the left one of two lone pairs whose tensors turned out to be one pair."""
    on_the_right = {known[each].pair for each in pairs if each.right and each in known}
    return [
        each
        for each in pairs
        if each.right or each not in known or known[each].pair not in on_the_right
    ]
