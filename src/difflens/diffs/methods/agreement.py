"""Do two matrices agree place by place, or unit by unit, more than reordered units would?"""

from __future__ import annotations

from collections.abc import Container, Iterator
from math import lgamma, log, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

from difflens.core.records import Delta
from difflens.models.anatomy.roles import is_parameter

from ..diff import Diff

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LN10 = log(10)
_UNITS, _WEIGHTS = 256, 512  # units compared of a matrix, and weights of each
LEAST = 10  # units below which an order says little


class Agreement(NamedTuple):
    """Centred correlation of a matrix with its partner, and the p of so much under exchange."""

    name: str
    rho: float
    log10_p: float


def agreements(diff: Diff, proven: Container[str], seed: int) -> Iterator[Agreement]:
    """Test the pairs of float matrices of one shape; identical ones only if that proves something.

    `proven` holds the names of those: tables that a formula made agree in any two models.
    """
    for delta in diff.deltas:
        right = delta.pair.right
        is_empty = delta.kind == "identical" and right is not None and right.name not in proven
        if delta.kind in {"tied", "uncompared"} or is_empty or not _is_matrix(delta):
            continue
        sides = sampled(diff, delta, seed)
        found = sides and agreement(*sides)
        if found:
            yield Agreement(delta.name, *found)


def sampled(diff: Diff, delta: Delta, seed: int) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Read the same units and weights of both sides as [out, in, rest]; None if not finite."""
    import numpy as np

    left, right = delta.pair.left, delta.pair.right
    if left is None or right is None:
        return None
    random = np.random.default_rng(seed)
    shape = left.shape
    rows, inputs = (np.sort(random.permutation(n)[:_WEIGHTS]) for n in shape[:2])
    both = []
    for side, info in (("left", left), ("right", right)):
        values = diff.values(side, info.name, delta.pair)  # type: ignore[arg-type]
        some = values.some_rows(rows.tolist()).reshape(len(rows), shape[1], -1)[:, inputs]
        if not np.isfinite(some).all():
            return None
        both.append(some.astype(np.float64))
    return both[0], both[1]


def agreement(left: NDArray[Any], right: NDArray[Any]) -> tuple[float, float] | None:
    """Return the correlation, and the larger p of two: for outputs and for inputs exchanged.

    One of both axes may hold things with a place of their own (tokens, classes, gates, pixels),
    whose order two independent models share. Hidden units have none. So both must speak.
    """
    import numpy as np

    if left.shape[0] == left.shape[1]:  # an identity that both started from is no kinship
        left, right = (_hollow(side) for side in (left, right))
    ps = []
    for axis in (0, 1):
        if left.shape[axis] >= LEAST:
            views = (np.moveaxis(side, axis, 0)[:_UNITS] for side in (left, right))
            ps.append(log10_p_of_places(*(view.reshape(len(view), -1) for view in views)))
    rho = _correlation(left, right)
    known = [p for p in ps if p is not None]
    return None if rho is None or len(known) < len(ps) or not known else (rho, max(known))


def log10_p_of_places(left: NDArray[Any], right: NDArray[Any]) -> float | None:
    """Return log10 of the p that units agree so well with those at their own places.

    The statistic is the sum of cosines of each unit with its partner. Over all orders of the units
    it has the mean sum(C) / n and the variance sum(D²) / (n - 1), with C the cosines of all with
    all and D those without row and column means (Hoeffding 1951). p by the normal law, and never
    below that of one order among all, 1 / n!.
    """
    import numpy as np
    from scipy.special import log_ndtr

    rows = [normed(side - side.mean(axis=0)) for side in (left, right)]
    if any(row is None for row in rows):
        return None
    cosines = rows[0] @ rows[1].T  # type: ignore[union-attr]
    n = len(cosines)
    apart = cosines - cosines.mean(axis=0) - cosines.mean(axis=1, keepdims=True) + cosines.mean()
    spread = sqrt(float(np.square(apart).sum()) / (n - 1))
    if not spread > 0:
        return None
    z = (float(np.trace(cosines)) - float(cosines.sum()) / n) / spread
    return max(-lgamma(n + 1) / _LN10, float(log_ndtr(-z)) / _LN10)


def _hollow(block: NDArray[Any]) -> NDArray[Any]:
    """Put the mean where a unit meets itself."""
    import numpy as np

    block = block.copy()
    places = np.arange(len(block))
    block[places, places] = block.mean()
    return block


def normed(rows: NDArray[Any]) -> NDArray[Any] | None:
    """Scale every row to length 1; None where too few rows are not zero."""
    import numpy as np

    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    if np.count_nonzero(norms > 0) < LEAST:
        return None
    return rows / np.where(norms > 0, norms, 1)


def _correlation(left: NDArray[Any], right: NDArray[Any]) -> float | None:
    import numpy as np

    a, b = ((side - side.mean()).ravel() for side in (left, right))
    norm = float(np.linalg.norm(a)) * float(np.linalg.norm(b))
    return max(-1.0, min(1.0, float(a @ b) / norm)) if norm > 0 else None


def _is_matrix(delta: Delta) -> bool:
    left, right = delta.pair.left, delta.pair.right
    if not (left and right) or left.shape != right.shape or len(left.shape) < 2:
        return False
    return is_parameter(delta.name, left.dtype, right.dtype) and max(left.shape[:2]) >= LEAST
