"""The measuring of one diff: what is tied, what only its content shows, then pair after pair."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any, TypeVar

from ..protocols import TensorSource, WholeMeasure
from ..records import Delta, Pair
from .blas import one_thread_each
from .chunks import Side
from .content import by_content, once
from .engine import Threads
from .oddities import oddity
from .pairs import deltas
from .ties import Candidate, tied
from .values import Values

WholeT = TypeVar("WholeT", bound=WholeMeasure)


class Session:
    """Two open models and their pairs; nothing is read before it is called.

    `derive` makes a source that follows recipes; `lone` are the pairs whose partner only their
    content may show, `twins` the tensors that may be stored twice on one side.
    """

    def __init__(
        self,
        left: TensorSource,
        right: TensorSource,
        *,
        twins: Callable[[], Iterable[Candidate]],
        lone: list[Pair],
        derive: Callable[..., TensorSource],
        threads: int | None = None,
        **how: Any,
    ) -> None:
        """Keep the parts; `how` is what `deltas` takes: epsilon, always, progress."""
        self._left, self._right = left, right
        self._twins, self._lone, self._derive = twins, lone, derive
        self._engine = Threads(threads)
        self._how = how
        self.warnings: list[str] = [*left.warnings, *right.warnings]

    def __call__(self, chosen: Iterable[Pair]) -> Iterator[Delta]:
        """Measure the pairs, and yield their deltas in order."""
        pairs = list(chosen)
        known = dict(self._ties)
        if any(not (each.left and each.right) for each in pairs):
            known |= self._contents
        pairs = list(once(pairs, known))
        unknown = (each for each in pairs if id(each) not in known)
        results = deltas(unknown, self._left, self._right, self._engine, **self._how)
        try:
            for each in pairs:
                delta = known.get(id(each)) or next(results)
                self.warnings.extend(filter(None, [oddity(delta)]))
                yield delta
        finally:
            self._engine.close()
        self._left.confirm()
        self._right.confirm()

    def values(self, side: str, name: str) -> Values:
        """Give one tensor's numbers on demand."""
        source = self._left if side == "left" else self._right
        return Values(Side(source, source.tensors[name]))

    def take(self, kind: type[WholeT], deltas: Iterable[Delta]) -> dict[int, WholeT]:
        """Take a measure that needs a pass of its own, of the pairs it wants."""
        wanted = [delta for delta in deltas if kind.wants(delta)]
        sizes = [sum(info.size_bytes for info in (each.pair.left, each.pair.right) if info)
                 for each in wanted]  # fmt: skip
        advance = self._stage(kind.__name__.lower(), sum(sizes))
        taken: dict[int, WholeT] = {}
        with one_thread_each():
            try:
                results = self._engine.map(lambda delta: self._whole(kind, delta), wanted)
                for delta, size, found in zip(wanted, sizes, results, strict=True):
                    advance(size)
                    if found is not None:
                        taken[id(delta)] = found
            finally:
                self._engine.close()
        self._left.confirm()
        self._right.confirm()
        return taken

    def _whole(self, kind: type[WholeT], delta: Delta) -> WholeT | None:
        left, right = delta.pair.left, delta.pair.right
        before = self.values("left", left.name) if left else None
        after = self.values("right", right.name) if right else None
        return kind.of(before, after)

    def _stage(self, name: str, total: int) -> Callable[[int], None]:
        """Begin a new stretch of the progress bar, where somebody watches."""
        begin = getattr(self._how.get("progress"), "stage", None)
        return begin(name, total) if begin else lambda _size: None

    @cached_property
    def _ties(self) -> dict[int, Delta]:
        return tied(self._twins(), self._left, self._right, self._engine)

    @cached_property
    def _contents(self) -> dict[int, Delta]:
        rest = (each for each in self._lone if id(each) not in self._ties)
        always = bool(self._how.get("always"))
        return by_content(rest, self._left, self._right, self._engine, self._derive, always=always)
