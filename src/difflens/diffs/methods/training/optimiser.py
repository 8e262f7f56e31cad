"""Saved states of optimisers: which parameter is which, and the steps they explain."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from difflens.core.protocols import Values
from difflens.core.records import TensorInfo
from difflens.models.anatomy.roles import is_parameter, role

from ...diff import Diff
from ...evidence.records import Optimizer
from .gradients import corrections, settings

if TYPE_CHECKING:
    from numpy.typing import NDArray


SAMPLE = 1 << 16  # elements up to which all are taken
_SPANS = 16  # stretches that are read of a larger one, evenly spread


def sampled(values: Values) -> NDArray[Any]:
    """Return all elements, or evenly spread stretches of a tensor with more than `SAMPLE`."""
    import numpy as np

    count = values.info.count
    if count <= SAMPLE:
        return values.span(0, count) if count else np.zeros(0)
    length = SAMPLE // _SPANS
    starts = [round(at * (count - length) / (_SPANS - 1)) for at in range(_SPANS)]
    return np.concatenate([values.span(start, start + length) for start in starts])


# Optimisers count parameters, they do not name them. The order in which a model registers them is
# not kept by every file, so an order is believed only where all shapes agree. Where none does, the
# direction an index was about to move in tells which tensor went there.

_SURE = 6.0  # standard errors 1/sqrt(n) a cosine must be above zero and above every other one


class Names(NamedTuple):
    """Names by index on one side, and how they were found; none if nothing agrees."""

    names: dict[int, str]
    how: str


def by_order(diff: Diff, side: str, state: Optimizer) -> Names:
    """Take the names in the groups, else an order of the parameters in which all shapes agree."""
    infos = _parameters(diff, side)
    named = {
        index: name
        for group in state.groups
        for index, name in zip(group["params"], group.get("names", ()), strict=False)
    }
    by_name = {info.name: info for info in infos}
    if named and all(_fits(by_name.get(name), state, index) for index, name in named.items()):
        return Names(named, "the groups name them")
    indices = [index for group in state.groups for index in group["params"]]
    agreeing = []
    for order in _orders(infos, [len(group["params"]) for group in state.groups]):
        pairs = list(zip(indices, order, strict=False))
        if len(order) == len(indices) and all(_fits(info, state, at) for at, info in pairs):
            agreeing.append({at: info.name for at, info in pairs})
    if not agreeing:
        return Names({}, f"no order of {len(infos)} parameters agrees with {len(indices)} shapes")
    first, *others = agreeing
    kept = {at: name for at, name in first.items() if all(each[at] == name for each in others)}
    return Names(kept, f"order of the parameters, shapes of all {len(indices)} agree")


def by_moves(diff: Diff, state: Optimizer) -> Names:
    """Match each index with the moved tensor that went against its first moment, where one did.

    Chance gives a cosine of 0 ± 1/sqrt(n); what is matched is far above that and above all else.
    """
    moved = _by_shape(diff)
    found: dict[int, str] = {}
    for shape, indices in _indices_by_shape(state).items():
        if shape not in moved:
            continue
        rows = [_direction(state.moments[index]) for index in indices]
        found |= _matched(rows, indices, moved[shape])
    return Names(found, f"the direction in which tensors moved, {len(found)} of them")


def _parameters(diff: Diff, side: str) -> list[TensorInfo]:
    sides = (pair.left if side == "left" else pair.right for pair in diff.pairs)
    tied = {delta.name for delta in diff.deltas if delta.kind == "tied"}
    return [
        info
        for info in sides
        if info and is_parameter(info.name, info.dtype) and info.name not in tied
    ]


def _fits(info: TensorInfo | None, state: Optimizer, index: int) -> bool:
    moment = state.moments.get(index, {}).get("exp_avg")
    return info is not None and (moment is None or tuple(moment.info.shape) == info.shape)


def _orders(infos: list[TensorInfo], sizes: Sequence[int]) -> Iterator[list[TensorInfo]]:
    """Yield orders in which parameters may have been handed to the optimiser.

    As their names sort, with each weight before its bias, and split into what decays and what
    does not (biases and norms, or vectors), as trainers do.
    """
    weights_first = sorted(infos, key=lambda info: _module_key(infos, info))
    for order in (weights_first, infos):
        yield order
        for spared in (_is_bias_or_norm, _is_vector):
            split = [[each for each in order if spared(each) is last] for last in (False, True)]
            if list(map(len, split)) == list(sizes):
                yield [*split[0], *split[1]]


def _module_key(infos: list[TensorInfo], info: TensorInfo) -> tuple[int, bool]:
    """Sort by where the module first appears, its weight before its bias."""
    module = info.name.rpartition(".")[0]
    first = next(at for at, each in enumerate(infos) if each.name.rpartition(".")[0] == module)
    return first, info.name.endswith("bias")


def _is_bias_or_norm(info: TensorInfo) -> bool:
    return role(info.name) in {"bias", "norm"} or info.name.endswith("bias")


def _is_vector(info: TensorInfo) -> bool:
    return len(info.shape) < 2


def _by_shape(diff: Diff) -> dict[tuple[int, ...], list[tuple[str, Any]]]:
    """Group the moved parameters, each with how it moved on a sample of its elements."""
    groups: dict[tuple[int, ...], list[tuple[str, Any]]] = defaultdict(list)
    for delta in diff.deltas:
        left, right = delta.pair.left, delta.pair.right
        if delta.kind in {"changed", "within_epsilon"} and left and right:
            before = sampled(diff.values("left", left.name, delta.pair))
            after = sampled(diff.values("right", right.name, delta.pair))
            groups[right.shape].append((right.name, after.astype(float) - before))
    return groups


def _indices_by_shape(state: Optimizer) -> dict[tuple[int, ...], list[int]]:
    groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for index, moments in state.moments.items():
        if "exp_avg" in moments and "exp_avg_sq" in moments:
            groups[tuple(moments["exp_avg"].info.shape)].append(index)
    return groups


def _direction(moments: dict[str, Any]) -> NDArray[Any]:
    """Return -m/sqrt(v) on a sample: which way Adam was about to go."""
    import numpy as np

    first, second = (sampled(moments[key]).astype(float) for key in ("exp_avg", "exp_avg_sq"))
    direction: NDArray[Any] = -first / (np.sqrt(np.abs(second)) + 1e-12)
    return direction


def _matched(
    rows: list[NDArray[Any]], indices: list[int], moved: list[tuple[str, NDArray[Any]]]
) -> dict[int, str]:
    import numpy as np

    cosines = np.nan_to_num(_unit(np.stack(rows)) @ _unit(np.stack([each for _, each in moved])).T)
    error = _SURE / cosines.dtype.type(len(rows[0])) ** 0.5
    found = {}
    for at, index in enumerate(indices):
        best = int(cosines[at].argmax())
        others = np.concatenate([np.delete(cosines[at], best), np.delete(cosines[:, best], at)])
        if cosines[at, best] > max(error, float(others.max(initial=0)) + error / 2):
            found[index] = moved[best][0]
    return found


def _unit(rows: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    finite = np.nan_to_num(rows, posinf=0.0, neginf=0.0)
    norms = np.linalg.norm(finite, axis=1, keepdims=True)
    scaled: NDArray[Any] = finite / np.where(norms > 0, norms, 1)
    return scaled


# Δ = -lr u - lr wd w with u = m/(sqrt(v) + ε), bias-corrected, and w the weights before: two
# unknowns, fitted by least squares over all parameters of a group (Loshchilov & Hutter 2019).

_PIECE = 1 << 18


class Fit(NamedTuple):
    """What one step of a group of parameters was: R² says how much of Δ it explains."""

    group: int
    lr: float
    weight_decay: float | None
    r2: float
    elements: int

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return self._asdict()


class Rate(NamedTuple):
    """The rate each element of a parameter is scaled by: lr/(sqrt(v) + ε), its median."""

    name: str
    median: float

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
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
    """Return the median effective rate of each named parameter, on a sample of its elements."""
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
