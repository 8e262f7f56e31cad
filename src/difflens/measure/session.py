"""The measuring of one diff: what is tied, what only its content shows, then pair after pair."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any

from ..protocols import TensorSource
from ..records import Delta, Pair
from .content import by_content, once
from .engine import Threads
from .oddities import oddity
from .pairs import deltas
from .ties import Candidate, tied


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

    @cached_property
    def _ties(self) -> dict[int, Delta]:
        return tied(self._twins(), self._left, self._right, self._engine)

    @cached_property
    def _contents(self) -> dict[int, Delta]:
        rest = (each for each in self._lone if id(each) not in self._ties)
        always = bool(self._how.get("always"))
        return by_content(rest, self._left, self._right, self._engine, self._derive, always=always)
