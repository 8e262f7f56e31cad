"""Several models beside the right one: their moves from a common origin, and the inner products."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from difflens.core.dtypes import ROUNDING
from difflens.core.records import MOVED, Delta
from difflens.measure.resources import one_thread_each
from difflens.models.anatomy.roles import is_parameter

from ...diff import Diff
from ..merging import PIECE

if TYPE_CHECKING:
    from numpy.typing import NDArray

_KEPT = MOVED | {"identical"}
REST = 1e-3  # part of a move that a mixture may leave, beyond rounding
_HIDDEN = 0.1  # where rounding is more of a move than this, the tensor says nothing


class Source(NamedTuple):
    """A model that the right may be made of, by its diff with the right."""

    label: str
    diff: Diff

    def deltas(self) -> dict[str, Delta]:
        """Return its parameters that the right has in the same shape, by the right's name."""
        found = {}
        for delta in self.diff.deltas:
            left, right = delta.pair.left, delta.pair.right
            plain = delta.pair.transform is None and delta.kind in _KEPT
            if not (left and right and plain and left.shape == right.shape and left.count):
                continue
            if is_parameter(right.name, left.dtype, right.dtype):
                found[right.name] = delta
        return found


class Mixture(NamedTuple):
    """The models, the tensors that all have, and what is known of each by inner products.

    Of a tensor: the Gram matrix of o, t_1, ..., t_k and of the right's move, in this order.
    """

    origin: Source
    parts: list[Source]
    grams: dict[str, NDArray[Any]]
    units: dict[str, float]  # of the last place of the right, relative to its values

    @property
    def known(self) -> list[str]:
        """The tensors that moved by more than rounding hides."""
        return [
            name
            for name, gram in self.grams.items()
            if gram[-1, -1] > 0 and self.noise(name) <= _HIDDEN * gram[-1, -1]
        ]

    def noise(self, name: str) -> float:
        """What rounding of the right adds to the square of its move: ulp² / 12 an element."""
        gram = self.grams[name]
        square = max(0.0, float(gram[0, 0] + 2 * gram[0, -1] + gram[-1, -1]))
        return self.units[name] ** 2 / 12 * square


def measure(origin: Source, parts: list[Source]) -> Mixture:
    """Read every tensor that all models have, in pieces."""
    import numpy as np

    sources = [origin, *parts]
    deltas = [source.deltas() for source in sources]
    names = [name for name in deltas[0] if all(name in each for each in deltas)]
    grams, units = {}, {}
    with one_thread_each():  # sums must not depend on the number of threads
        for name in names:
            if all(each[name].kind == "identical" for each in deltas):
                continue
            gram = np.zeros((len(sources) + 1, len(sources) + 1))
            for rows in read_pieces(sources, deltas, name):
                gram += rows @ rows.T
            if np.isfinite(gram).all():
                grams[name] = gram
                units[name] = _unit(origin.diff.values("right", name))
    return Mixture(origin, parts, grams, units)


def _unit(values: Any) -> float:
    """Return the unit in the last place, relative to a value; as coarse as the values lie."""
    import numpy as np

    bits = ROUNDING.get(values.info.dtype, (0, 23))[1]
    if values.info.dtype == "F32":  # a coarser type may have been stored as this one
        some = values.span(0, min(values.info.count, 1 << 12)).view(np.uint32)
        bits = next(
            (kept for cut, kept in ((16, 7), (13, 10)) if not (some << (32 - cut)).any()), 23
        )
    return float(2.0**-bits)


def read_pieces(
    sources: list[Source], deltas: list[dict[str, Delta]], name: str, most: int = 0
) -> Iterator[NDArray[Any]]:
    """Yield rows of numbers: the origin, the move of each part from it, and that of the right.

    Of a large tensor so many pieces at `most`, evenly spread.
    """
    import numpy as np

    values = []
    for source, each in zip(sources, deltas, strict=True):
        left = each[name].pair.left
        values.append(source.diff.values("left", left.name if left else ""))
    values.append(sources[0].diff.values("right", name))
    count = values[0].info.count
    starts = range(0, count, PIECE)
    if most and len(starts) > most:
        chosen = [starts[at * (len(starts) - 1) // (most - 1)] for at in range(most)]
    else:
        chosen = list(starts)
    for start in chosen:
        stop = min(start + PIECE, count)
        rows = np.stack([each.span(start, stop) for each in values]).astype(np.float64)
        known = np.isfinite(rows).all(axis=0)
        rows = rows if known.all() else rows[:, known]
        rows[1:] -= rows[0]
        yield rows
