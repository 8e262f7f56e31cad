"""What an optimiser saved: its groups, and the moments of every parameter, read on demand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import isfinite
from typing import TYPE_CHECKING, Any

from difflens.core.addresses import Location, locate
from difflens.core.errors import ModelError

from .documents import Limits, broken
from .records import Optimizer

if TYPE_CHECKING:
    from difflens.core.protocols import TensorSource, Values
    from difflens.core.records import TensorInfo

# Where an optimiser's state may lie in a checkpoint, and how names of tensors there begin. It is
# the whole of optimizer.pt; Lightning keeps a list of them.
_PREFIXES = {
    "": "",
    "optimizer": "optimizer.",
    "optimizer_state_dict": "optimizer_state_dict.",
    "optim": "optim.",
    "optimizer_states": "optimizer_states.0.",
}
# Of one number each where the parameter is one: still moments.
_MOMENTS = frozenset(
    """
    exp_avg exp_avg_sq max_exp_avg_sq momentum_buffer exp_inf square_avg acc_delta grad_avg
    sum prev
""".split()
)
_MOMENT = re.compile(r"(.+)\.([^.]+)", re.DOTALL)


def optimizer(path: str | Location, limits: Limits = None) -> Optimizer:
    """Read an optimizer.pt, or the optimiser inside a checkpoint; torch is not needed for that."""
    try:
        place, state, groups = _find_state(locate(path), limits)
        source = _opened(locate(path), limits)
        groups = [
            _with_numbers(group, f"{place}param_groups.{at}", source)
            for at, group in enumerate(groups)
        ]
        order = _order(groups, path)
        moments = _moments(f"{place}state.", source, order)
    except ModelError as error:
        raise broken(path, error.reason, error.hint) from error
    for key, numbers in _plain_numbers(state):
        if key in order:
            moments.setdefault(order[key], {}).update(numbers)
    return Optimizer(tuple(_numbered(group, order) for group in groups), moments, str(path))


def _find_state(path: Location, limits: Limits) -> tuple[str, Any, list[dict[str, Any]]]:
    """Find the state: where it lies, as nodes, and its groups as plain values."""
    from difflens.core.limits import check
    from difflens.models.containers.pickle_nodes import Dict
    from difflens.models.torch.objects import plain_copy, root
    from difflens.storage.places import open_file

    file = open_file(path, check(limits))
    try:
        whole = root(file)
    finally:
        file.close()
    for place, begin in _PREFIXES.items():
        node = whole if not place else whole.get(place) if type(whole) is Dict else None
        if place == "optimizer_states" and type(node) is list:
            if len(node) != 1:
                raise broken(path, f"it holds {len(node)} optimisers, one is wanted")
            node = node[0]
        groups = plain_copy(node.get("param_groups"), str(path)) if type(node) is Dict else None
        state = node.get("state") if type(node) is Dict else None
        if type(state) is Dict and type(groups) is list and all(map(_is_group, groups)):
            return begin, state, groups
    raise broken(path, "it holds no optimiser: no 'state' with its 'param_groups'")


def _is_group(group: Any) -> bool:
    return type(group) is dict and type(group.get("params")) is list


def _opened(path: Location, limits: Limits) -> TensorSource:
    from difflens.models.formats import open_model

    return open_model(path, limits=limits)


def _order(groups: list[dict[str, Any]], path: object) -> dict[Any, int]:
    """Number the parameters: by their own numbers, or in the order in which names stand."""
    listed = [each for group in groups for each in group["params"]]
    if len(set(map(str, listed))) != len(listed):
        raise broken(path, "a parameter stands in its groups twice")
    if all(type(each) is int for each in listed):
        return {each: each for each in listed}
    return {each: at for at, each in enumerate(listed)}


def _numbered(group: dict[str, Any], order: dict[Any, int]) -> dict[str, Any]:
    """Return the group with `params` as indices, and `names` where it had names."""
    listed = group["params"]
    names = {"names": listed} if any(type(each) is str for each in listed) else {}
    return {**group, "params": [order[each] for each in listed], **names}


def _moments(begin: str, source: TensorSource, order: dict[Any, int]) -> dict[int, dict[str, Any]]:
    from difflens.measure.chunks import Side
    from difflens.measure.values import Values as Read

    indices = {str(key): index for key, index in order.items()}
    moments: dict[int, dict[str, Any]] = {}
    for name, info in source.tensors.items():
        parts = _MOMENT.fullmatch(name.removeprefix(begin)) if name.startswith(begin) else None
        if parts is None or parts[1] not in indices:
            continue
        values = Read(Side.of(source, info))
        is_moment = parts[2] in _MOMENTS or not _is_number(info)
        moments.setdefault(indices[parts[1]], {})[parts[2]] = values if is_moment else _one(values)
    return moments


def _is_number(info: TensorInfo) -> bool:
    """Is it one number, such as the step that torch keeps as a tensor?"""
    return info.shape == () and info.dtype != "C64"


def _one(values: Values) -> float | None:
    """Return the number a tensor of one element holds, None if it is not finite."""
    value = float(values.array().reshape(-1)[0])
    return value if isfinite(value) else None


def _finite(value: Any) -> Any:
    """Return the value, None in place of NaN and infinities."""
    return None if type(value) is float and not isfinite(value) else value


def _is_finite_number(value: Any) -> bool:
    return type(value) is int or (type(value) is float and isfinite(value))


def _with_numbers(group: dict[str, Any], begin: str, source: TensorSource) -> dict[str, Any]:
    """Fill in what torch keeps as a tensor of one number, such as a learning rate."""
    from difflens.measure.chunks import Side
    from difflens.measure.values import Values as Read

    filled = {key: _finite(value) for key, value in group.items()}
    for key, value in group.items():
        info = source.tensors.get(f"{begin}.{key}") if value is None else None
        if info is not None and _is_number(info):
            filled[key] = _one(Read(Side.of(source, info)))
    return filled


def _plain_numbers(state: Any) -> Iterator[tuple[Any, dict[str, float]]]:
    """Yield the numbers that are no tensors: older torch counts its steps so."""
    for key, node in zip(state.flat[::2], state.flat[1::2], strict=True):
        named = node.named() if hasattr(node, "named") and type(key) in (int, str) else {}
        numbers = {name: value for name, value in named.items() if _is_finite_number(value)}
        if numbers:
            yield key, numbers
