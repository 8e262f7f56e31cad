"""Which parameter an optimiser's index means: by name, by order and shape, or by how it moved.

Optimisers count parameters, they do not name them. The order in which a model registers them is
not kept by every file, so an order is believed only where all shapes agree. Where none does, the
direction an index was about to move in tells which tensor went there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...diffs import Diff
from ...evidences import Optimizer
from ...records import TensorInfo
from ..anatomy.roles import is_parameter, role
from .samples import sampled

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SURE = 6.0  # standard errors 1/sqrt(n) a cosine must be above zero and above every other one


class Names(NamedTuple):
    """Names by index on one side, and how they were found; none where nothing agrees."""

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
    return [info for info in sides
            if info and is_parameter(info.name, info.dtype) and info.name not in tied]  # fmt: skip


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
            before = sampled(diff.values("left", left.name))
            after = sampled(diff.values("right", right.name))
            groups[right.shape].append((right.name, after.astype(float) - before))
    return groups


def _indices_by_shape(state: Optimizer) -> dict[tuple[int, ...], list[int]]:
    groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for index, moments in state.moments.items():
        if "exp_avg" in moments and "exp_avg_sq" in moments:
            groups[tuple(moments["exp_avg"].info.shape)].append(index)
    return groups


def _direction(moments: dict[str, Any]) -> NDArray[Any]:
    """Give -m/sqrt(v) on a sample: which way Adam was about to go."""
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
