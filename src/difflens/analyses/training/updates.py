"""The learning rate of one step of AdamW, from two checkpoints around it and the moments after.

Δ = -lr u - lr wd w with u = m/(sqrt(v) + ε), bias-corrected, and w the weights before: two
unknowns, fitted by least squares over all parameters of a group (Loshchilov & Hutter 2019).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ...diffs import Diff
from ...evidences import Optimizer
from .adam import corrections, settings
from .samples import sampled

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PIECE = 1 << 18


class Fit(NamedTuple):
    """What one step of a group of parameters was: R² says how much of Δ it explains."""

    group: int
    lr: float
    weight_decay: float | None
    r2: float
    elements: int

    def told(self) -> dict[str, Any]:
        """Give it as plain data."""
        return self._asdict()


class Rate(NamedTuple):
    """The rate each element of a parameter is scaled by: lr/(sqrt(v) + ε), its median."""

    name: str
    median: float

    def told(self) -> dict[str, Any]:
        """Give it as plain data."""
        return self._asdict()


def fits(diff: Diff, state: Optimizer, names: Mapping[int, str]) -> list[Fit]:
    """Fit every group whose parameters are known by name, streaming over their elements."""
    import numpy as np

    groups = settings(state)
    sums: dict[int, NDArray[Any]] = {}
    counts: dict[int, int] = {}
    left = {pair.right.name: pair.left.name for pair in diff.pairs if pair.left and pair.right}
    for index, name in sorted(names.items()):
        at, group = groups[index]
        if name not in left or corrections(state.moments.get(index, {}), group) is None:
            continue
        before, after = diff.values("left", left[name]), diff.values("right", name)
        for columns in _columns(state.moments[index], group, before, after):
            sums[at] = sums.get(at, np.zeros((3, 3))) + columns @ columns.T
            counts[at] = counts.get(at, 0) + columns.shape[1]
    found = (_solved(at, sums[at], counts[at]) for at in sums)
    return [each for each in found if each is not None]


def effective_rates(state: Optimizer, names: Mapping[int, str]) -> list[Rate]:
    """Give the median effective rate of each named parameter, on a sample of its elements."""
    import numpy as np

    groups, found = settings(state), []
    for index, name in sorted(names.items()):
        at = groups[index][1]
        known = corrections(state.moments.get(index, {}), at)
        second, lr = state.moments.get(index, {}).get("exp_avg_sq"), at.get("lr")
        if known is None or second is None or not isinstance(lr, float) or not second.info.count:
            continue
        below = np.sqrt(np.abs(sampled(second).astype(float)) / known[2]) + _epsilon(at)
        middle = float(np.median(below))
        if np.isfinite(middle) and middle > 0:
            found.append(Rate(name, lr / middle))
    return found


def _epsilon(group: Mapping[str, Any]) -> float:
    eps = group.get("eps")
    return float(eps) if isinstance(eps, int | float) else 0.0


def _columns(
    moments: Mapping[str, Any], group: Mapping[str, Any], before: Any, after: Any
) -> Iterator[NDArray[Any]]:
    """Yield rows u, w, Δ of a parameter's finite elements, a piece at a time."""
    import numpy as np

    known = corrections(dict(moments), dict(group))
    if known is None or moments["exp_avg"].info.shape != after.info.shape:
        return
    _, one, two = known
    second = moments.get("max_exp_avg_sq") or moments["exp_avg_sq"]
    parts = (moments["exp_avg"], second, before, after)
    for start in range(0, after.info.count, _PIECE):
        stop = min(start + _PIECE, after.info.count)
        m, v, w, x = (each.span(start, stop).astype(np.float64) for each in parts)
        with np.errstate(all="ignore"):
            u = (m / one) / (np.sqrt(v / two) + _epsilon(group))
            rows = np.stack([u, w, x - w])
        yield rows[:, np.isfinite(rows).all(axis=0)]


def _solved(group: int, sums: NDArray[Any], count: int) -> Fit | None:
    """Solve the normal equations, each column scaled to unit length first."""
    import numpy as np

    scales = np.sqrt(np.diag(sums))
    if not (np.isfinite(sums).all() and scales[0] > 0 and scales[2] > 0):
        return None
    used = [0, 1] if scales[1] > 0 else [0]
    unit = sums / np.outer(np.where(scales > 0, scales, 1), np.where(scales > 0, scales, 1))
    weights, *_ = np.linalg.lstsq(unit[np.ix_(used, used)], unit[used, 2], rcond=None)
    lr = -float(weights[0]) * float(scales[2] / scales[0])
    decay = None
    if len(used) == 2 and lr:
        decay = -float(weights[1]) * float(scales[2] / scales[1]) / lr
    left_over = 1 - 2 * weights @ unit[used, 2] + weights @ unit[np.ix_(used, used)] @ weights
    return Fit(group, lr, decay, 1 - max(0.0, float(left_over)), count)
