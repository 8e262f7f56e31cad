"""The measuring of one diff by fingerprints: no byte of a recorded side is read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from difflens.core.errors import DifflensError
from difflens.core.protocols import Engine
from difflens.core.records import Delta, Pair

from ..pairing import Pairing
from ..session import compare_headers
from .compare import compare, find_by_hash
from .sides import Side

if TYPE_CHECKING:
    from ..session import Progress
    from .records import Fingerprint

_STATE = "the state of its training is in no fingerprint, and was not compared"


class FingerprintSession:
    """Two sides and their pairs; the fingerprint of a model is made when somebody looks."""

    epsilon = 0.0
    reads_far = False
    is_estimated = True
    proved: Collection[tuple[str, str]] = ()

    def __init__(
        self, left: Side, right: Side, pairing: Pairing, engine: Engine, *, shape_only: bool = False
    ) -> None:
        """Read nothing yet."""
        self.pairs = tuple(pairing.pairs)
        self.warnings = [*left.warnings, *right.warnings]
        self.warnings += [f"{each.path}: {_STATE}" for each in (left, right)
                          if each.info.state_tensors]  # fmt: skip
        self.progress: Progress | None = None
        self._left, self._right = left, right
        self._pairing = pairing
        self.shape_only = shape_only
        self._engine = engine

    def keep_bytes(self) -> None:
        """Do nothing: no analysis will read what a fingerprint does not hold."""

    def measure(self, pairs: Iterable[Pair]) -> Iterator[Delta]:
        """Compare the pairs, and yield their deltas in order."""
        if self.shape_only:
            yield from map(compare_headers, pairs)
            return
        yield from compare(pairs, *self._fingerprints, self._known)

    def values(self, side: Literal["left", "right"], name: str, pair: Pair | None = None) -> Any:  # noqa: ARG002
        """Raise: there is none."""
        raise DifflensError("a fingerprint holds no values", where=name)

    def measure_wholes(
        self, kinds: tuple[type[Any], ...], deltas: Iterable[Delta]
    ) -> list[list[Any]]:
        """Take none: there are no numbers to take them of."""
        count = len(tuple(deltas))
        return [[None] * count for _ in kinds]

    def measure_whole(self, kind: type[Any], deltas: Iterable[Delta]) -> list[Any]:  # noqa: ARG002
        """Measure nothing: that would need values."""
        return [None for _ in deltas]

    @cached_property
    def _fingerprints(self) -> tuple[Fingerprint, Fingerprint]:
        if self.progress:
            self.progress.stage("", self._left.unread_bytes + self._right.unread_bytes)
        try:
            left = self._left.read(self._engine, self.progress)
            return left, self._right.read(self._engine, self.progress)
        finally:
            self._engine.close()

    @cached_property
    def _known(self) -> dict[Pair, Delta]:
        if not self._pairing.by_content:
            return {}
        return find_by_hash(self._pairing.all_pairs, *self._fingerprints)
